"""Claims of instructions: which is next, for whom, and whether who began it still holds it.

A worker holds what it claimed until its lease ends, or longer if nobody else wants it. Then it is another's, or its own
again: another attempt. Each write of a run asks first, once the job's row is locked, as the claim does.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy import Boolean, RowMapping, Select, Text, bindparam, column, exists, func, or_, select, update, values

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
_SAME = instructions.alias("same")
_FIRST_OF_JOB = select(func.min(_SAME.c.number)).where(_SAME.c.job_id == instructions.c.job_id, WAITING)
_IS_THERE = exists().where(workers.c.place == jobs.c.place, workers.c.seen_at > bindparam("seen"))
_IS_FREE = (WAITING, is_free(instructions, bindparam("now")))
_MAY_BEGIN = (
    select(*instructions.c["number", "job_id", "claimed_by"])
    .join(jobs)
    .where(
        *_IS_FREE,
        instructions.c.number == _FIRST_OF_JOB.scalar_subquery(),
        or_(jobs.c.place == bindparam("place"), instructions.c.created_at <= bindparam("waited"), ~_IS_THERE),
    )
    .order_by(instructions.c.number)
    .limit(1)
)
"""Selects the first instruction, of all projects, that a worker may claim."""
_OF_PROJECT = instructions.c.project_id == bindparam("project")
IS_IT = instructions.c.number == bindparam("instruction")
# Asked once more: only now, with the job locked, nobody else can change it.
_CLAIM = update(instructions).where(IS_IT, *_IS_FREE).values(state="running", attempts=instructions.c.attempts + 1)
_WAS_BEGUN = or_(instructions.c.attempts > 1, bindparam("was_claimed", type_=Boolean))
_CLAIMED = select(instructions, *_OF_JOB, _WAS_BEGUN.label("was_begun")).join(jobs).where(IS_IT)
IS_RUNNING = (instructions.c.state == "running", instructions.c.claimed_by == bindparam("worker"))
HELD = (IS_IT, *IS_RUNNING, instructions.c.attempts == bindparam("attempt"))
"""The conditions that an instruction runs under a claim, with the parameters of `claim_of`."""
_HELD = select(instructions.c.number).where(*HELD)


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
    times = {"now": session.time(), "seen": session.time(ago=LEASE), "waited": session.time(ago=PREFERENCE)}
    may_begin, asked = _may_begin(wanted), times | {"place": worker.place}
    first = may_begin.where(_OF_PROJECT).with_for_update(of=jobs, skip_locked=True)
    for project in await _in_turn(session, wanted, may_begin, asked):
        while found := await session.first(first, **asked, project=project):
            claim = {"claimed_by": worker.name, "claimed_until": session.time(ago=-LEASE), "now": times["now"]}
            if (await session.execute(_CLAIM, claim | {"instruction": found["number"]})).rowcount:
                await change_job(session, found["job_id"], place=worker.place)
                was_claimed = found["claimed_by"] is not None
                return await session.first(_CLAIMED, instruction=found["number"], was_claimed=was_claimed)
    return None


async def _in_turn(session: Session, wanted: Wanted, may_begin: Select[Any], asked: Mapping[str, str]) -> list[str]:
    """Returns the projects that have something to begin. Each is looked up by index: the rest may be long."""
    if len(wanted.projects) <= 1:
        return list(wanted.projects)
    # SQLite has a limit for unions, but none for values.
    projects = values(column("name", Text), name="named").data([(name,) for name in wanted.projects]).cte("projects")
    is_its = instructions.c.project_id == projects.c.name
    is_running = (WAITING, instructions.c.state == "running", instructions.c.claimed_until > session.time())
    running = select(func.count()).where(is_its, *is_running).scalar_subquery().label("running")
    first = may_begin.with_only_columns(instructions.c.number).where(is_its).scalar_subquery().label("first")
    rows = await session.rows(select(projects.c.name, running, first), **asked)
    found = [row for row in rows if row["first"] is not None]
    return [row["name"] for row in sorted(found, key=lambda row: (row["running"], row["first"]))]


def _may_begin(wanted: Wanted) -> Select[Any]:
    first = _MAY_BEGIN
    if wanted.besides:  # an empty list would be a table to scan
        first = first.where(instructions.c.number.not_in(wanted.besides))
    return first if wanted.suspects else first.where(instructions.c.attempts == 0)


def claim_of(instruction: Instruction) -> dict[str, Any]:
    """Returns the parameters of `HELD` for the very claim under which an instruction runs."""
    return {"instruction": instruction.number, "worker": instruction.worker, "attempt": instruction.attempts}


async def lock_held(session: Session, instruction: Instruction) -> JobDetails:
    """Locks the job of an instruction, and returns its details. Raises LeaseLostError if it is another's now."""
    details = await read_details(session, instruction.job_id)
    if await session.first(_HELD, **claim_of(instruction)) is None:
        raise LeaseLostError
    return details
