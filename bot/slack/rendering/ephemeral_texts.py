"""Immediate answers that only one person sees: to a command, a click or a reply; and the help. Pure.

They are not notices and have no row; often they are sent because no row could be written.
"""

from bot.domain.commands.commands import LoneWord
from bot.domain.commands.options import OptionName, WrongOption
from bot.domain.commands.thread_words import ThreadWord
from bot.notices.said import Markup, joined
from bot.slack.rendering.blocks import HAND_OVER, ChatMessage, button, paragraph
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import escape
from bot.slack.rendering.words import at_once as words
from bot.slack.rendering.words import help as help_words


def unknown_command(message_context: MessageContext) -> Markup:
    """Answers a slash command of our app other than the configured one."""
    return words.UNKNOWN_COMMAND(command=escape(message_context.command))


def unknown_interaction(message_context: MessageContext) -> Markup:
    """Answers an unknown click or shortcut."""
    return words.UNKNOWN_INTERACTION(command=escape(message_context.command))


def unknown_job(message_context: MessageContext) -> Markup:
    """Answers a reply to a card that has no usable record."""
    return words.UNKNOWN_JOB(slash=message_context.slash)


def wrong_option(wrong: WrongOption) -> Markup:
    """Answers a malformed option before a task."""
    example = words.EXAMPLE_OF_QUIET if wrong.name is OptionName.QUIET else words.EXAMPLE_OF_PROJECT
    return words.WRONG_OPTION[wrong.fault](name=escape(wrong.name), example=example)


def word_without_job(word: ThreadWord, message_context: MessageContext) -> Markup:
    """Answers a word for Pagehand written outside of any job."""
    return words.WORD_WITHOUT_JOB(word=escape(word), command=escape(message_context.command))


def forwarded_alone(message_ts: str, thread_ts: str = "") -> ChatMessage:
    """Asks what to do with a message that was forwarded to Pagehand without a task."""
    return paragraph(words.FORWARDED_ALONE, button(words.WRITE_TASK, HAND_OVER, f"{message_ts}/{thread_ts}"))


def edited_too_late(message_context: MessageContext) -> Markup:
    """Answers an edit by which an old message came to ask for a job."""
    return words.EDITED_TOO_LATE(slash=message_context.slash)


def task_missing(message_context: MessageContext) -> Markup:
    """Answers options without a task."""
    return words.TASK_MISSING(command=escape(message_context.command))


def help_text(message_context: MessageContext, meant: LoneWord | None = None) -> Markup:
    """Returns the help; it begins with an explanation if a word was `meant` as a separate command."""
    command, word = escape(message_context.command), escape(meant or LoneWord.STATUS)
    lines = [line(command=command, bot=message_context.bot, word=word) for line in help_words.HELP]
    first = [] if meant is None else [help_words.NO_SUCH_COMMAND[meant](command=command)]
    return joined([*first, *lines], "\n")
