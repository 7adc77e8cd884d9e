"""What one person is told at once, and nobody else sees: answers to a command, a click or a reply. Pure.

Nothing of this is a notice: no row is owed to anybody, and often it is said because none could be written.
"""

from typing import assert_never

from bot.domain.command_options import OptionFault, OptionName, WrongOption
from bot.domain.thread_words import ThreadWord
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import escape

GOT_IT = "Got it. A card that tells how it goes appears here in a moment."
STILL_RECORDING = (
    "Noting that down takes longer than usual. Please wait a minute: if nothing appears in this channel by then, "
    "try again."
)
NOT_RECORDED = (
    "Pagehand could not note that down: its database is not available right now. Nothing was started or sent. "
    "Please try again in a minute."
)
NO_RECORD = (
    "Nothing was done: Pagehand has no record of that any more. Records are deleted some months after a job's end, "
    "or on request."
)
COMMAND_UNREADABLE = "Slack's message about that could not be read, so nothing was started. Please try again."
OTHER_INSTALLATION = (
    "This Pagehand works for another workspace or app, so nothing was started. Please tell whoever installed it."
)


def unknown_command(message_context: MessageContext) -> str:
    """Answers a slash command of our app that is not the one that was set."""
    return f"Pagehand does not know this command. Try `{escape(message_context.command)} help`."


def unknown_interaction(message_context: MessageContext) -> str:
    """Answers a click or a shortcut that means nothing here."""
    return (
        "Pagehand does not know this button or shortcut, so nothing was done. "
        f"`{escape(message_context.command)} help` tells what it can do."
    )


def unknown_job(message_context: MessageContext) -> str:
    """Answers a reply below a card of which there is no record that can be used."""
    return (
        "Your reply was not sent: Pagehand has no usable record of this job any more. Records are deleted some months "
        f"after a job's end, or on request. Start a new one with {message_context.slash}."
    )


def wrong_option(wrong: WrongOption, message_context: MessageContext) -> str:
    """Answers an option in front of a task that cannot be understood."""
    example = "`quiet`" if wrong.name is OptionName.QUIET else '`project:NAME`, or `project:"two words"`'
    match wrong.fault:
        case OptionFault.TWICE:
            what = f"`{wrong.name}` is there twice. Say it once, in front of the task: {example}."
        case OptionFault.EMPTY:
            what = f"`{wrong.name}:` names no project. Write the name right after the colon: {example}."
        case OptionFault.UNCLOSED:
            what = f"the name after `{wrong.name}:` begins with a quotation mark that is never closed. Write {example}."
        case _:
            assert_never(wrong.fault)
    return f"Nothing was started: {what} `{escape(message_context.command)} help` tells more."


def word_without_job(word: ThreadWord, message_context: MessageContext) -> str:
    """Answers a word for Pagehand that was written where there is no job."""
    return (
        f"Nothing was done: `{word}` is about a job, and this is not in a job's thread. Write `!{word}` in the thread "
        f"that it is about. `{escape(message_context.command)} help` tells what else there is."
    )


def word_meant(word: ThreadWord) -> str:
    """Answers what was probably meant as a word for Pagehand."""
    example = f"!{word} and the task" if word is ThreadWord.NEW else f"!{word}"
    return f"Did you mean `{example}`? Write just that in a new message; what is for the agent begins without `!`."


def edited_too_late(message_context: MessageContext) -> str:
    """Answers an edit by which an old message came to ask for a job."""
    return (
        "Nothing was started: an edit can ask for a job only in the first ten minutes after the message was written. "
        f"Write a new message, or use {message_context.slash}."
    )


def task_missing(message_context: MessageContext) -> str:
    """Answers options with no task behind them."""
    return (
        "Nothing was started: the task is missing. Write it after the options, as in "
        f'`{escape(message_context.command)} quiet Replace "colour" with "color" in the guides`.'
    )
