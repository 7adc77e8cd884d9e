"""Brings payloads to the app and waits for its acknowledgement, over Socket Mode or signed HTTP alike.

Events that are not acknowledged are sent again up to three times; commands and presses are not.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar
from uuid import uuid4

from bot.workspace.faults import Faults
from bot.workspace.models import Json

EnvelopeType = Literal["events_api", "slash_commands", "interactive"]
RETRY_DELAYS = (0.0, 60.0, 300.0)
REORDER_SECONDS = 0.5
KEPT = 100_000
Result = TypeVar("Result")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Envelope:
    """One sending of a payload. ``attempt`` is 0 the first time."""

    id: str
    type: EnvelopeType
    payload: Json
    attempt: int = 0
    reason: str = ""

    @property
    def accepts_response_payload(self) -> bool:
        """A modal's submission can be answered too, once there are modals."""
        return self.type == "slash_commands"


@dataclass(frozen=True)
class Ack:
    """What the app answered; ``payload`` is what it wants shown, if anything."""

    payload: Json = field(default_factory=dict)


class NotDeliveredError(Exception):
    """No acknowledgement; ``reason`` is Slack's word for why, ``retry`` whether it may be sent again."""

    def __init__(self, reason: str, *, retry: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry = retry


class Transport(Protocol):
    """A way to the app."""

    async def send(self, envelope: Envelope, ack_within: float) -> Ack:
        """Send and wait for the acknowledgement, seconds at most.

        Raises:
            NotDeliveredError: None came, or there was nowhere to send it.
        """

    async def available(self, within: float) -> None:
        """Return when there is somewhere to send to, or after so many seconds."""


@dataclass
class Delivery:
    """The record of one payload on its way."""

    envelope: Envelope
    attempts: int = 0
    acked: bool = False
    failed: str | None = None


class Deliveries:
    """Sends envelopes and keeps a record of the last ones.

    Args:
        transport: The way to the app.
        faults: Switches that duplicate, reorder or lose.
        changed: Called whenever a record changes.
        ack_within: Seconds an app has for its acknowledgement (Slack: 3), after which an event is sent again.
        retry_delays: Seconds before each resending where nothing was listening (Slack: at once, 1 and 5 minutes).
    """

    def __init__(
        self,
        transport: Transport,
        faults: Faults,
        changed: Callable[[], None],
        *,
        ack_within: float = 3.0,
        retry_delays: tuple[float, ...] = RETRY_DELAYS,
    ) -> None:
        self.transport = transport
        self.ack_within = ack_within
        self.retry_delays = retry_delays
        self.records: list[Delivery] = []
        self._faults = faults
        self._changed = changed
        self._tasks: set[asyncio.Task[Any]] = set()
        self._held: asyncio.Event | None = None

    @property
    def in_flight(self) -> int:
        return len(self._tasks)

    def event(self, payload: Json) -> None:
        """Deliver an event in the background, with resending."""
        record = self._record("events_api", payload)
        self._start(self._until_acked(record))

    async def request(self, envelope_type: EnvelopeType, payload: Json) -> Ack:
        """Deliver a command or a press, once, and return the app's acknowledgement.

        It goes on its way even if whoever asked is gone before the acknowledgement.

        Raises:
            NotDeliveredError: No acknowledgement in time, nowhere to send it, or the workspace has stopped.
        """
        record = self._record(envelope_type, payload)
        task = self._start(self._attempt(record, record.envelope))
        await asyncio.wait({task})
        if task.cancelled():
            raise NotDeliveredError("stopped")
        return task.result()

    async def stop(self) -> None:
        """Give up whatever is on its way."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _record(self, envelope_type: EnvelopeType, payload: Json) -> Delivery:
        record = Delivery(Envelope(str(uuid4()), envelope_type, payload))
        self.records.append(record)
        if len(self.records) > KEPT:
            del self.records[: KEPT // 2]
        return record

    def _start(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) and not isinstance(error, NotDeliveredError):
            _log.error("a delivery failed", exc_info=error)
        self._changed()

    async def _until_acked(self, record: Delivery) -> None:
        envelope, first = record.envelope, record.envelope
        for attempt in range(len(self.retry_delays) + 1):
            try:
                await self._attempt(record, envelope)
            except NotDeliveredError as error:
                if not error.retry or attempt == len(self.retry_delays):
                    return
                if error.reason != "timeout":
                    await self._before_retry(error, self.retry_delays[attempt])
                envelope = Envelope(first.id, first.type, first.payload, attempt + 1, error.reason)
            else:
                return

    async def _before_retry(self, error: NotDeliveredError, delay: float) -> None:
        """Where no connection was open, a new one ends the wait early."""
        if error.reason == "no_connection":
            await self.transport.available(delay or self.ack_within)
        else:
            await asyncio.sleep(delay)

    async def _attempt(self, record: Delivery, envelope: Envelope) -> Ack:
        await self._maybe_reorder(envelope)
        record.attempts += 1
        try:
            ack = await self._send(envelope)
        except NotDeliveredError as error:
            record.failed = error.reason
            raise
        else:
            record.acked, record.failed = True, None
            return ack
        finally:
            self._changed()

    async def _send(self, envelope: Envelope) -> Ack:
        if self._faults.take_envelope("lose", envelope.type):
            await asyncio.sleep(self.ack_within)
            raise NotDeliveredError("timeout")
        if self._faults.take_envelope("duplicate", envelope.type):
            twice = (self.transport.send(envelope, self.ack_within) for _ in range(2))
            answers = await asyncio.gather(*twice, return_exceptions=True)
            acks = [answer for answer in answers if isinstance(answer, Ack)]
            if not acks:
                raise NotDeliveredError("timeout")
            return acks[0]
        ack = await self.transport.send(envelope, self.ack_within)
        if self._faults.take_envelope("drop_ack", envelope.type):
            await asyncio.sleep(self.ack_within)
            raise NotDeliveredError("timeout")
        return ack

    async def _maybe_reorder(self, envelope: Envelope) -> None:
        held, self._held = self._held, None
        if held:
            held.set()
        elif self._faults.take_envelope("reorder", envelope.type):
            self._held = asyncio.Event()
            try:
                await asyncio.wait_for(self._held.wait(), REORDER_SECONDS)
            except TimeoutError:
                self._held = None
