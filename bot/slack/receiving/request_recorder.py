"""Records commands and clicks before they are acknowledged, within the 3 seconds that Slack waits."""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from bot.domain.requests.request import Person
from bot.errors import ChatError
from bot.runtime.health import RecordingHealth
from bot.runtime.tasks import BackgroundTasks
from bot.slack.rendering.blocks import ChatMessage
from bot.slack.rendering.ephemeral_texts import NOT_RECORDED
from bot.slack.sending.ephemeral import EphemeralSender

logger = logging.getLogger(__name__)

RECORDING_TIMEOUT = 2.0
"""Seconds that a command or a click waits for its row; Slack gives up after 3."""


class RecordingOutcome(Enum):
    """The result of recording within the time allowed."""

    RECORDED = auto()
    FAILED = auto()
    LATE = auto()


@dataclass(frozen=True)
class RequestRecorder:
    """Runs the service's calls, and reports failures, which the service has logged, to `recording_health`.

    A call that takes longer than `recording_timeout` seconds is not cancelled, since it may be committing: it goes on
    in the background.
    """

    ephemeral_sender: EphemeralSender
    recording_health: RecordingHealth
    recording_timeout: float = field(default=RECORDING_TIMEOUT, kw_only=True)
    _background: BackgroundTasks = field(default_factory=BackgroundTasks, init=False)

    async def record_interaction(
        self, call: Coroutine[Any, Any, object], person: Person, channel_id: str
    ) -> RecordingOutcome:
        """Records a command or a click, which Slack does not send again. If it fails after it was LATE, the person is
        told.
        """
        task = self._background.spawn(self._succeeds(call), name="recording for Slack")
        done, _ = await asyncio.wait({task}, timeout=self.recording_timeout)
        if done:
            return RecordingOutcome.RECORDED if task.result() else RecordingOutcome.FAILED
        self._background.spawn(self._tell_late_failure(task, person, channel_id), name="telling of a late failure")
        return RecordingOutcome.LATE

    def tell_in_background(
        self, person: Person, channel_id: str, words: str | ChatMessage, *, thread_ts: str = ""
    ) -> None:
        """Tells one person something. The acknowledgement does not wait for it, and without a row it may get lost. With
        `thread_ts`, it is about something that they wrote in that thread.
        """
        self._background.spawn(self._tell(person, channel_id, words, thread_ts), name="telling one person")

    def in_background(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        """Runs something that no acknowledgement waits for, and that may get lost."""
        self._background.spawn(work, name=name)

    async def drain(self, timeout: float) -> None:  # noqa: ASYNC109 - the caller shares one deadline among several
        """Waits for the background tasks, then cancels what still runs."""
        await self._background.drain(timeout)

    async def _succeeds(self, call: Coroutine[Any, Any, object]) -> bool:
        try:
            await call
        except Exception as error:  # noqa: BLE001 - whatever it was, the person is told
            self.recording_health.record_failure(error)
            return False
        return True

    async def _tell_late_failure(self, task: asyncio.Task[bool], person: Person, channel_id: str) -> None:
        if not await task:
            await self._tell(person, channel_id, NOT_RECORDED)

    async def _tell(self, person: Person, channel_id: str, words: str | ChatMessage, thread_ts: str = "") -> None:
        message = words if isinstance(words, ChatMessage) else ChatMessage(words)
        try:
            await self.ephemeral_sender.send(person.id, channel_id, message, thread_ts=thread_ts)
        except ChatError as error:
            logger.warning("%s could not be told something: %s", person.id, error)
