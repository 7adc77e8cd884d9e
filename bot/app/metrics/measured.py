"""Ports that count their calls."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from bot.app.metrics.counts import Counts, outcome_of
from bot.domain.deliver import ReactionCall
from bot.domain.jobs.job import Job
from bot.domain.requests.request import Requester, UploadedFile
from bot.domain.threads.thread import NO_FOLLOW_UPS, FollowUpCounts, Thread
from bot.errors import ChatError, JobApiError
from bot.notices.notice import Notice
from bot.ports.job_api import JobApi, PromptCall, SeenJob
from bot.ports.slack import Chat

CARD, REACTION = "card", "reaction"


class MeasuredJobApi:
    """A job API that counts its calls (ports.JobApi)."""

    def __init__(self, job_api: JobApi, counts: Counts) -> None:
        self._job_api = job_api
        self._counts = counts

    async def create(self, project: str, call: PromptCall) -> Job:
        """See JobApi."""
        with self._measured("create"):
            return await self._job_api.create(project, call)

    async def send_message(self, project: str, job_id: str, call: PromptCall) -> Job:
        """See JobApi."""
        with self._measured("message"):
            return await self._job_api.send_message(project, job_id, call)

    async def get(self, project: str, job_id: str) -> Job:
        """See JobApi."""
        with self._measured("get"):
            return await self._job_api.get(project, job_id)

    async def look(self, project: str, job_id: str, *, unless: bytes = b"") -> SeenJob | None:
        """See JobApi. Each is a poll."""
        try:
            with self._measured("get"):
                seen = await self._job_api.look(project, job_id, unless=unless)
        except JobApiError:
            self._counts.polled("failed")
            raise
        self._counts.polled("unchanged" if seen is None else "changed")
        return seen

    def can_cancel(self, project: str) -> bool:
        """See JobApi."""
        return self._job_api.can_cancel(project)

    async def cancel(
        self, project: str, job_id: str, *, idempotency_key: str, requester: Requester | None = None
    ) -> Job:
        """See JobApi."""
        with self._measured("cancel"):
            return await self._job_api.cancel(project, job_id, idempotency_key=idempotency_key, requester=requester)

    async def discard(self, project: str, job_id: str, *, idempotency_key: str) -> Job:
        """See JobApi."""
        with self._measured("discard"):
            return await self._job_api.discard(project, job_id, idempotency_key=idempotency_key)

    def takes_files(self, project: str) -> bool:
        """See JobApi."""
        return self._job_api.takes_files(project)

    async def upload(self, project: str, content: bytes, *, name: str, mimetype: str) -> UploadedFile:
        """See JobApi."""
        with self._measured("upload"):
            return await self._job_api.upload(project, content, name=name, mimetype=mimetype)

    @contextmanager
    def _measured(self, operation: str) -> Iterator[None]:
        began, ended = time.perf_counter(), "other"
        try:
            yield
            ended = outcome_of(None)
        except JobApiError as error:
            ended = outcome_of(error)
            raise
        finally:
            self._counts.job_api_called(operation, ended, time.perf_counter() - began)


class MeasuredChat:
    """A chat that counts what it delivers, by the kind of the notice (ports.Chat)."""

    def __init__(self, chat: Chat, counts: Counts) -> None:
        self._chat = chat
        self._counts = counts

    async def post_card(
        self, thread: Thread, key: str, *, follow_ups: FollowUpCounts = NO_FOLLOW_UPS, without_blocks: bool = False
    ) -> str:
        """See Chat."""
        with self._measured(CARD):
            return await self._chat.post_card(thread, key, follow_ups=follow_ups, without_blocks=without_blocks)

    async def update_card(
        self, thread: Thread, *, follow_ups: FollowUpCounts = NO_FOLLOW_UPS, without_blocks: bool = False
    ) -> None:
        """See Chat."""
        with self._measured(CARD):
            await self._chat.update_card(thread, follow_ups=follow_ups, without_blocks=without_blocks)

    async def post(self, thread: Thread, notice: Notice) -> str:
        """See Chat."""
        with self._measured(notice.message.kind):
            return await self._chat.post(thread, notice)

    async def find(self, thread: Thread, key: str) -> str | None:
        """See Chat."""
        return await self._chat.find(thread, key)

    async def react(self, thread: Thread, message_ts: str, call: ReactionCall) -> None:
        """See Chat."""
        with self._measured(REACTION):
            await self._chat.react(thread, message_ts, call)

    async def tell(self, thread: Thread, notice: Notice, *, follow_ups: FollowUpCounts = NO_FOLLOW_UPS) -> None:
        """See Chat."""
        with self._measured(notice.message.kind):
            await self._chat.tell(thread, notice, follow_ups=follow_ups)

    async def join(self, channel_id: str) -> None:
        """See Chat."""
        await self._chat.join(channel_id)

    @contextmanager
    def _measured(self, kind: str) -> Iterator[None]:
        ended = "other"
        try:
            yield
            ended = outcome_of(None)
        except ChatError as error:
            ended = outcome_of(error)
            raise
        finally:
            self._counts.delivered(kind, ended)
