"""The store behind the job API: create, message, get, cancel, discard; and the end of old jobs, in batches."""

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import bindparam, delete, func, insert, or_, select, tuple_, update

from bot.jobapi.models import AgentJob, AttachedFile, ProposalState, Requester, Status
from bot.jobserver.errors import RateLimitExceededError, RequestRejectedError
from bot.jobserver.store import records
from bot.jobserver.store.database import NEWS, Database, Session, transaction
from bot.jobserver.store.files import drop_files
from bot.jobserver.store.plans import accept, supersede
from bot.jobserver.store.tables import (
    ARCHIVED,
    HAS_PARTIAL_WORK,
    NOT_ARCHIVED,
    WAITING,
    answers,
    attachments,
    files,
    instructions,
    jobs,
    old_branches,
    uploads,
)
from bot.queue.transaction import adding

_HOUR = timedelta(hours=1)
ANSWERS_KEPT = timedelta(days=30)
BATCH_SIZE = 200
"""Rows per transaction, so that others do not wait long."""
_BRANCH_RETRY_PERIOD = timedelta(days=7)
_SUBMITTING = 8_210
"""The first key of PostgreSQL's advisory locks for requests; the second is the project."""
_ADD_BRANCH = adding(old_branches)
_CHOOSE = update(jobs).where(jobs.c.id == bindparam("job_id")).returning(jobs)


