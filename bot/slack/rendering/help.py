"""The help, which answers the slash command alone. Pure."""

from typing import assert_never

from bot.domain.commands import LoneWord
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import escape


def help_text(message_context: MessageContext, meant: LoneWord | None = None) -> str:
    """Returns the help; it begins with an explanation where a word was `meant` as a command of its own."""
    command = escape(message_context.command)
    insisting = f'`{command} "{meant or LoneWord.STATUS}"`'
    return "\n".join(
        (
            *(() if meant is None else (_no_such_command(command, meant),)),
            "*Pagehand hands a documentation task to an agent and brings back the pull request.*",
            f'• Start: `{command} Replace "colour" with "color" in the guides`. A card shows how it goes.',
            "• Steer: reply in the card's thread. Each reply goes to the same job.",
            "• Talk among yourselves there: begin the reply with `//`, and it is not sent.",
            "• Marks on a reply: :eyes: noted down, :white_check_mark: passed on, :warning: see the thread.",
            f"• `status`, `list`, `cancel` or `stop` alone show this help. As a task, write it in quotes: {insisting}.",
        )
    )


def _no_such_command(command: str, meant: LoneWord) -> str:
    match meant:
        case LoneWord.STATUS | LoneWord.LIST:
            instead = "Each job's card, in the channel where it was asked for, always shows the newest state."
        case LoneWord.CANCEL | LoneWord.STOP:
            instead = "A job cannot be stopped from Slack: the job API has no way to. Reply in its thread to steer it."
        case _:
            assert_never(meant)
    return f"Nothing was started: `{command} {meant}` is not a command. {instead}"
