"""Deliveries to the app, over either transport: envelopes, acknowledgements, retries, and what comes of an interaction.

Unacknowledged events are sent again up to three times; commands and button presses are not.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, Protocol, TypeVar
from uuid import uuid4

from bot.runtime.tasks import BackgroundTasks
from bot.workspace.model.entities import Json, Message
from bot.workspace.model.state import ChangeSignal

EnvelopeType = Literal["events_api", "slash_commands", "interactive"]


@dataclass(frozen=True)
class Envelope:
    """One attempt to send a payload.

    Args:
        id: The same for all attempts.
        type: Slack's name for the kind of payload.
        payload: The payload.
        attempt: 0 for the first.
        reason: Slack's reason for the retry.
    """

    id: str
    type: EnvelopeType
    payload: Json
    attempt: int = 0
    reason: str = ""


@dataclass(frozen=True)
class Ack:
    """The app's acknowledgement, with an optional payload."""

    payload: Json = field(default_factory=dict)


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


RETRY_DELAYS = (0.0, 60.0, 300.0)
MAX_RECORDS = 100_000
Result = TypeVar("Result")


@dataclass
class DeliveryRecord:
    """The outcome of delivering one payload.

    Args:
        envelope: The payload, as it was first sent.
        attempts: How often it was sent.
        acked: Whether the app acknowledged it.
        failed: Slack's reason why the last attempt failed, if it did.
        given_up: Whether an unacknowledged event will not be sent again.
    """

    envelope: Envelope
    attempts: int = 0
    acked: bool = False
    failed: str | None = None
    given_up: bool = False


@dataclass(eq=False)
class Deliveries:
    """Sends payloads and keeps records of the most recent ones.

    Args:
        transport: The transport to the app.
        changes: Notified whenever a record changes.
        ack_timeout: Seconds until an unacknowledged event is sent again (Slack: 3).
        retry_delays: Seconds before each retry if nothing was listening (Slack: at once, 1 and 5 minutes).
    """

    transport: Transport
    changes: ChangeSignal
    _: KW_ONLY
    ack_timeout: float = 3.0
    retry_delays: tuple[float, ...] = RETRY_DELAYS
    records: list[DeliveryRecord] = field(default_factory=list, init=False)
    _tasks: BackgroundTasks = field(default_factory=lambda: BackgroundTasks(expected=NotDeliveredError), init=False)
    """The caller of `request` sees the exception."""

    async def settled(self, timeout: float = 10.0) -> None:  # noqa: ASYNC109 - the word of asyncio's own wait_for
        """Waits until all deliveries have ended.

        Raises:
            TimeoutError: Some had not, after `timeout` seconds.
        """
        await self.changes.wait_for(lambda: not self._tasks, timeout, what="the end of all deliveries")

    def send_event(self, payload: Json) -> None:
        """Delivers an event in the background, with retries."""
        record = self._record("events_api", payload)
        self._spawn(self._send_until_acked(record))

    async def request(self, envelope_type: EnvelopeType, payload: Json) -> Ack:
        """Delivers a command or button press, once, and returns the app's acknowledgement.

        Cancelling the caller does not cancel the delivery.

        Raises:
            NotDeliveredError: No acknowledgement arrived in time, nothing was listening, or the workspace has stopped.
        """
        record = self._record(envelope_type, payload)
        task = self._spawn(self._attempt(record, record.envelope))
        await asyncio.wait({task})
        if task.cancelled():
            raise NotDeliveredError("stopped")
        return task.result()

    async def stop(self) -> None:
        """Cancels all deliveries."""
        await self._tasks.cancel()

    def _record(self, envelope_type: EnvelopeType, payload: Json) -> DeliveryRecord:
        record = DeliveryRecord(Envelope(str(uuid4()), envelope_type, payload))
        self.records.append(record)
        if len(self.records) > MAX_RECORDS:
            del self.records[: MAX_RECORDS // 2]
        return record

    def _spawn(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        task = self._tasks.spawn(work, name="a delivery")
        task.add_done_callback(lambda _: self.changes.notify())
        return task

    async def _send_until_acked(self, record: DeliveryRecord) -> None:
        envelope, first = record.envelope, record.envelope
        for attempt in range(len(self.retry_delays) + 1):
            try:
                await self._attempt(record, envelope)
            except NotDeliveredError as error:
                if attempt == len(self.retry_delays):
                    record.given_up = True
                    self.changes.notify()
                    return
                if error.reason != "timeout":
                    await self._wait_before_retry(error, self.retry_delays[attempt])
                envelope = Envelope(first.id, first.type, first.payload, attempt + 1, error.reason)
            else:
                return

    async def _wait_before_retry(self, error: NotDeliveredError, delay: float) -> None:
        """Waits. If no connection was open, a new one ends the wait early."""
        if error.reason == "no_connection":
            await self.transport.wait_until_connected(delay or self.ack_timeout)
        else:
            await asyncio.sleep(delay)

    async def _attempt(self, record: DeliveryRecord, envelope: Envelope) -> Ack:
        record.attempts += 1
        try:
            ack = await self.transport.send(envelope, self.ack_timeout)
        except NotDeliveredError as error:
            record.failed = error.reason
            raise
        else:
            record.acked, record.failed = True, None
            return ack
        finally:
            self.changes.notify()


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
