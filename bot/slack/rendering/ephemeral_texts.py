"""Immediate answers that only one person sees: to a command, a click or a reply; and the help. Pure.

They are not notices and have no row; often they are sent because no row could be written.
"""

from bot.domain.commands import ThreadWord
from bot.notices.said import Markup, joined
from bot.slack.rendering.blocks import HAND_OVER, ChatMessage, button, paragraph
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import escape

RECORDED = Markup("Got it.")
STILL_RECORDING = Markup(
    "This is taking longer than usual. If nothing appears in the channel within a minute, please try again."
)
NOT_RECORDED = Markup(
    "I couldn't save that: my database isn't available. Nothing was started or sent; please try again in a minute."
)
NO_RECORD = Markup(
    "Nothing was done: I no longer have a record of this job. Records are deleted some time after a job ends, or on "
    "request."
)
COMMAND_UNREADABLE = Markup("Nothing was started: I couldn't read Slack's message. Please try again.")
OTHER_INSTALLATION = Markup(
    "Nothing was started: I'm set up for another workspace or app. Please tell whoever installed Pagehand."
)
"""For the operator."""
UNKNOWN_COMMAND = "I don't know this command. Try `{command} help`."
"""Answers a slash command of our app other than the configured one."""
UNKNOWN_INTERACTION = "Nothing was done: I don't know this button or shortcut. `{command} help` shows what I can do."
UNKNOWN_JOB = "Your reply wasn't sent: I no longer have a usable record of this job. Start a new one with {slash}."
"""Answers a reply to a card that has no usable record."""
EDITED_TOO_LATE = (
    "Nothing was started: an edit can ask for a job only within ten minutes of the message. Write a new message, or "
    "use {slash}."
)
TASK_MISSING = (
    'Nothing was started: the task is missing. Write it after the options: `{command} quiet Replace "colour" with '
    '"color"`.'
)
WRONG_OPTION = (
    "Nothing was started: I can't read the options. Write each once, before the task: `plan:` or `ask:`, `model:NAME`, "
    "`effort:NAME`, `project:NAME`, `quiet`."
)
_HELP = (
    "*Pagehand hands documentation tasks to an agent and brings back the pull request.*",
    '• Start: `{command} Replace "colour" with "color"`. A card shows how it goes.',
    "• Ask what works on your pages: `{command} What can you do?`",
    "• Or mention {bot} with the task, also in a thread, which I then read. A direct message works, too.",
    "• Options before the task: `project:NAME` picks the project; `quiet` mentions nobody at the end.",
    "• Before the task, too: `plan:` shows a plan first; `ask:` only answers; `model:NAME` and `effort:NAME` choose.",
    "• Steer: reply in the job's thread. In a thread that people began, mention {bot} in the reply.",
    "• Talk among yourselves: replies that start with `//` or with somebody's name aren't sent.",
    "• Alone on a line in the thread: `!status`, `!stop`, `!discard`, `!mute`, `!unmute`, `!retry`, `!help`.",
    "• Another job in the same thread: `!new` and the task.",
    "• Stop: `!stop`, the card's *Stop* button, or :x: on the card.",
    "• Marks on a reply: :eyes: received, :white_check_mark: sent to the agent, :warning: see the thread.",
    '• `status`, `list`, `cancel` and `stop` alone show this help. As a task: `{command} "status"`.',
)


def word_without_job(word: ThreadWord, show: MessageContext) -> Markup:
    """Answers a word for Pagehand written outside of any job."""
    words = "Nothing was done: `!{word}` only works in a job's thread. Write it there, or see `{command} help`."
    return show(words, word=escape(word))


def forwarded_alone(message_ts: str, thread_ts: str = "") -> ChatMessage:
    """Asks what to do with a message that was forwarded to Pagehand without a task."""
    ask = "What should I do with this message? Press *Write the task*: the message goes along."
    return paragraph(ask, button("Write the task", HAND_OVER, f"{message_ts}/{thread_ts}"))


def help_text(show: MessageContext) -> Markup:
    """Returns the help."""
    return joined(map(show, _HELP), "\n")
