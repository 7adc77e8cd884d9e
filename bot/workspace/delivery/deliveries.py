"""Delivers payloads to the app and waits for its acknowledgement, over either transport.

Unacknowledged events are sent again up to three times; commands and button presses are not.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import uuid4

from bot.runtime.tasks import BackgroundTasks
from bot.workspace.delivery.transport import NotDeliveredError, Transport
from bot.workspace.model.changes import ChangeSignal
from bot.workspace.model.entities import Json
from bot.workspace.wire.envelopes import Ack, Envelope, EnvelopeType

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


class Deliveries:
    """Sends payloads and keeps records of the most recent ones.

    Args:
        transport: The transport to the app.
        changes: Notified whenever a record changes.
        ack_timeout: Seconds until an unacknowledged event is sent again (Slack: 3).
        retry_delays: Seconds before each retry if nothing was listening (Slack: at once, 1 and 5 minutes).
    """

    def __init__(
        self,
        transport: Transport,
        changes: ChangeSignal,
        *,
        ack_timeout: float = 3.0,
        retry_delays: tuple[float, ...] = RETRY_DELAYS,
    ) -> None:
        self.ack_timeout = ack_timeout
        self.transport = transport
        self.records: list[DeliveryRecord] = []
        self._changes = changes
        self._retry_delays = retry_delays
        self._tasks = BackgroundTasks(expected=NotDeliveredError)  # the caller of request() sees it

    async def settled(self, timeout: float = 10.0) -> None:  # noqa: ASYNC109 - the word of asyncio's own wait_for
        """Waits until all deliveries have ended.

        Raises:
            TimeoutError: Some had not, after `timeout` seconds.
        """
        await self._changes.wait_for(lambda: not self._tasks, timeout, what="the end of all deliveries")

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
        task.add_done_callback(lambda _: self._changes.notify())
        return task

    async def _send_until_acked(self, record: DeliveryRecord) -> None:
        envelope, first = record.envelope, record.envelope
        for attempt in range(len(self._retry_delays) + 1):
            try:
                await self._attempt(record, envelope)
            except NotDeliveredError as error:
                if attempt == len(self._retry_delays):
                    record.given_up = True
                    self._changes.notify()
                    return
                if error.reason != "timeout":
                    await self._wait_before_retry(error, self._retry_delays[attempt])
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
            self._changes.notify()
