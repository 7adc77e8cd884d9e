"""What becomes of the plan that a job's agent has proposed: it waits, is accepted, or does not count any more.

The newest counts, and only until the next words or a stop.
"""

from dataclasses import replace

from sqlalchemy import func, select

from bot.jobapi.models import AgentJob, Mode, Proposal, ProposalState, Status
from bot.jobserver.errors import RequestRejectedError
from bot.jobserver.store.database import Session
from bot.jobserver.store.records import PromptRequest, change_job
from bot.jobserver.store.tables import WORDS, instructions


async def record_proposal(session: Session, job_id: str, proposal: Proposal, **more: str) -> None:
    values = {"proposal": proposal.model_dump_json(), "proposal_state": proposal.state}
    await change_job(session, job_id, **values, **more)


async def supersede(session: Session, job: AgentJob) -> None:
    """Lets no one accept any more what is proposed."""
    proposal = proposal_of(job)
    if proposal is not None and proposal.state is ProposalState.PROPOSED:
        await record_proposal(session, job.id, proposal.model_copy(update={"state": ProposalState.SUPERSEDED}))


async def accept(session: Session, job: AgentJob, request: PromptRequest) -> PromptRequest:
    """Accepts the plan that a message names; returns the message with the words of those who asked for the plan, which
    describe its change. Raises RequestRejectedError.
    """
    proposal = proposal_of(job)
    if proposal is None or proposal.id != request.proposal:
        raise _refused("this is not the newest plan of its job")
    if proposal.state is ProposalState.ACCEPTED:
        raise _refused(f"{proposal.accepted_by or 'somebody'} has started this plan already")
    if job.status is Status.ACTIVE:
        raise _refused("something else is being done for this job: wait for what comes of it")
    if proposal.state is ProposalState.SUPERSEDED:
        raise _refused("this plan does not count any more: something was written since, or it was stopped")
    name = request.requester.name if request.requester else None
    accepted = proposal.model_copy(update={"state": ProposalState.ACCEPTED, "accepted_by": name})
    await record_proposal(session, job.id, accepted)
    return replace(request, words=await _words_of_plan(session, job.id))


def proposal_of(job: AgentJob) -> Proposal | None:
    return job.details.proposal if job.details else None


def _refused(words: str) -> RequestRejectedError:
    return RequestRejectedError(words, 409)


async def _words_of_plan(session: Session, job_id: str) -> str:
    """Returns what was asked for since the job last did anything but plan, without what was stopped."""
    of_job = instructions.c.job_id == job_id
    before = select(func.coalesce(func.max(instructions.c.number), 0)).where(of_job, instructions.c.mode != Mode.PLAN)
    is_wanted = (instructions.c.number > before.scalar_subquery(), instructions.c.state != "stopped")
    asked = select(WORDS).where(of_job, *is_wanted)
    rows = await session.rows(asked.order_by(instructions.c.number))
    return "\n\n".join(row["words"] for row in rows)
