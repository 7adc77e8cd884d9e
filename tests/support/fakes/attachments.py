"""Files and forwarded messages, by name alone."""

from bot.domain.messages import ForwardedMessage, SlackFile
from bot.domain.requests.request import Attachments


def holding(*names: str, forwarded: bool = False) -> Attachments:
    """Returns files of these names and, if `forwarded`, another person's message."""
    messages = (ForwardedMessage("UCLEO", "theirs"),) if forwarded else ()
    return Attachments(tuple(SlackFile("", name) for name in names), messages)
