"""Why a follow-up can go to its job no more."""

from bot.domain.jobs.job import ARCHIVED, Problem
from bot.domain.requests.request import RejectionReason, RequestState
from bot.domain.threads.thread import Thread
from bot.ports.ports import HasRequests


async def obstacle(tx: HasRequests, thread: Thread) -> RejectionReason | None:
    """Why a follow-up cannot be sent any more; None when it can."""
    state = thread.state
    if state.problem is Problem.GONE:
        return RejectionReason.GONE
    if state.job is not None:
        return RejectionReason.ARCHIVED if state.job.status == ARCHIVED else None
    start = await tx.requests.find_start(thread.id)
    if start is None or start.state in {RequestState.REJECTED, RequestState.WITHDRAWN}:
        return RejectionReason.NOT_STARTED
    return None
