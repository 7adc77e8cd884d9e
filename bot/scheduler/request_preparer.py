"""The request preparer: looks at each request before it is sent, and records what becomes of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from bot.actions import carry_out
from bot.domain.notices.messages import CARD_CHANGED
from bot.domain.projects import ProjectReason
from bot.domain.requests import SENT_KINDS, RequestKind, RequestState
from bot.ports import HasNotices, HasNow, HasRequestQueue, HasThreads, Store
from bot.replies import SETTLING
from bot.scheduler.worker import Worker, WorkerSettings
from bot.store_ports import ClaimedRequest


class PreparerTransaction(HasNow, HasThreads, HasRequestQueue, HasNotices, Protocol):
    """What preparing touches."""


class RequestPreparer(Worker[ClaimedRequest]):
    """Prepares requests that were received. `project` is the name of the only project; `settling` is for how long, in
    seconds, a follow-up waits before it is sent.
    """

    name = "request preparer"

    def __init__(
        self, store: Store, settings: WorkerSettings, *, project: str, settling: float = SETTLING, concurrency: int = 8
    ) -> None:
        super().__init__(store, settings, concurrency=concurrency)
        self._project = project
        self._settling = max(settling, SETTLING)

    async def claim(self, limit: int) -> Sequence[ClaimedRequest]:
        """Claims requests that were received."""
        return await self._store.transact(
            lambda tx: tx.requests.claim_received(self._owner, lease=self._lease, limit=limit)
        )

    async def process(self, item: ClaimedRequest, claimed_at: float) -> None:  # noqa: ARG002 - nothing remote is called
        """Prepares one request."""
        self.record_success()
        await self.record(lambda tx: self._carry_out(tx, item))

    async def _carry_out(self, tx: PreparerTransaction, item: ClaimedRequest) -> None:
        thread = await tx.threads.get(item.thread.id)
        request = await tx.requests.get(item.request.id)
        if thread is None or request is None or not await tx.requests.is_claimed_by(request.id, self._owner):
            return
        waiting = replace(request, state=RequestState.WAITING)
        if request.kind is RequestKind.START:
            options = replace(thread.options, project_reason=ProjectReason.ONLY_ONE)
            await tx.threads.set_project(thread.id, self._project, options)
            await tx.requests.prepared(waiting)
            await tx.notices.add(thread.id, CARD_CHANGED)
        elif request.kind not in SENT_KINDS:
            await carry_out(tx, thread, request)
            await tx.requests.prepared(replace(request, state=RequestState.ACCEPTED))
        else:
            settles_at = request.recorded_at + self._settling
            await tx.requests.prepared(waiting, due_in=max(settles_at - tx.now, 0.0))
