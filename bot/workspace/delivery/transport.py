"""A transport between the deliveries and the real one, which does to envelopes what the injected faults say."""

import asyncio
from typing import Protocol

from bot.workspace.failure_injection import Faults
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


REORDER_SECONDS = 0.5


class FaultyTransport:
    """Duplicates, reorders or loses envelopes and acknowledgements.

    Args:
        transport: The real way to the app.
        faults: Which envelopes are to suffer what.
    """

    def __init__(self, transport: Transport, faults: Faults) -> None:
        self._transport = transport
        self._faults = faults
        self._held: asyncio.Event | None = None

    @property
    def connected(self) -> bool:
        return self._transport.connected

    async def wait_until_connected(self, timeout: float) -> None:  # noqa: ASYNC109 - as the protocol has it
        await self._transport.wait_until_connected(timeout)

    async def send(self, envelope: Envelope, ack_timeout: float) -> Ack:
        await self._reorder(envelope)
        if self._faults.take_envelope_fault("lose", envelope.type):
            return await _no_ack(ack_timeout)
        if self._faults.take_envelope_fault("duplicate", envelope.type):
            return await self._send_twice(envelope, ack_timeout)
        ack = await self._transport.send(envelope, ack_timeout)
        if self._faults.take_envelope_fault("drop_ack", envelope.type):
            return await _no_ack(ack_timeout)
        return ack

    async def _send_twice(self, envelope: Envelope, ack_timeout: float) -> Ack:
        twice = (self._transport.send(envelope, ack_timeout) for _ in range(2))
        results = await asyncio.gather(*twice, return_exceptions=True)
        acks = [result for result in results if isinstance(result, Ack)]
        if not acks:
            raise NotDeliveredError("timeout")
        return acks[0]

    async def _reorder(self, envelope: Envelope) -> None:
        """Holds an envelope back until the next one comes, which lets it go."""
        held, self._held = self._held, None
        if held:
            held.set()
        elif self._faults.take_envelope_fault("reorder", envelope.type):
            self._held = asyncio.Event()
            try:
                await asyncio.wait_for(self._held.wait(), REORDER_SECONDS)
            except TimeoutError:
                self._held = None


async def _no_ack(ack_timeout: float) -> Ack:
    await asyncio.sleep(ack_timeout)
    raise NotDeliveredError("timeout")
