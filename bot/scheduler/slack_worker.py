"""A worker that calls Slack: an outage of Slack is told apart from one of its own, and logged once for all of them."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from bot.errors import ChatUncertain
from bot.runtime.health.report import ComponentStatus
from bot.scheduler.worker import Worker, WorkerSettings
from bot.store.transaction import Store

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class SlackWorker(Worker[Item]):
    """Tells its own failures from Slack's. Its status in the health shows both."""

    def __init__(self, store: Store, settings: WorkerSettings, *, concurrency: int, at_once: int | None = None) -> None:
        super().__init__(store, settings, concurrency=concurrency, at_once=at_once)
        self._slack = settings.outage_of("Slack")

    def record_answer(self) -> None:
        """Records that Slack answers."""
        self._slack.record_success(by=self.name)

    def record_no_answer(self, reason: object, *, retry_after: float | None = None) -> None:
        """Records that Slack fails or cannot be reached; `retry_after`: seconds that it asks to wait."""
        self._slack.record_failure(reason, by=self.name, retry_after=retry_after)

    def status(self) -> ComponentStatus:
        """Returns whether the worker makes progress."""
        return max(super().status(), self._slack.status(self.name, by=self.name), key=ComponentStatus.severity)

    async def bounded(self, call: Awaitable[Answer]) -> Answer:
        """Awaits a call of Slack, for as long as one may take. Raises ChatError."""
        try:
            async with asyncio.timeout(self._settings.call_timeout):
                return await call
        except TimeoutError:
            raise ChatUncertain("no answer in time") from None