class JobStore:
    """A project's jobs. Every method is one transaction; those that end old jobs are of at most BATCH_SIZE rows."""

    def __init__(
        self, database: Database, project_id: str, *, rate_limit: int, choices: records.Choices | None = None
    ) -> None:
        self.database = database
        self._project_id = project_id
        self._is_own = jobs.c.project_id == project_id
        self._rate_limit = rate_limit
        self.choices = choices or records.Choices()

    @transaction
    async def submit(self, session: Session, request: records.PromptRequest, template: records.JobTemplate) -> AgentJob:
        """Records a new job or a message and queues its prompt; a repeated Idempotency-Key gets the first response.

        Raises:
            RequestRejectedError: one of its subclasses.
        """
        # So that each request sees the ones before it, for its key and the limit.
        await session.lock(_SUBMITTING, self._project_id)
        if known := await _kept_answer(session, self._project_id, request):
            return known
        self.choices.check(request)
        known_job = None
        if request.job_id is not None:
            known_job = await records.read_job(session, self._project_id, request.job_id, lock=True)
            if known_job.status is Status.ARCHIVED:
                raise RequestRejectedError("this job is archived and accepts no more messages: create a new job")
        await _check_uploaded(session, self._project_id, request.files)
        await self._check_rate_limit(session)
        if known_job is None:
            job_id = await _insert_job(session, self._project_id, template)
        else:
            job_id = known_job.id
            if request.proposal:
                request = await accept(session, known_job, request)
            else:
                await supersede(session, known_job)
            await _reactivate_job(session, job_id)
        await _queue_instruction(session, self._project_id, request, job_id)
        await _tell_workers(session, job_id)
        chosen = {"job_id": job_id, "mode": request.mode, "model": request.model or template.model}
        job = records.job_from_row((await session.execute(_CHOOSE, chosen)).mappings().one())
        await _keep_answer(session, self._project_id, request, job)
        return job

    @transaction
    async def get(self, session: Session, job_id: str) -> AgentJob:
        """Returns a job. Raises RequestRejectedError."""
        return await records.read_job(session, self._project_id, job_id)

    @transaction
    async def cancel(self, session: Session, job_id: str, requester: Requester | None = None) -> records.Cancellation:
        """Stops all waiting instructions, and marks the running one to be stopped. Of a job that has ended, only a plan
        that waits is stopped.

        Raises:
            RequestRejectedError: the project has no such job.
        """
        job = await records.read_job(session, self._project_id, job_id, lock=True)
        await supersede(session, job)
        if job.status is not Status.ACTIVE:
            return records.Cancellation(await records.read_job(session, self._project_id, job_id))
        reason = f"stopped by {requester.name}" if requester else "stopped by request"
        running = await _stop_instructions(session, job_id, reason)
        await _tell_workers(session, job_id)
        await records.change_job(session, job_id, failure=None)
        details = await records.read_details(session, job_id)
        await records.write_details(session, job_id, details.model_copy(update={"reason": reason}))
        await records.end_if_idle(session, job_id)
        return records.Cancellation(await records.read_job(session, self._project_id, job_id), running)

    @transaction
    async def discard(self, session: Session, job_id: str) -> AgentJob:
        """Throws away the work of a failed instruction. An active job does not change.

        Raises:
            RequestRejectedError: the project has no such job.
        """
        job = await records.read_job(session, self._project_id, job_id, lock=True)
        if job.status is not Status.ACTIVE:
            await records.forget_partial_work(session, job_id)
        return await records.read_job(session, self._project_id, job_id)

    @transaction
    async def archive(self, session: Session, age: timedelta, age_of_proposed: timedelta) -> int:
        """Archives jobs that finished at least this long ago, or proposed a plan that still waits; returns how many."""
        waits_for_nobody = jobs.c.proposal_state.is_distinct_from(ProposalState.PROPOSED)
        is_old = or_(jobs.c.finished_at <= session.time(ago=age_of_proposed), waits_for_nobody)
        old = (NOT_ARCHIVED, self._is_own, jobs.c.finished_at <= session.time(ago=age), is_old)
        batch = select(jobs.c.id).where(*old).order_by(jobs.c.finished_at).limit(BATCH_SIZE)
        # Asked twice: PostgreSQL looks at a row again for which it had to wait, and a message may have come.
        archiving = update(jobs).where(jobs.c.id.in_(batch), *old)
        values = {"status": Status.ARCHIVED, "archived_at": session.time()}
        return (await session.execute(archiving.values(values))).rowcount

    @transaction
    async def delete_answers(self, session: Session) -> int:
        """Deletes responses whose Idempotency-Key may be reused; returns how many."""
        key = tuple_(answers.c.project_id, answers.c.key)
        old = select(*key.clauses).where(answers.c.created_at < session.time(ago=ANSWERS_KEPT)).limit(BATCH_SIZE)
        return (await session.execute(delete(answers).where(key.in_(old)))).rowcount

    @transaction
    async def jobs_to_delete(self, session: Session, age: timedelta) -> list[str]:
        """Returns the ids of jobs that were archived at least this long ago."""
        old = select(jobs.c.id).where(ARCHIVED, self._is_own, jobs.c.archived_at <= session.time(ago=age))
        return [row["id"] for row in await session.rows(old.order_by(jobs.c.archived_at).limit(BATCH_SIZE))]

    @transaction
    async def delete_jobs(self, session: Session, job_ids: list[str]) -> None:
        """Deletes jobs with their instructions and stored responses, and records their branches."""
        for job_id in job_ids:
            for column in (jobs.c.home, jobs.c.partial_file):
                await records.drop_file_of(session, column, job_id)
            logs = select(instructions.c.log).where(instructions.c.job_id == job_id)
            await drop_files(session, files.c.id.in_(logs))
            for name in await _proposed_branches(session, job_id):
                left = {"project_id": self._project_id, "name": name, "left_at": session.time()}
                await session.execute(_ADD_BRANCH, left)
            await session.execute(delete(answers).where(answers.c.job_id == job_id))
            await session.execute(delete(jobs).where(jobs.c.id == job_id))

    @transaction
    async def without_row(self, session: Session, job_ids: Sequence[str]) -> set[str]:
        """Returns those of these jobs that have been deleted."""
        known = await session.rows(select(jobs.c.id).where(jobs.c.id.in_(job_ids)))
        return set(job_ids) - {row["id"] for row in known}

    @transaction
    async def jobs_with_partial_work(self, session: Session) -> set[str]:
        return {row["id"] for row in await session.rows(select(jobs.c.id).where(HAS_PARTIAL_WORK, self._is_own))}

    @transaction
    async def old_branches(self, session: Session, after: str = "") -> list[str]:
        """Returns branches of deleted jobs in order, starting after the name `after`."""
        own = old_branches.c.project_id == self._project_id
        further = select(old_branches.c.name).where(own, old_branches.c.name > after).order_by(old_branches.c.name)
        return [row["name"] for row in await session.rows(further.limit(BATCH_SIZE))]

    @transaction
    async def forget_branch(self, session: Session, name: str) -> None:
        await session.execute(delete(old_branches).where(old_branches.c.name == name))

    @transaction
    async def give_up_branches(self, session: Session) -> int:
        """Forgets branches that could not be deleted within a week; returns how many."""
        old = old_branches.c.left_at < session.time(ago=_BRANCH_RETRY_PERIOD)
        giving_up = delete(old_branches).where(old, old_branches.c.project_id == self._project_id)
        return (await session.execute(giving_up)).rowcount

    async def _check_rate_limit(self, session: Session) -> None:
        counted = (instructions.c.project_id == self._project_id, instructions.c.created_at > session.time(ago=_HOUR))
        newest_first = select(instructions.c.created_at).where(*counted).order_by(instructions.c.created_at.desc())
        row = await session.first(newest_first.limit(1).offset(self._rate_limit - 1))
        if row is not None:
            free_at = datetime.fromisoformat(row["created_at"]) + _HOUR
            raise RateLimitExceededError(max(1, int((free_at - session.moment).total_seconds()) + 1))


