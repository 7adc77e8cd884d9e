"""Interactions, which only the app can answer, and their outcome."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.workspace.delivery.deliveries import Deliveries
from bot.workspace.delivery.transport import NotDeliveredError
from bot.workspace.model.entities import Json, Message


@dataclass(frozen=True)
class InteractionResult:
    """The outcome of an interaction.

    Args:
        ok: Whether the app acknowledged in time.
        text: The text that the person saw at once, if any.
        error: Slack's error code, such as ``operation_timeout``.
        payload: The acknowledgement's payload.
        message: The message that was shown, if any.
        errors: Errors in the inputs of a submitted view, by block id.
    """

    ok: bool
    text: str = ""
    error: str = ""
    payload: Json | None = None
    message: Message | None = None
    errors: Mapping[str, str] = field(default_factory=dict)


async def deliver_interaction(deliveries: Deliveries, payload: Json) -> InteractionResult:
    """Delivers a payload of the type ``interactive`` and returns the outcome."""
    try:
        ack = await deliveries.request("interactive", payload)
    except NotDeliveredError as error:
        return InteractionResult(ok=False, error=failure_code(error))
    return InteractionResult(ok=True, payload=ack.payload)


def failure_code(error: NotDeliveredError) -> str:
    """Returns Slack's code for an interaction that the app did not acknowledge."""
    return "operation_timeout" if "timeout" in error.reason else "dispatch_failed"
