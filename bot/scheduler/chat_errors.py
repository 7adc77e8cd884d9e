"""Slack's errors in the domain's words."""

from bot.domain.notices.deliver import (
    DeliveryFailure,
    DeliveryRejected,
    DeliveryUncertain,
    NotAllowed,
    RateLimited,
    Unreachable,
)
from bot.errors import ChatBusy, ChatError, ChatMissingScope, ChatNotAllowed, ChatUncertain, ChatUnreachable

BLOCKS_REFUSED = frozenset(
    {"invalid_arguments", "invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long"}
)
"""Slack's error codes for which the same words without blocks may be taken."""


def delivery_failure(error: ChatError) -> DeliveryFailure:
    """Returns what the error of a call means for the notice that was to be delivered."""
    match error:
        case ChatBusy():
            return RateLimited(error.reason, error.retry_after, error.method)
        case ChatUnreachable():
            return Unreachable(error.reason, error.retry_after)
        case ChatUncertain():
            return DeliveryUncertain(error.reason)
        case ChatNotAllowed():
            return NotAllowed(error.reason)
        case ChatMissingScope():
            return DeliveryRejected(error.reason, missing_scopes=error.scopes)
        case _:
            return DeliveryRejected(error.reason, blocks_refused=error.reason in BLOCKS_REFUSED)
