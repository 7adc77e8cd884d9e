"""Records what people asked for before it is acknowledged, within the 3 seconds that Slack waits for an answer."""

import asyncio
import logging
from collections.abc import Coroutine
from enum import Enum, auto
from typing import Any, Protocol, TypeVar

from bot.domain.models import Person
from bot.errors import ChatError, StoreUnavailable
from bot.slack.blocks import Message
from bot.slack.whispers import Whispers

logger = logging.getLogger(__name__)
T = TypeVar("T")

PATIENCE = 2.0
"""Seconds that a command or a click waits for its row; Slack gives up after 3."""

NOT_RECORDED = (
    "Pagehand could not note that down: its database is not available right now. Nothing was started or sent. "
    "Please try again in a minute."
)
LATE = (
    "Noting that down takes longer than usual. Please wait a minute: if nothing appears in this channel by then, "
    "try again."
)


class Service(Protocol):
    """What a person can ask for (bot.service). Each raises StoreUnavailable where it could not be recorded."""

    async def start(self, person: Person, channel_id: str, prompt: str, *, source_key: str) -> None:
        """Records a job to start."""

    async def steer(self, person: Person, channel_id: str, thread_ts: str, message_ts: str, text: str) -> bool:
        """Records a reply; False where `thread_ts` is not the thread of a job that is known."""

    async def send_again(self, person: Person, channel_id: str, request_id: str) -> None:
        """Sends a request once more."""

    async def show_prompt(self, person: Person, channel_id: str, thread_id: str, *, source_key: str) -> None:
        """Shows a person the whole of a request."""


class NotRecorded(Exception):
    """An event's row could not be written: it must not be acknowledged, so that Slack brings it again."""


class Outcome(Enum):
    """How recording went within the time that there is."""

    RECORDED = auto()
    FAILED = auto()
    LATE = auto()


class Recorder:
    """Runs the service's calls. One that takes too long is not cut off (it may be committing) but finishes behind."""

    def __init__(self, whispers: Whispers, *, patience: float = PATIENCE) -> None:
        self._whispers = whispers
        self._patience = patience
        self._behind: set[asyncio.Task[Any]] = set()

    async def event(self, work: Coroutine[Any, Any, T]) -> T:
        """Records something Slack brings again if need be; NotRecorded where that is needed."""
        try:
            return await work
        except Exception as error:  # noqa: BLE001 - whatever it was, Slack brings it again
            _log(error)
        raise NotRecorded

    async def request(self, work: Coroutine[Any, Any, None], person: Person, channel_id: str) -> Outcome:
        """Records a command or a click; tells the person if it fails after they were answered."""
        task = self._keep(self._recorded(work))
        done, _ = await asyncio.wait({task}, timeout=self._patience)
        if done:
            return Outcome.RECORDED if task.result() else Outcome.FAILED
        self._keep(self._tell_late_failure(task, person, channel_id))
        return Outcome.LATE

    def whisper(self, person: Person, channel_id: str, words: str) -> None:
        """Tells one person something without a row, which is for when there can be none."""
        self._keep(self._whisper(person, channel_id, words))

    async def drain(self, timeout: float) -> None:  # noqa: ASYNC109 - the caller shares one deadline among several
        """Waits for what still runs behind, then cuts it off."""
        behind = set(self._behind)
        if not behind:
            return
        _, late = await asyncio.wait(behind, timeout=timeout)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def _recorded(self, work: Coroutine[Any, Any, None]) -> bool:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - whatever it was, the person is told
            _log(error)
            return False
        return True

    async def _tell_late_failure(self, task: asyncio.Task[bool], person: Person, channel_id: str) -> None:
        if not await task:
            await self._whisper(person, channel_id, NOT_RECORDED)

    async def _whisper(self, person: Person, channel_id: str, words: str) -> None:
        try:
            await self._whispers.send(person.id, channel_id, Message(words))
        except ChatError as error:
            logger.warning("%s could not be told something: %s", person.id, error.reason)

    def _keep(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(work)
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)
        return task


def _log(error: Exception) -> None:
    """Its words may hold what people wrote; its kind does not."""
    if isinstance(error, StoreUnavailable):
        logger.warning("not recorded, the database is unavailable: %s", error)
    else:
        logger.error("not recorded, because of an unexpected %s", type(error).__name__)