async def _kept_answer(session: Session, project_id: str, request: records.PromptRequest) -> AgentJob | None:
    of_key = (answers.c.project_id == project_id, answers.c.key == request.idempotency_key)
    row = await session.first(select(answers.c.fingerprint, answers.c.answer).where(*of_key))
    if row is None:
        return None
    if row["fingerprint"] != request.fingerprint:
        raise RequestRejectedError("this Idempotency-Key was used for another request: use a new one", 422)
    return AgentJob.model_validate_json(row["answer"])


async def _keep_answer(session: Session, project_id: str, request: records.PromptRequest, job: AgentJob) -> None:
    values = {"key": request.idempotency_key, "project_id": project_id, "fingerprint": request.fingerprint}
    kept = {"answer": job.model_dump_json(), "created_at": session.time(), "job_id": job.id}
    await session.execute(insert(answers), values | kept)


async def _check_uploaded(session: Session, project_id: str, files: Sequence[AttachedFile]) -> None:
    """Raises RequestRejectedError for the first file that has not been uploaded; the others cannot be deleted now."""
    for index, file in enumerate(files):
        found = select(uploads.c.id).where(uploads.c.project_id == project_id, uploads.c.id == file.id)
        if await session.first(found.with_for_update(read=True, key_share=True)) is None:
            raise RequestRejectedError(
                f"files.{index}.id: this file has not been uploaded: upload it with PUT, then send this again"
            )


async def _insert_job(session: Session, project_id: str, template: records.JobTemplate) -> str:
    job_id = secrets.token_hex(8)
    values = {"id": job_id, "project_id": project_id, "status": Status.ACTIVE, "branch": records.branch_name(job_id, 1)}
    await session.execute(insert(jobs), values | vars(template) | {"created_at": session.time()})
    return job_id


async def _reactivate_job(session: Session, job_id: str) -> None:
    """Clears the last words of a job that had ended; an active one keeps them, and its failure, until it ends."""
    ended = update(jobs).where(jobs.c.id == job_id, jobs.c.status != Status.ACTIVE)
    result = await session.execute(ended.values(status=Status.ACTIVE, failure=None, finished_at=None))
    if result.rowcount:
        await records.forget_last_words(session, job_id)


async def _queue_instruction(session: Session, project_id: str, request: records.PromptRequest, job_id: str) -> None:
    """Queues the prompt, with its files."""
    values = {"project_id": project_id, "job_id": job_id, "state": "queued", "created_at": session.time()}
    values |= {name: getattr(request, name) for name in ("prompt", "request_id", "words", "mode", "model", "effort")}
    more = {"accepts": request.proposal or None, **records.requester_values(request.requester)}
    queued = insert(instructions).returning(instructions.c.number)
    number = (await session.execute(queued, values | more)).scalar_one()
    if request.files:
        files = [
            {
                "instruction": number,
                "position": position,
                "project_id": project_id,
                "upload_id": file.id,
                "name": file.name,
                "mimetype": file.mimetype,
            }
            for position, file in enumerate(request.files)
        ]
        await session.execute(insert(attachments), files)


async def _tell_workers(session: Session, job_id: str) -> None:
    """Once this is committed, wakes workers in other processes, which look each second anyway."""
    if session.dialect == "postgresql":
        await session.execute(select(func.pg_notify(NEWS, job_id)))


async def _stop_instructions(session: Session, job_id: str, reason: str) -> int | None:
    """Ends instructions that never started; others may be partly pushed, so the queue decides how they end."""
    of_job = update(instructions).where(instructions.c.job_id == job_id)
    is_queued = instructions.c.state == "queued"
    new = of_job.where(is_queued, instructions.c.attempts == 0, instructions.c.claimed_by.is_(None))
    await session.execute(new.values(stop_reason=reason, answer=f"({reason})", state="stopped"))
    others = of_job.where(WAITING).values(stop_reason=func.coalesce(instructions.c.stop_reason, reason))
    stopping = (await session.execute(others.returning(instructions.c.number, instructions.c.state))).mappings()
    return next((row["number"] for row in stopping if row["state"] == "running"), None)


async def _proposed_branches(session: Session, job_id: str) -> list[str]:
    """Returns the job's branches that have or had a pull request; others stay, since nobody could review them."""
    row = await session.first(select(jobs.c.branch, jobs.c.branch_number, jobs.c.pr_branch).where(jobs.c.id == job_id))
    if row is None:
        return []
    current = [row["branch"]] if row["branch"] == row["pr_branch"] else []
    return [records.branch_name(job_id, number) for number in range(1, row["branch_number"])] + current
