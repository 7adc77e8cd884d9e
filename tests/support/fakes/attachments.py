"""What a message holds besides words, by the names alone."""

from bot.domain.context.slack_files import ForwardedMessage, SlackFile
from bot.domain.requests.request import Attachments


def holding(*names: str, forwarded: bool = False) -> Attachments:
    """Files of these names, and, if `forwarded`, somebody else's message."""
    messages = (ForwardedMessage("UCLEO", "theirs"),) if forwarded else ()
    return Attachments(tuple(SlackFile("", name) for name in names), messages)
