"""Questions and refusals before anything is sent to the agent, which only that person sees."""

from collections.abc import Mapping

from bot.domain.people.permissions import Refusal
from bot.domain.requests.request import RequestKind
from bot.notices.questions import EarlierWords, WordsBefore
from bot.slack.rendering.text import Markup
from bot.slack.rendering.words.template import Template

REFUSED = Template("{what}: {why}")
REFUSED_KINDS: Mapping[RequestKind, Markup] = {
    RequestKind.START: Markup("No job was started"),
    RequestKind.RETRY: Markup("No job was started"),
    RequestKind.FOLLOW_UP: Markup("Your reply wasn't sent"),
    RequestKind.SEND_NEW_WORDS: Markup("The new version wasn't sent"),
}
REFUSED_OTHERWISE = Markup("Nothing was done")
REFUSALS: Mapping[Refusal, Template] = {
    Refusal.GUEST: Template("guests of this workspace can't use Pagehand. Ask {ask} to allow guests."),
    Refusal.OTHER_ORGANIZATION: Template("only members of {workspace} can do that. Ask one of them to do it for you."),
    Refusal.NOT_A_PERSON: Template("only people whose account is active can do that."),
    Refusal.SHARED_CHANNEL: Template(
        "people from other organizations are in this channel. Do it in another one, or ask {ask} to allow shared "
        "channels."
    ),
    Refusal.NOT_ON_THE_LIST: Template(
        "only certain people can do that, and you aren't one of them. Ask {ask} to add you, or a user group of yours."
    ),
    Refusal.CHANNEL_NOT_ON_THE_LIST: Template(
        "Pagehand is for certain channels, and this isn't one of them. Do it in one of those, or ask {ask} to add this "
        "one."
    ),
    Refusal.TOO_MANY: Template("you've reached the hourly limit ({limit}). Please try again {later}."),
    Refusal.PERSON_UNKNOWN: Template(
        "Slack doesn't say who you are. Try again in a while; if that doesn't help, ask {ask} to check that the app "
        "has the scope users:read."
    ),
    Refusal.CHANNEL_UNKNOWN: Template(
        "Slack doesn't say what kind of channel this is. Invite me with `/invite` {bot} and try again; if that doesn't "
        "help, ask {ask} to check that the app has the scopes channels:read and groups:read."
    ),
    Refusal.NOT_A_PARTICIPANT: Template("only people who asked for this job or steered it can do that."),
    Refusal.NOT_THE_WRITER: Template("only the person who wrote the reply can do that."),
}
OUTSIDER_REPLIES = Template("only members of {workspace} can steer this job.")
IN_A_WHILE = Markup("in a while")
AFTER = Template("after {time}")
YOU_WROTE = Template("{why}\nYou wrote:\n{text}")
SEND_TO_AGENT = Template("Send this to the agent?\n{text}")
SEND = "Send"
SEND_ALL = "Send all I write here"
DO_NOT_SEND = "Don't send"
JOB_OR_REPLY = Template("Is this a new job, or for the one above? What you wrote right after it goes along.\n{text}")
NEW_JOB = "New job"
ADD_TO_JOB = "Add to the one above"
STOPPED_BEFORE = Template("The job was stopped before this was sent. Send it anyway?\n{text}")
SEND_ANYWAY = "Send it anyway"
LATE = Template("You wrote this while I was away. Send it?\n{text}")
SEND_IT = "Send it"
LATE_STOP = Markup("You asked to stop this job while I was away. Stop it now?")
STOP_NOW = "Stop now"
DO_NOT_STOP = "Don't stop"
LATE_WORD = Template("You wrote {word} while I was away. Do it now?")
SOMETHING = Markup("something")
WORDS: Mapping[RequestKind, Markup] = {
    RequestKind.RETRY: Markup("`!retry`"),
    RequestKind.DISCARD: Markup("`!discard`"),
    RequestKind.MUTE: Markup("`!mute`"),
    RequestKind.UNMUTE: Markup("`!unmute`"),
}
DO_IT_NOW = "Do it now"
DO_NOT = "Leave it"
STOP_AS_OUTSIDER = Markup("Stop this job? You haven't taken part in it.")
STOP_IT = "Stop it"
WHICH_PROJECT = Template("Which project is this for? The job waits for your answer.\n{text}")
SWITCH_PROJECT = Template("Which project should this be for instead? The job then starts over.\n{text}")
NO_SUCH_PROJECT = Template("There is no project called {name}. {ask}")
PROJECTS_LEFT_OUT = Template(
    "{ask}\n{count} more don't fit here. To choose one of them, ask again with `project:NAME` in front."
)
CHOOSE_PROJECT = "Choose a project"
EDITED: Mapping[EarlierWords, Template] = {
    EarlierWords.ACCEPTED: Template(
        "You edited a reply, and the agent has the earlier version. Send the new one as a follow-up?\n{text}"
    ),
    EarlierWords.REJECTED: Template("You edited a reply that wasn't sent. Send the new version?\n{text}"),
    EarlierWords.UNCERTAIN: Template(
        "You edited a reply that the agent may already have. Send the new version as a follow-up?\n{text}"
    ),
}
WORD_BY_EDIT = Template(
    "Nothing was done: an edit doesn't give me a command. Write `!{word}` in a new message, in the job's thread."
)
NEW_BY_EDIT = Template(
    "Nothing was started: an edit doesn't give me a command. Write `!new and the task` in a new message, in the job's "
    "thread."
)
WORDS_BY_EDIT = Template(
    "Your edit wasn't sent to the agent: before it, this message was a command for me. Write it in a new message.\n"
    "{text}"
)
WORDS_BEFORE: Mapping[WordsBefore, Markup] = {
    WordsBefore.NOT_SENT: Markup("What you wrote before isn't sent to the agent either."),
    WordsBefore.SENT: Markup("The agent already has what you wrote before."),
    WordsBefore.IN_DOUBT: Markup("The agent may already have what you wrote before."),
}
SEND_NEW_VERSION = "Send the new version"
