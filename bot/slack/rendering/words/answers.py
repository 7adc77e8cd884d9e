"""Answers to a button, a `!word` or an edit, which only that person sees."""

from collections.abc import Mapping

from bot.notices.answers import ActionAnswer, AnswerMissing
from bot.slack.rendering.text import Markup
from bot.slack.rendering.words.template import Template

ANSWERS: Mapping[ActionAnswer, Template] = {
    ActionAnswer.SENT_AGAIN: Template("Sending it again."),
    ActionAnswer.ALREADY_ACCEPTED: Template("No need: it was already sent, or is on its way."),
    ActionAnswer.NOT_YOURS: Template("Only the person who wrote it can send it again."),
    ActionAnswer.WITHDRAWN: Template("It wasn't sent again: it was deleted, or is no longer for the agent."),
    ActionAnswer.FIRST_WITHDRAWN: Template(
        "It wasn't sent again: it was one message with a reply that has been deleted. Please write what is still to be "
        "done."
    ),
    ActionAnswer.NEW_WORDS_SENT: Template("The new version is on its way to the agent."),
    ActionAnswer.NOTHING_NEW: Template("Nothing new to send: the reply was already sent as it is, or was deleted."),
    ActionAnswer.SEE_THREAD: Template("It wasn't sent. The thread says why."),
    ActionAnswer.HELD_SENT: Template("Your reply is on its way to the agent."),
    ActionAnswer.HELD_ALL_SENT: Template(
        "Your reply is on its way to the agent. Everything you write in this thread from now on goes there, too."
    ),
    ActionAnswer.HELD_DISCARDED: Template("OK, your reply wasn't sent to the agent."),
    ActionAnswer.NOT_ADDED: Template("It wasn't added: the job above takes no more replies. Choose *New job*."),
    ActionAnswer.NOT_ADDED_MUTED: Template(
        "It wasn't added: the job above is muted. Write `!unmute` in its thread first, or choose *New job*."
    ),
    ActionAnswer.HELD_EXPIRED: Template(
        "What you wrote was left undone: you didn't answer within a week. Write it again if it still matters."
    ),
    ActionAnswer.MUTED: Template(
        "Muted: replies don't go to the agent, and only failures and pull requests are posted. `!unmute` ends that."
    ),
    ActionAnswer.UNMUTED: Template("No longer muted: replies go to the agent again."),
    ActionAnswer.NOT_MUTED: Template("This job isn't muted."),
    ActionAnswer.REPLY_NOT_SENT_MUTED: Template(
        "Your reply wasn't sent: this job is muted. Write `!unmute`, then write it again."
    ),
    ActionAnswer.EDITED_TOO_LATE: Template(
        "Nothing was started: an edit can ask for a job only within ten minutes of the message. Write a new message "
        "with `!new` and the task."
    ),
    ActionAnswer.SENT_BEFORE_DELETED: Template(
        "The agent already has the message that you deleted or took back. Reply with what it should do instead, or "
        "write `!stop`."
    ),
    ActionAnswer.STOPPED_UNSENT: Template("Stopped. The agent never got this job."),
    ActionAnswer.WAITING_STOPPED: Template(
        "The agent wasn't working. What waited to be sent isn't sent, and whoever wrote it can still send it."
    ),
    ActionAnswer.STOPPED_SINCE: Template("It wasn't sent: the job was stopped after that. Press again to send it."),
    ActionAnswer.LEFT_UNDONE: Template("OK, nothing is done about it."),
    ActionAnswer.NOTHING_TO_STOP: Template("There's nothing to stop: the agent isn't working on this job."),
    ActionAnswer.STOP_UNCERTAIN: Template(
        "I can't tell if this job started, so I can't stop it. The thread says what to do."
    ),
    ActionAnswer.DISCARDED: Template(
        "Discarded: the agent starts your next reply without what it did before it failed."
    ),
    ActionAnswer.NOTHING_TO_DISCARD: Template("There's nothing to discard: nothing is kept of this job's failed work."),
    ActionAnswer.DISCARD_TOO_LATE: Template(
        "Too late to discard: the agent has its next instruction. Reply with what should be undone, or write `!stop`."
    ),
    ActionAnswer.NOT_DISCARDED: Template(
        "It wasn't discarded: the agent still has that work. Try again later, or reply with what should be undone."
    ),
    ActionAnswer.STARTED_AGAIN: Template("Starting it again, as a new job."),
    ActionAnswer.NOT_TO_BE_RETRIED: Template(
        "Retry is for jobs that failed or changed nothing. To change this one, reply here."
    ),
    ActionAnswer.PROJECT_CHOSEN: Template("Thanks, that's the project."),
    ActionAnswer.PROJECT_SWITCHED: Template(
        "Starting over for that project, with the same request. If the job before is still running, it's stopped."
    ),
    ActionAnswer.PROJECT_SETTLED: Template(
        "Nothing was changed: the job has this project already, is just being sent, or can't be switched any more."
    ),
    ActionAnswer.START_ENDED: Template(
        "Nothing was started: that request is over, and has no thread. Please ask again."
    ),
    ActionAnswer.NO_JOB_THERE: Template(
        "Nothing was done: there is no job in the thread where you wrote that. Write it in the thread of the job."
    ),
    ActionAnswer.SENT_FOR_ITS_PROJECT: Template(
        "The project wasn't changed: the job was already sent. To start over for another one, choose *Switch project…* "
        "in the card's menu."
    ),
    ActionAnswer.NOT_FOR_YOU: Template("Only people who asked for this job, steered it or were asked can do that."),
    ActionAnswer.OTHER_WORKSPACE: Template("Your reply wasn't sent: only members of {workspace} can steer this job."),
    ActionAnswer.UNKNOWN_WORKSPACE: Template(
        "Your reply wasn't sent: only members of {workspace} can steer this job, and Slack didn't say where you "
        "belong. Please write it again, as text only."
    ),
    ActionAnswer.SLACK_AWAY: Template(
        "Nothing was done: Slack didn't answer for a long time, so I couldn't check if you may ask for this. Please "
        "try again."
    ),
    ActionAnswer.RESTORED: Template(
        "I was restored from a backup and can't tell if this was done. If the thread doesn't show it, do it again."
    ),
}
JOB_ID = Template("This job's id, to copy:\n{id}")
NO_JOB_ID = Markup("This job has no id yet. It gets one when the agent takes it.")
WHOLE_REQUEST = Markup("The whole request:")
WHOLE_ANSWER = Markup("The whole answer:")
CONTINUED = Markup("Continued:")
EMPTY = Markup("(empty)")
WHOLE_ANSWER_MISSING: Mapping[AnswerMissing, Markup] = {
    AnswerMissing.NEWER: Markup("The whole of this answer is no longer kept: the agent has answered again since."),
    AnswerMissing.GONE: Markup("The whole of this answer is no longer kept."),
    AnswerMissing.NOT_NOW: Markup("The agent isn't answering right now. Please press the button again in a minute."),
}
MAY_BE_POSTED = Markup("I can't tell if this reached the job's thread:")
NO_JOB = Markup("No job was started")
JOB_STOPPED = Markup("Your job has no card, so it doesn't go on")
OUTSIDE_DIRECT_MESSAGE = Template(
    "{job}: I'm not part of this direct message. Ask again in a channel, or in a direct message to me."
)
OUTSIDE_CHANNEL = Template("{job}: I'm not in this channel. Invite me with `/invite` {bot}, then ask again.")
CHANNEL_ARCHIVED = Template("{job}: this channel is archived. Ask again in another one.")
THREAD_GONE = Template("{job}: the thread is gone, with its first message. Ask again in another one.")
MAY_NOT_POST = Template(
    "{job}: Slack doesn't let me post in this channel ({reason}). Ask again in another one, or tell {ask}."
)
SCOPES_MISSING = Template("{job}: Slack hasn't granted the app {scopes}. Ask {ask} to grant it, then ask again.")
SCOPES_MISSING_CARD_IN_DOUBT = Template(
    "{job}: Slack hasn't granted the app {scopes}, so I can't see if the job's card arrived; if it did, "
    "ignore it. Ask {ask} to grant it, then ask again."
)
YOU_ASKED = Template("{why}\nYou asked:\n{request}")
ABOUT = Template("{told}\n{reply}")
"""An answer that names the reply that it is about."""
LINK_TO_JOB = Template("<{url}|Go to the job>")
"""Below a message that is not in the job's thread."""
