"""Notes who did what: a row of the audit trail and a line of the log, each without what people wrote."""

import logging
from typing import Protocol

from bot.domain.requests.audit import AuditAction, AuditEntry
from bot.domain.requests.request import Request
from bot.domain.threads.thread import Thread
from bot.ports.transaction import HasAudit

logger = logging.getLogger(__name__)


class AuditTransaction(HasAudit, Protocol):
    """What noting touches."""


async def note(
    tx: AuditTransaction, action: AuditAction, request: Request, thread: Thread, *, reason: str = ""
) -> None:
    """Notes that the person of a request did something about a job, or was refused it for a reason."""
    job = thread.state.job
    entry = AuditEntry(
        action,
        request.person,
        thread.channel_id,
        thread_id=thread.id,
        job_id=job.id if job else "",
        project=thread.project,
        way_in=request.way_in.value,
        reason=reason,
    )
    await tx.audit.add(entry)
    logger.info(
        "%s: %s, thread %s in %s%s", action.value, request.person_id, thread.id, thread.channel_id, _why(reason)
    )


def _why(reason: str) -> str:
    return f" ({reason})" if reason else ""
