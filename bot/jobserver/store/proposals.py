"""The store of changes that are pushed but not yet proposed: recorded before the first attempt, kept until done."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import aiosqlite
from pydantic import TypeAdapter

from bot.jobapi.models import CheckResult, PullRequestDetails, PullRequestState
from bot.jobserver.errors import JobServerError
from bot.jobserver.store.database import Database, fetch_row
from bot.jobserver.store.records import (
    Instruction,
    PendingProposal,
    as_text,
    read_details,
    requester_from_row,
    write_details,
)

_CHECKS = TypeAdapter(tuple[CheckResult, ...])
_BATCH_SIZE = 20
_LONGEST_DESCRIPTION = 200_000
"""Characters; the rest is in the commits."""


class ProposalStore:
    """Every method is one transaction. A row that has grown since it was read never counts as settled."""

    def __init__(self, database: Database, *, now: Callable[[], datetime]) -> None:
        self._database = database
        self._now = now

    async def record_change(
        self, instruction: Instruction, *, title: str, description: str, checks: Sequence[CheckResult]
    ) -> PendingProposal:
        """Records what an instruction pushed, appended to a pending proposal; no text is appended twice."""
        async with self._database.transaction() as connection:
            known, found = await _read(connection, instruction.job_id), _CHECKS.dump_json(tuple(checks)).decode()
            if known is not None and known.branch == instruction.branch:
                await self._add(connection, known, description, found)
            else:
                await self._insert(connection, instruction, title, description, found)
            pending = await _read(connection, instruction.job_id)
            if pending is None:
                raise JobServerError("the database did not keep what is to be proposed")
            return pending

    async def _add(self, connection: aiosqlite.Connection, known: PendingProposal, addition: str, checks: str) -> None:
        whole = "\n\n".join(filter(None, (known.description, addition)))
        is_new = addition not in known.description and len(whole) <= _LONGEST_DESCRIPTION
        await connection.execute(
            "UPDATE proposals SET description = ?, checks = ?, version = version + 1, due_at = ? WHERE job_id = ?",
            (whole if is_new else known.description, checks, as_text(self._now()), known.job_id),
        )

    async def _insert(
        self, connection: aiosqlite.Connection, instruction: Instruction, title: str, description: str, checks: str
    ) -> None:
        who = instruction.requester
        await connection.execute(
            "INSERT OR REPLACE INTO proposals (job_id, branch, title, description, checks, extras, requester_name, "
            "requester_id, requester_url, due_at) SELECT id, ?, ?, ?, ?, iif(pr_branch IS ?, '', ?), ?, ?, ?, ? "
            "FROM jobs WHERE id = ?",
            (
                instruction.branch, title, description, checks, instruction.branch, "labels,review",
                who and who.name, who and who.id, who and who.url, as_text(self._now()), instruction.job_id,
            ),
        )  # fmt: skip

    async def of_job(self, job_id: str) -> PendingProposal | None:
        async with self._database.transaction() as connection:
            return await _read(connection, job_id)

    async def make_all_due(self) -> None:
        """For the start of the server: earlier obstacles may be gone."""
        await self._database.execute("UPDATE proposals SET due_at = ?", (as_text(self._now()),))

    async def due(self) -> list[PendingProposal]:
        """Returns a batch of due proposals, without those of active jobs, which propose their own changes."""
        rows = await self._database.rows(
            "SELECT proposals.* FROM proposals JOIN jobs ON jobs.id = job_id "
            "WHERE due_at <= ? AND status <> 'active' ORDER BY due_at LIMIT ?",
            (as_text(self._now()), _BATCH_SIZE),
        )
        return [_from_row(row) for row in rows]

    async def record_proposed(
        self, pending: PendingProposal, reported: PullRequestDetails, link: str
    ) -> PullRequestDetails:
        """Records the pull request."""
        async with self._database.transaction() as connection:
            await connection.execute(
                "UPDATE jobs SET pr_link = ?, pr_branch = ? WHERE id = ?", (link, pending.branch, pending.job_id)
            )
            await _delete(connection, pending)
            return await _record_details(connection, pending, reported)

    async def record_refused(self, pending: PendingProposal, reason: str, *, pause: timedelta) -> PullRequestDetails:
        """Records why the change could not be proposed; it is tried again after `pause`."""
        async with self._database.transaction() as connection:
            await connection.execute(
                "UPDATE proposals SET failures = failures + 1, due_at = ? WHERE job_id = ? AND version = ?",
                (as_text(self._now() + pause), pending.job_id, pending.version),
            )
            known = (await read_details(connection, pending.job_id)).pull_request
            row = await fetch_row(connection, "SELECT pr_branch FROM jobs WHERE id = ?", (pending.job_id,))
            if known is None or row is None or row["pr_branch"] != pending.branch:
                known = PullRequestDetails(state=PullRequestState.PENDING, checks=pending.checks)
            return await _record_details(connection, pending, known.model_copy(update={"reason": reason}))

    async def record_state(self, job_id: str, number: int, state: PullRequestState) -> None:
        """Records the state of a pull request, if it is still the job's current one."""
        async with self._database.transaction() as connection:
            details = await read_details(connection, job_id)
            known = details.pull_request
            if known and known.number == number:
                details = details.model_copy(update={"pull_request": known.model_copy(update={"state": state})})
                await write_details(connection, job_id, details)

    async def drop(self, pending: PendingProposal) -> None:
        """Drops a proposal that turned out to be empty."""
        async with self._database.transaction() as connection:
            await _delete(connection, pending)
            details = await read_details(connection, pending.job_id)
            if details.pull_request and details.pull_request.state is PullRequestState.PENDING:
                await write_details(connection, pending.job_id, details.model_copy(update={"pull_request": None}))


async def _read(connection: aiosqlite.Connection, job_id: str) -> PendingProposal | None:
    row = await fetch_row(connection, "SELECT * FROM proposals WHERE job_id = ?", (job_id,))
    return _from_row(row) if row else None


async def _delete(connection: aiosqlite.Connection, pending: PendingProposal) -> None:
    await connection.execute(
        "DELETE FROM proposals WHERE job_id = ? AND version = ?", (pending.job_id, pending.version)
    )


async def _record_details(
    connection: aiosqlite.Connection, pending: PendingProposal, reported: PullRequestDetails
) -> PullRequestDetails:
    details = await read_details(connection, pending.job_id)
    await write_details(connection, pending.job_id, details.model_copy(update={"pull_request": reported}))
    return reported


def _from_row(row: aiosqlite.Row) -> PendingProposal:
    return PendingProposal(
        job_id=row["job_id"],
        branch=row["branch"],
        title=row["title"],
        description=row["description"],
        checks=_CHECKS.validate_json(row["checks"]),
        wants_extras=bool(row["extras"]),
        requester=requester_from_row(row),
        version=row["version"],
        failures=row["failures"],
    )
