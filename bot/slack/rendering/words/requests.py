"""Posts about a request that waits, was refused, may not have arrived, or lacks something."""

from collections.abc import Mapping

from bot.domain.jobs.job import Problem
from bot.domain.requests.request import RejectionReason
from bot.slack.rendering.text import Markup
from bot.slack.rendering.words.template import Template

TO = Template("{who} {words}")
YOUR_REQUEST = Markup("your request")
YOUR_STOP = Markup("your request to stop")
YOUR_DISCARD = Markup("your request to discard")
YOUR_FOLLOW_UP = Markup("your follow-up")
YOUR_FOLLOW_UP_QUOTED = Template('your follow-up ("{text}")')
WHAT_YOU_ASKED_FOR = Markup("what you asked for")
SOMEBODY = Markup("somebody")
REJECTED: Mapping[RejectionReason | int, Template] = {
    RejectionReason.API: Template("{It} was refused. Change it and send it again."),
    RejectionReason.ADDRESS: Template(
        "{It} wasn't sent: the agent's server redirects to another address. Ask {ask} to look into that, then send it "
        "again."
    ),
    RejectionReason.PROJECT: Template(
        "{It} wasn't sent: the agent doesn't know this project. Ask {ask} to check the project's id."
    ),
    RejectionReason.GONE: Template("{It} wasn't sent: the agent no longer has this job. Start a new one with {slash}."),
    RejectionReason.NOT_FOUND: Template(
        "{It} wasn't sent: the agent says it doesn't know this job. Write it again later, or start a new job with "
        "{slash}."
    ),
    RejectionReason.ARCHIVED: Template("{It} wasn't sent: this job is archived. Start a new one with {slash}."),
    RejectionReason.ACCEPTED_WHILE_ARCHIVED: Template(
        "{It} was sent, but may come to nothing: this job is archived. Start a new one with {slash}."
    ),
    RejectionReason.NOT_STARTED: Template("{It} wasn't sent: nothing came of this job. Start a new one with {slash}."),
    RejectionReason.HANDED_BACK: Template(
        "{It} wasn't sent: the agent hasn't taken it for days. Send it again if it still matters."
    ),
    RejectionReason.UNREADABLE: Template("{It} wasn't sent: my record of it is damaged. Please write it again."),
    RejectionReason.NOT_PERMITTED: Template(
        "{It} wasn't sent: its writer may not ask for that here, and was told why."
    ),
    RejectionReason.STOPPED: Template(
        "{It} wasn't sent: {who} stopped the job before. Write it again if it still matters."
    ),
    RejectionReason.REPLACED: Template("{It} wasn't sent: this job was already started again."),
    RejectionReason.NOTHING_TO_STOP: Template("There was nothing to stop: this job had already ended."),
    RejectionReason.OTHER: Template("{It} was refused."),
    402: Template("{It} wasn't sent: the agent has to be paid for first. Ask {ask} to do that, then send it again."),
    403: Template(
        "{It} wasn't sent: a firewall in front of the agent refused these words. Change them and send it again; if "
        "that doesn't help, ask {ask}."
    ),
    451: Template("{It} was refused for legal reasons, for good. Sending it again won't help."),
}
"""By the reason or, where that says more, the status of the job API's response."""
START_UNCERTAIN = Markup(
    "I can't tell if this started. Look for a new pull request; if there is none, press *Send again*."
)
START_UNCERTAIN_SERVER_FAILED = Markup(
    "The agent's server failed, so I can't tell if this started. Look for a new pull request; if there is none, press "
    "*Send again*."
)
UNCERTAIN = Template(
    "I can't tell if {it} reached the agent. If nothing happens here in a few minutes, press *Send again*."
)
UNCERTAIN_SERVER_FAILED = Template(
    "The agent's server failed, so I can't tell if {it} arrived. If nothing happens here in a few minutes, press *Send "
    "again*."
)
UNCERTAIN_WHILE_AT_WORK = Template(
    "I can't tell if {it} reached the agent, which is at work. See what it does next; if that isn't it, press *Send "
    "again*."
)
UNCERTAIN_SERVER_FAILED_WHILE_AT_WORK = Template(
    "The agent's server failed, so I can't tell if {it} arrived. See what the agent does next; if that isn't it, press "
    "*Send again*."
)
SEND_AGAIN = "Send again"
SEND_AGAIN_TITLE = "Send it again?"
SEND_AGAIN_RISK = "If it arrived the first time, the agent gets it twice."
LEAVE_IT = "Leave it"
OUTAGES: Mapping[Problem, Template] = {
    Problem.OUT_OF_REACH: Template("I can't reach the agent. {meaning}"),
    Problem.FAULTY: Template("The agent isn't answering properly. {meaning}"),
    Problem.RATE_LIMITED: Template("The agent's limit is used up{until}. {meaning}"),
    Problem.BUSY: Template("The agent is busy{until}. {meaning}"),
}
HOURLY_LIMIT_REACHED = Template("The agent's hourly limit is used up{until}. {meaning}")
AT_LEAST_UNTIL = Template(", at least until {time}")
GOES_OUT_LATER = Template("{It} goes out by itself as soon as that changes; you don't need to do anything.")
NEWS_LATER = Markup("News of this job follows as soon as that changes; you don't need to do anything.")
KEY_REFUSED = Template("The agent doesn't accept my key (401), so {meaning}. Please ask {ask} to fix that.")
KEY_NOT_ALLOWED = Template(
    "The agent doesn't let me do this with my key, or from here (403), so {meaning}. Please ask {ask} to fix that."
)
WAITS = Template("{it} waits")
NEWS_WAITS = Markup("news of this job waits")
AGENT_IS_BACK = Markup("The agent is back. Everything goes on from here.")
AGENT_HAS_JOB_AGAIN = Markup("The agent has this job again. Everything goes on from here.")
AGENT_HAS_ROOM = Markup("The agent takes requests again. Everything goes on from here.")
AGENT_SAID = Template("{words}\nThe agent said:\n{text}")
TEXT_ONLY_SENT = Template(
    "{who} Your text goes to the agent, but not {held}: I can't pass that on yet. Reply with what matters as text, or "
    "with a link that the agent can open."
)
NOTHING_TO_SEND = Template(
    "{who} Nothing was sent: your reply holds only {held}, which I can't pass on yet. Reply with what matters as text, "
    "or with a link that the agent can open."
)
NO_WORDS_TO_SEND = Template(
    "{who} Nothing was sent: your reply has no words for the agent. Reply with what it should do."
)
ONE_FILE = Markup("1 file")
FILES = Template("{count} files")
FILES_NAMED = Template("{files} ({names})")
FORWARDED_MESSAGE = Markup("a forwarded message")
BOTH = Template("{one} and {other}")
AND_MORE = Template("{names} and {count} more")
UNNAMED_FILE = Markup("a file")
NOT_ALL_SENT = Template("{who} Your request goes to the agent, but not all that belongs to it:\n{list}")
LINK_ONLY = Template("• Only a link, not the content: {names}.")
NAME_ONLY = Template("• Neither content nor link: {names}. Reply with what matters as text.")
THREAD_UNREAD = Markup("• Not the thread: Slack didn't give me its messages. Reply with what matters.")
CUT_FILES = Template("• Not the whole of {names}: it's too long.")
LEFT_OUT = Markup("• Not all that was said or forwarded: it's too long.")
MASKED = Template("• Hidden, because it looked secret: {kinds}.")
