"""What one person is told at once, and nobody else sees: answers to a command, a click or a reply. Pure.

Nothing of this is a notice: no row is owed to anybody, and often it is said because none could be written.
"""

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
COMMAND_UNREADABLE = "Slack's message about that could not be read, so nothing was started. Please try again."
NOT_IN_A_CHANNEL = (
    "Nothing was started: a job has its thread in a channel, where people can steer it, and not in a direct message. "
    "Please run the command in a channel."
)
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
