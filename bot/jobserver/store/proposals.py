"""The store of changes that are pushed but not yet proposed: recorded before the first attempt, kept until done."""

from collections.abc import Sequence
from datetime import timedelta

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, RowMapping, bindparam, delete, insert, select, update

from bot.jobapi.models import CheckResult, PullRequestDetails, PullRequestState, Status
from bot.jobserver.errors import JobServerError
from bot.jobserver.store.claims import lock_held
from bot.jobserver.store.database import Database, Session, transaction
from bot.jobserver.store.records import (
    Instruction,
    PendingProposal,
    read_details,
    requester_from_row,
    requester_values,
    write_details,
)
from bot.jobserver.store.tables import jobs, proposals

_OF_JOB = select(proposals).where(proposals.c.job_id == bindparam("job"))
_CHECKS = TypeAdapter(tuple[CheckResult, ...])
_BATCH_SIZE = 20
_LONGEST_DESCRIPTION = 200_000
"""Characters; the rest is in the commits."""


class ProposalStore:
    """Those of one project. Every method is one transaction. A row that has grown since it was read never counts as
    settled.
    """

    def __init__(self, database: Database, project_id: str) -> None:
        self.database = database
        self._of_project = select(jobs.c.id).where(jobs.c.project_id == project_id)

    @transaction
    async def record_change(
        self, session: Session, instruction: Instruction, *, title: str, description: str, checks: Sequence[CheckResult]
    ) -> PendingProposal:
        """Records what an instruction pushed, appended to a pending proposal; no text is appended twice."""
        job = await session.first(select(jobs.c.pr_branch).where(jobs.c.id == instruction.job_id).with_for_update())
        if job is None:
            raise JobServerError("the job of what is to be proposed has been deleted")
        await lock_held(session, instruction)
        values: dict[str, object] = {"checks": _CHECKS.dump_json(tuple(checks)).decode(), "due_at": session.time()}
        known = await _read(session, instruction.job_id)
        if known is not None and known.branch == instruction.branch:
            whole = "\n\n".join(filter(None, (known.description, description)))
            is_new = description not in known.description and len(whole) <= _LONGEST_DESCRIPTION
            values["description"] = whole if is_new else known.description
            grown = update(proposals).where(proposals.c.job_id == known.job_id)
            await session.execute(grown.values(values | {"version": proposals.c.version + 1}))
        else:
            await session.execute(delete(proposals).where(proposals.c.job_id == instruction.job_id))
            extras = "" if job["pr_branch"] == instruction.branch else "labels,review"
            values |= requester_values(instruction.requester)
            values |= {"job_id": instruction.job_id, "branch": instruction.branch, "extras": extras}
            values |= {"title": title, "description": description}
            await session.execute(insert(proposals), values)
        [row] = await session.rows(_OF_JOB, job=instruction.job_id)
        return _from_row(row)

    @transaction
    async def of_job(self, session: Session, job_id: str) -> PendingProposal | None:
        return await _read(session, job_id)

    @transaction
    async def make_all_due(self, session: Session) -> None:
        """For the start of the server: earlier obstacles may be gone."""
        own = update(proposals).where(proposals.c.job_id.in_(self._of_project))
        await session.execute(own.values(due_at=session.time()))

    @transaction
    async def take_due(self, session: Session) -> list[PendingProposal]:
        """Returns a batch of due proposals, without those of active jobs, which propose their own changes. Nobody else
        gets them until they have been tried, or somebody has had long enough for that.
        """
        of_idle = select(proposals).join(jobs).where(jobs.c.status != Status.ACTIVE, jobs.c.id.in_(self._of_project))
        due = of_idle.where(proposals.c.due_at <= session.time()).order_by(proposals.c.due_at).limit(_BATCH_SIZE)
        rows = await session.rows(due.with_for_update(of=proposals, skip_locked=True))
        taken = update(proposals).where(proposals.c.job_id.in_([row["job_id"] for row in rows]))
        await session.execute(taken.values(due_at=session.time(ago=-timedelta(minutes=10))))
        return [_from_row(row) for row in rows]

    @transaction
    async def record_proposed(
        self, session: Session, pending: PendingProposal, reported: PullRequestDetails, link: str
    ) -> PullRequestDetails:
        """Records the pull request."""
        details = await _record_details(session, pending, reported, pr_link=link, pr_branch=pending.branch)
        await _delete(session, pending)
        return details

    @transaction
    async def record_refused(
        self, session: Session, pending: PendingProposal, reason: str, *, pause: timedelta
    ) -> PullRequestDetails:
        """Records why the change could not be proposed; it is tried again after `pause`, unless it has grown, or been
        proposed by another process.
        """
        known = (await read_details(session, pending.job_id)).pull_request
        later = update(proposals).where(*_as_read(pending))
        again = {"failures": proposals.c.failures + 1, "due_at": session.time(ago=-pause)}
        is_owed = bool((await session.execute(later.values(again))).rowcount)
        row = await session.first(select(jobs.c.pr_branch).where(jobs.c.id == pending.job_id))
        if known is None or row is None or row["pr_branch"] != pending.branch:
            known = PullRequestDetails(state=PullRequestState.PENDING, checks=pending.checks)
        if not is_owed:
            return known
        return await _record_details(session, pending, known.model_copy(update={"reason": reason}))

    @transaction
    async def record_state(self, session: Session, job_id: str, number: int, state: PullRequestState) -> None:
        """Records the state of a pull request, if it is still the job's current one."""
        details = await read_details(session, job_id)
        known = details.pull_request
        if known and known.number == number:
            details = details.model_copy(update={"pull_request": known.model_copy(update={"state": state})})
            await write_details(session, job_id, details)

    @transaction
    async def drop(self, session: Session, pending: PendingProposal) -> None:
        """Drops a proposal that turned out to be empty."""
        details = await read_details(session, pending.job_id)
        await _delete(session, pending)
        if details.pull_request and details.pull_request.state is PullRequestState.PENDING:
            await write_details(session, pending.job_id, details.model_copy(update={"pull_request": None}))


async def _read(session: Session, job_id: str) -> PendingProposal | None:
    row = await session.first(_OF_JOB, job=job_id)
    return _from_row(row) if row else None


def _as_read(pending: PendingProposal) -> tuple[ColumnElement[bool], ...]:
    return proposals.c.job_id == pending.job_id, proposals.c.version == pending.version


async def _delete(session: Session, pending: PendingProposal) -> None:
    await session.execute(delete(proposals).where(*_as_read(pending)))


async def _record_details(
    session: Session, pending: PendingProposal, reported: PullRequestDetails, **more: str
) -> PullRequestDetails:
    details = await read_details(session, pending.job_id)
    await write_details(session, pending.job_id, details.model_copy(update={"pull_request": reported}), **more)
    return reported


def _from_row(row: RowMapping) -> PendingProposal:
    same = {name: row[name] for name in ("job_id", "branch", "title", "description", "version", "failures")}
    checks, extras = _CHECKS.validate_json(row["checks"]), bool(row["extras"])
    return PendingProposal(**same, checks=checks, wants_extras=extras, requester=requester_from_row(row))
