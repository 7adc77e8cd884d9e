"""What brings payloads to the app: over a WebSocket, or in signed requests."""

from typing import Protocol

from bot.workspace.wire.envelopes import Ack, Envelope


class NotDeliveredError(Exception):
    """No acknowledgement came.

    Args:
        reason: Slack's word for why.
        retry: Whether the payload may be sent again.
    """

    def __init__(self, reason: str, *, retry: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry = retry


class Transport(Protocol):
    """A way to the app."""

    @property
    def connected(self) -> bool:
        """Whether there is somewhere to send to."""

    async def send(self, envelope: Envelope, ack_timeout: float) -> Ack:
        """Sends, and waits for the acknowledgement, so many seconds at most.

        Raises:
            NotDeliveredError: None came, or there was nowhere to send it.
        """

    async def wait_until_connected(self, timeout: float) -> None:  # noqa: ASYNC109 - the word of asyncio's own wait_for
        """Returns when there is somewhere to send to, or after so many seconds."""
