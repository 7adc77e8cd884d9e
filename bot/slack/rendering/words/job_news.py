"""Posts about a job: its changes of status, its ends, its pull requests. Only ends mention somebody."""

from collections.abc import Mapping

from bot.domain.jobs.details import ChangeKind
from bot.slack.rendering.text import Markup
from bot.slack.rendering.words.template import Template

STARTED = Markup("Started.")
AT_WORK_AGAIN = Markup("At work again.")
AT_WORK = Markup("At work.")
OTHER_STATUS = Template("The agent reports a status that I don't know: {status}. I'll go on watching the job.")
STILL_AT_WORK = Markup("Still at work: nothing new for ten minutes.")
DONE = Template("Done. Here's the pull request: {link}")
DONE_WITH_NEW_PULL_REQUEST = Template("Done. Here's a new pull request: {link}")
DONE_PULL_REQUEST_UPDATED = Template("Done. The pull request was updated: {link}")
DONE_CHECK_PULL_REQUEST = Template("Done. Check the pull request: {link}")
DONE_WITHOUT_PULL_REQUEST = Markup(
    "Done, without a pull request. If one turns up in the next minutes, I'll post it here."
)
DONE_WITHOUT_PULL_REQUEST_BECAUSE = Markup("Done, without a pull request:")
NOTHING_CHANGED = Markup("Done. Nothing was changed.")
NOTHING_CHANGED_BECAUSE = Markup("Done. Nothing was changed:")
PULL_REQUEST_AS_IT_WAS = Template("The pull request is as it was: {link}")
FAILED = Template("The job failed without giving a reason. {reply} to try again, or start over with {slash}.")
FAILED_BECAUSE = Markup("The job failed:")
TRY_AGAIN = Template("{reply} to try again, or start over with {slash}.")
FAILED_UNEXPLAINED = Markup("The job failed without giving a reason.")
ONE_FILE_KEPT = Template("What it changed in 1 file is kept. {reply} to go on from there, or write `!discard`.")
FILES_KEPT = Template("What it changed in {count} files is kept. {reply} to go on from there, or write `!discard`.")
STOPPED = Template("Stopped by {who}.")
STOPPED_BECAUSE = Template("Stopped by {who}:")
STOPPED_BY_ANOTHER = Markup("Your job was stopped; the card says by whom.")
STOPPED_BY_ANOTHER_BECAUSE = Markup("Your job was stopped; the card says by whom:")
GO_ON = Template("There's no pull request. {reply} to go on.")
PULL_REQUEST_SO_FAR = Template("What was done so far: {link}")
PULL_REQUEST = Template("Here's the pull request: {link}")
NEW_PULL_REQUEST = Template("Here's a new pull request: {link}")
ONE_FILE_CHANGED = Template("1 file changed{lines}.")
FILES_CHANGED = Template("{count} files changed{lines}.")
CARD_ONE_FILE = Template("The pull request changes 1 file{lines}")
CARD_FILES = Template("The pull request changes {count} files{lines}")
AND_MORE = Template("and {count} more")
KINDS: Mapping[ChangeKind, Markup] = {
    ChangeKind.ADDED: Markup("new"),
    ChangeKind.RENAMED: Markup("renamed"),
    ChangeKind.DELETED: Markup("deleted"),
}
STILL_STOPPING = Template("{who} Your stop was accepted, but the agent is still at work. I'll say when it ends.")
AGENT_ASKED_TO_STOP = Template(
    "{who} I can't stop this job from here, so I told the agent to stop and change nothing more. Whether it does is up "
    "to the agent."
)
ARCHIVED = Template("This job is archived and takes no more follow-ups. Start a new one with {slash}.")
DISAPPEARED = Template("The agent no longer has this job, so there's no more news of it. Start a new one with {slash}.")
HISTORY_UNREAD = Template(
    "I was away from {since} to {until}, and could not read all that was written here. If something was for me and has "
    "no reaction, edit it or write it again."
)
RECORD_DAMAGED = Template(
    "My record of this job is damaged, so I can't tell you more or send replies; the agent isn't affected. Start a new "
    "job with {slash}."
)
AGENT_ASKS = Template("The agent asks:\n{question}\n{reply} to answer.")
AGENT_ASKS_TO_CHOOSE = Template("The agent asks:\n{question}\n{reply} to answer, or choose:")
YES, NO = "Yes", "No"
ANSWER = "Answer…"
CHOOSE_ANSWER = "Choose an answer"
REPLY = Markup("Reply here")
MENTION = Markup("Mention Pagehand here")
SHOW_ALL = "Show all"
CHECKS_FAILED = Markup("Checks that failed:")
OPEN_PULL_REQUEST = "Open the pull request"
