"""Claims of instructions: which is next, for whom, and whether who began it still holds it.

A worker holds what it claimed until its lease ends, or longer if nobody else wants it. Then it is another's, or its own
again: another attempt. Each write of a run asks first, once the job's row is locked, as the claim does.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    RowMapping,
    Select,
    Text,
    column,
    exists,
    func,
    literal,
    or_,
    select,
    update,
    values,
)

from bot.jobapi.models import JobDetails
from bot.jobserver.errors import LeaseLostError
from bot.jobserver.store.database import Session
from bot.jobserver.store.records import Instruction, change_job, read_details
from bot.jobserver.store.tables import WAITING, instructions, jobs, workers
from bot.queue.claims import is_free, owner_name

LEASE = timedelta(seconds=30)
PREFERENCE = timedelta(seconds=3)
"""How long a message waits for the worker that has the job's folder."""


_OF_JOB = jobs.c["branch", "session", "home", "partial_commit", "partial_file", "proposal", "proposal_tree"]
"""What an instruction needs of its job."""


@dataclass(frozen=True)
class Worker:
    """Who claims. `name` is that of one start of a process, `place` that of the folders in which it works."""

    name: str = field(default_factory=owner_name)
    place: str = ""


@dataclass(frozen=True)
class Wanted:
    """What a worker may claim: of these projects, but not what it is still ending (`besides`), and what may have killed
    a worker (`suspects`) only if it runs nothing else that may have.
    """

    projects: Collection[str]
    besides: Collection[int] = ()
    suspects: bool = True


async def claim_first(session: Session, worker: Worker, wanted: Wanted) -> RowMapping | None:
    """Claims the first instruction of a job, of the project that has the fewest running: the one that has waited for
    longest. Returns its row with what it needs of its job, and whether it was begun before; the job is locked.
    """
    may_begin = _may_begin(session, worker, wanted)
    for project in await _in_turn(session, wanted, may_begin):
        first = may_begin.where(instructions.c.project_id == project).with_for_update(of=jobs, skip_locked=True)
        while found := await session.first(first):
            # Asked twice: only now nobody else can change the job.
            is_still = (WAITING, is_free(instructions, session.time()))
            claiming = update(instructions).where(instructions.c.number == found["number"], *is_still)
            claim: dict[str, Any] = {"state": "running", "attempts": instructions.c.attempts + 1}
            claim |= {"claimed_by": worker.name, "claimed_until": session.time(ago=-LEASE)}
            if (await session.execute(claiming.values(claim))).rowcount:
                await change_job(session, found["job_id"], place=worker.place)
                was_begun = or_(instructions.c.attempts > 1, literal(found["claimed_by"] is not None))
                claimed = select(instructions, *_OF_JOB, was_begun.label("was_begun")).join(jobs)
                return await session.first(claimed.where(instructions.c.number == found["number"]))
    return None


async def _in_turn(session: Session, wanted: Wanted, may_begin: Select[Any]) -> list[str]:
    """Returns the projects that have something to begin. Each is looked up by index: the rest may be long."""
    if len(wanted.projects) <= 1:
        return list(wanted.projects)
    # SQLite has a limit for unions, but none for values.
    projects = values(column("name", Text), name="named").data([(name,) for name in wanted.projects]).cte("projects")
    is_its = instructions.c.project_id == projects.c.name
    is_running = (WAITING, instructions.c.state == "running", instructions.c.claimed_until > session.time())
    running = select(func.count()).where(is_its, *is_running).scalar_subquery().label("running")
    first = may_begin.with_only_columns(instructions.c.number).where(is_its).scalar_subquery().label("first")
    rows = await session.rows(select(projects.c.name, running, first))
    found = [row for row in rows if row["first"] is not None]
    return [row["name"] for row in sorted(found, key=lambda row: (row["running"], row["first"]))]


def _may_begin(session: Session, worker: Worker, wanted: Wanted) -> Select[Any]:
    """Selects the first instruction, of all projects, that the worker may claim."""
    same = instructions.alias("same")
    first_of_job = select(func.min(same.c.number)).where(same.c.job_id == instructions.c.job_id, WAITING)
    has_waited = instructions.c.created_at <= session.time(ago=PREFERENCE)
    is_there = exists().where(workers.c.place == jobs.c.place, workers.c.seen_at > session.time(ago=LEASE))
    first = (
        select(*instructions.c["number", "job_id", "claimed_by"])
        .join(jobs)
        .where(
            WAITING,
            is_free(instructions, session.time()),
            instructions.c.number == first_of_job.scalar_subquery(),
            or_(jobs.c.place == worker.place, has_waited, ~is_there),
        )
    )
    if wanted.besides:  # an empty list would be a table to scan
        first = first.where(instructions.c.number.not_in(wanted.besides))
    if not wanted.suspects:
        first = first.where(instructions.c.attempts == 0)
    return first.order_by(instructions.c.number).limit(1)


def held(instruction: Instruction) -> tuple[ColumnElement[bool], ...]:
    """Returns the conditions that an instruction runs under this very claim."""
    fence = (instructions.c.claimed_by == instruction.worker, instructions.c.attempts == instruction.attempts)
    return instructions.c.number == instruction.number, instructions.c.state == "running", *fence


async def lock_held(session: Session, instruction: Instruction) -> JobDetails:
    """Locks the job of an instruction, and returns its details. Raises LeaseLostError if it is another's now."""
    details = await read_details(session, instruction.job_id)
    if await session.first(select(instructions.c.number).where(*held(instruction))) is None:
        raise LeaseLostError
    return details
