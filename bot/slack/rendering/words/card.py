"""The card: a job's state, facts and buttons. A headline has no full stop."""

from collections.abc import Mapping

from bot.domain.jobs.details import PullRequestState
from bot.domain.jobs.job import ACTIVE, ARCHIVED, FAILED, Problem
from bot.domain.projects import ProjectReason
from bot.domain.requests.request import WayIn
from bot.notices.said import Markup
from bot.slack.rendering.words.template import Template

WAITING = Markup("Waiting to be sent to the agent")
CHOOSING_PROJECT = Template("Waiting for {who} to choose the project")
UNSENT: Mapping[Problem, Template] = {
    Problem.OUT_OF_REACH: Template("Not sent yet: I can't reach the agent"),
    Problem.RATE_LIMITED: Template("Not sent yet: the agent's hourly limit is used up{until}"),
    Problem.BUSY: Template("Not sent yet: the agent is busy{until}"),
    Problem.FAULTY: Template("Not sent yet: the agent isn't answering properly"),
    Problem.NOT_ALLOWED: Template("Not sent yet: the agent doesn't let me in"),
    Problem.REJECTED: Template("Not started: the request was refused"),
    Problem.UNCERTAIN: Template("I can't tell if this started"),
    Problem.GONE: Template("The agent doesn't know this job"),
    Problem.CANNOT_POST: Template("Not started: I can't post here"),
    Problem.STOPPED: Template("Not started: it was stopped before it was sent"),
    Problem.WITHDRAWN: Template("Not started: the message that asked for it was deleted"),
}
UNSENT_MEANING: Mapping[Problem, Template] = {
    Problem.OUT_OF_REACH: Template("It goes out as soon as the agent is back."),
    Problem.RATE_LIMITED: Template("It goes out as soon as there's room again."),
    Problem.BUSY: Template("It goes out when the agent has time again."),
    Problem.FAULTY: Template("It goes out when the agent answers again."),
    Problem.NOT_ALLOWED: Template("Please ask {ask} to fix that."),
    Problem.UNCERTAIN: Template("The thread says what to do."),
}
BEHIND: Mapping[Problem, Template] = {
    Problem.OUT_OF_REACH: Template("I can't reach the agent, so this may be out of date."),
    Problem.RATE_LIMITED: Template("The agent's limit is used up{until}, so this may be out of date."),
    Problem.BUSY: Template("The agent is busy{until}, so this may be out of date."),
    Problem.FAULTY: Template("The agent isn't answering properly, so this may be out of date."),
    Problem.NOT_ALLOWED: Template(
        "The agent doesn't let me in, so this may be out of date. Please ask {ask} to fix that."
    ),
    Problem.REJECTED: Template("The last follow-up was refused. The thread says why."),
    Problem.UNCERTAIN: Template("I can't tell if the last follow-up arrived. The thread says what to do."),
    Problem.CANNOT_POST: Template("I can't post in this channel."),
    Problem.STOPPED: Template("It was stopped."),
    Problem.WITHDRAWN: Template("The message that asked for it was deleted."),
}
GONE = Markup("The agent no longer has this job")
LAST_SEEN = Template("When last seen: {status}.")
STATUSES: Mapping[str, Markup] = {
    ACTIVE: Markup("Active: the agent is at work"),
    FAILED: Markup("Failed"),
    ARCHIVED: Markup("Archived: follow-ups are no longer sent"),
}
OTHER_STATUS = Template("Status: {status}")
AGENT_ASKS = Markup("The agent has a question: reply in the thread to answer")
FINISHED_WITHOUT_PULL_REQUEST = Markup("Finished without a pull request")
FINISHED_WITH_PULL_REQUEST = Markup("Finished with a pull request")
PULL_REQUEST_IS: Mapping[PullRequestState | None, Markup] = {
    PullRequestState.PENDING: Markup("Finished: the pull request is still to be opened"),
    PullRequestState.MERGED: Markup("Finished: the pull request is merged"),
    PullRequestState.CLOSED: Markup("Finished: the pull request is closed"),
}
STOPPING = Template("Stopping, as {who} asked")
STOPPED = Template("Stopped by {who}")
STOPPED_WITH_PULL_REQUEST = Template("Stopped by {who}, with a pull request")
STEPS_DONE = Template("_{done} of {count} steps done_")
NOW = Template("_Now: {activity}_")
SPOKEN_HEADLINE = Template("{headline}.")
SPOKEN_AGENT_SAID = Template("The agent said: {words}")
SPOKEN_STEPS_DONE = Template("{done} of {count} steps are done.")
SPOKEN_AT_WORK_ON = Template("At work on: {step}.")
SPOKEN_NEXT = Template("Next: {step}.")
SPOKEN_NOW = Template("Now: {activity}.")
ASKED = Template("{who} asked:")
ASKED_BY: Mapping[WayIn, Template] = {
    WayIn.SHORTCUT: Template("{who} handed over a message and asked:"),
    WayIn.MENTION: Template("{who} mentioned Pagehand and asked:"),
    WayIn.DIRECT_MESSAGE: Template("{who} wrote to Pagehand and asked:"),
    WayIn.REPLY: Template("{who} started another job in this thread and asked:"),
    WayIn.RETRY: Template("{who} tried this again, as first asked:"),
    WayIn.SWITCH: Template("{who} moved this to another project, as first asked:"),
}
PROJECT = Template("Project: {name} ({why})")
PROJECT_REASONS: Mapping[ProjectReason, Template] = {
    ProjectReason.ONLY_ONE: Template("the only one"),
    ProjectReason.SAID: Template("named in the request"),
    ProjectReason.THREAD: Template("as for the job before in this thread"),
    ProjectReason.CHANNEL: Template("this channel's"),
    ProjectReason.WORDS: Template("by words in the request"),
    ProjectReason.DEFAULT: Template("the default of {who}"),
    ProjectReason.CHOSEN: Template("chosen by {who}"),
}
REPOSITORY = Template("Repository: {name}")
BRANCH = Template("Branch: {name}")
MODEL = Template("Model: {name}")
PULL_REQUEST = Template("Pull request: {link}")
PULL_REQUEST_THAT_IS: Mapping[PullRequestState | None, Template] = {
    PullRequestState.MERGED: Template("Pull request: {link} (merged)"),
    PullRequestState.CLOSED: Template("Pull request: {link} (closed)"),
}
ONE_FILE_KEPT = Markup("Kept: what it changed in 1 file before it failed")
FILES_KEPT = Template("Kept: what it changed in {count} files before it failed")
PULL_REQUEST_PENDING = Markup("Pull request: pending")
PULL_REQUEST_PENDING_BECAUSE = Template("Pull request: pending: {why}")
ASKED_AT = Template("Asked: {time}")
AT_WORK_SINCE = Template("At work since: {time}")
ENDED = Template("Ended: {time}")
ENDED_AFTER = Template("Ended: {time} after {duration}")
LESS_THAN_A_MINUTE = Markup("less than a minute")
UNITS: tuple[tuple[Template, Template], ...] = (
    (Template("{count} day"), Template("{count} days")),
    (Template("{count} hour"), Template("{count} hours")),
    (Template("{count} minute"), Template("{count} minutes")),
)
TWO_UNITS = Template("{larger} and {smaller}")
FOLLOW_UPS = Template("Follow-ups: {counts}")
SENT = Template("{count} sent")
WAIT = Template("{count} waiting")
WAIT_FOR_START = Template("{count} waiting for the job to begin")
WAIT_FOR: Mapping[Problem | None, Template] = {
    Problem.OUT_OF_REACH: Template("{count} waiting for the agent to be back"),
    Problem.FAULTY: Template("{count} waiting for the agent to answer properly again"),
    Problem.NOT_ALLOWED: Template("{count} waiting for the agent to let me in again"),
    Problem.RATE_LIMITED: Template("{count} waiting for the agent's hourly limit{until}"),
    Problem.BUSY: Template("{count} waiting for the agent, which is busy{until}"),
    Problem.UNCERTAIN: Template("{count} waiting until it's clear that this started"),
}
AT_LEAST_UNTIL = Template(", at least until {time}")
MUTED = Template("Muted: by {who}; replies aren't sent, and only failures and pull requests are posted")
OPEN_PULL_REQUEST = "Open the pull request"
CHOOSE_PROJECT = "Choose the project…"
STOP = "Stop"
STOP_TITLE = "Stop this job?"
STOP_MEANING = "The agent is told to stop. What it has changed so far stays as it is."
STOP_YES = "Stop it"
STOP_NO = "Keep going"
FOLLOW_UP = "Follow up…"
RETRY = "Retry"
RETRY_TITLE = "Try it again?"
RETRY_RISK = "If it started the first time, it's done twice."
RETRY_YES = "Try again"
RETRY_NO = "Leave it"
SHOW_REQUEST = "Show the whole request"
SWITCH_PROJECT = "Switch project…"
MUTE = "Mute"
UNMUTE = "Unmute"
SHOW_JOB_ID = "Show the job's id"
