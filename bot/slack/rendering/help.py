"""The help: what Pagehand does, and how to ask for it. Pure."""

from bot.domain.commands.commands import LoneWord
from bot.domain.threads.thread import Thread, ThreadOrigin
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import Markup, escape, joined
from bot.slack.rendering.words import help as words


def help_text(message_context: MessageContext, meant: LoneWord | None = None) -> Markup:
    """Returns the help; it begins with an explanation where a word was `meant` as a command of its own."""
    command, word = escape(message_context.command), escape(meant or LoneWord.STATUS)
    lines = [line(command=command, bot=message_context.bot, word=word) for line in words.HELP]
    first = [] if meant is None else [words.NO_SUCH_COMMAND[meant](command=command)]
    return joined([*first, *lines], "\n")


def help_in_thread(thread: Thread, message_context: MessageContext) -> Markup:
    """Returns what can be done in a job's thread."""
    among_others = thread.origin is ThreadOrigin.CONVERSATION
    first = words.MENTIONS_GO(bot=message_context.bot) if among_others else words.ALL_REPLIES_GO
    return joined([first, *(line() for line in words.HELP_IN_THREAD)], "\n")
