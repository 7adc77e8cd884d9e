"""The help: what Pagehand does, and how to ask for it. Pure."""

from typing import assert_never

from bot.domain.commands import LoneWord
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import escape


def help_text(message_context: MessageContext, meant: LoneWord | None = None) -> str:
    """Returns the help; it begins with an explanation where a word was `meant` as a command of its own."""
    command, bot = escape(message_context.command), message_context.bot
    lines = [] if meant is None else [_no_such_command(command, meant)]
    lines += [
        "*Pagehand hands a documentation task to an agent and brings back the pull request.*",
        f'• Start: `{command} Replace "colour" with "color" in the guides`. A card shows how it goes.',
        f"• Or mention {bot} with the task, also in a thread, which it reads then; or write it a direct message.",
        "• In front of the task: `project:NAME` chooses the project; with `quiet` nobody is mentioned at the end.",
        "• Steer: reply in the job's thread. Each reply goes to the same job.",
        f"• In a thread that began as your own conversation, only replies that mention {bot} do.",
        "• Talk among yourselves: a reply that begins with `//`, or with somebody's name, is not sent.",
        "• By itself in the thread: `!status`, `!stop`, `!mute`, `!unmute`, `!retry`, `!help`.",
        "• Another job there: `!new` and the task. A :x: on the card stops the job, as `!stop` does.",
        "• Marks on a reply: :eyes: noted down, :white_check_mark: passed on, :warning: see the thread.",
    ]
    insisting = f'`{command} "{meant or LoneWord.STATUS}"`'
    last = f"• `status`, `list`, `cancel` or `stop` alone show this help. As a task, write it in quotes: {insisting}."
    return "\n".join((*lines, last))


def _no_such_command(command: str, meant: LoneWord) -> str:
    match meant:
        case LoneWord.STATUS | LoneWord.LIST:
            instead = "Each job's card, in the channel where it was asked for, always shows the newest state."
        case LoneWord.CANCEL | LoneWord.STOP:
            instead = "To stop a job, write `!stop` in its thread, or press Stop on its card."
        case _:
            assert_never(meant)
    return f"Nothing was started: `{command} {meant}` is not a command. {instead}"
