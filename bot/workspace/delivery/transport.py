"""The interface of transports to the app: a WebSocket or signed requests."""

from typing import Protocol

from bot.workspace.wire.envelopes import Ack, Envelope


class NotDeliveredError(Exception):
    """No acknowledgement arrived.

    Args:
        reason: Slack's reason.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Transport(Protocol):
    """A transport to the app."""

    @property
    def connected(self) -> bool:
        """Whether the app can be reached."""

    async def send(self, envelope: Envelope, ack_timeout: float) -> Ack:
        """Sends, and waits up to `ack_timeout` seconds for the acknowledgement.

        Raises:
            NotDeliveredError: None arrived, or the app could not be reached.
        """

    async def wait_until_connected(self, timeout: float) -> None:  # noqa: ASYNC109 - the word of asyncio's own wait_for
        """Returns as soon as the app can be reached, or after `timeout` seconds."""
