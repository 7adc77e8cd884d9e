"""The queue of instructions, with their progress and outcomes."""

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import RowMapping, bindparam, case, delete, exists, func, or_, select, update

from bot.jobapi.models import JobDetails, Mode, Proposal, Status
from bot.jobserver.errors import BudgetUsedUpError, LeaseLostError
from bot.jobserver.store.claims import HELD, IS_IT, IS_RUNNING, LEASE, Wanted, Worker, claim_first, claim_of, lock_held
from bot.jobserver.store.database import Database, Session, as_text, transaction
from bot.jobserver.store.files import drop_files, keep_file
from bot.jobserver.store.plans import record_proposal
from bot.jobserver.store.records import (
    AcceptedPlan,
    Attachment,
    EarlierInstruction,
    HeldInstruction,
    Instruction,
    InstructionBacklog,
    Outcome,
    ProgressUpdate,
    Question,
    QueuedReply,
    branch_name,
    change_job,
    drop_file_of,
    end_if_idle,
    forget_last_words,
    forget_partial_work,
    read_details,
    record_partial_work,
    requester_from_row,
    says_no,
    spent_from_row,
    write_details,
)
from bot.jobserver.store.tables import (
    IS_REPLY,
    WAITING,
    WORDS,
    attachments,
    files,
    instructions,
    jobs,
    spending,
    uploads,
    workers,
)
from bot.jobserver.usage import Spent
from bot.queue.transaction import replacing, upserting

_LONGEST_CONVERSATION = 50
"""The number of earlier instructions that an agent gets."""
_MOST_ATTACHMENTS = 100
"""How many of a job's files, the newest, an editor gets."""
_SPENDING_KEPT = timedelta(days=2)
_LONGEST_ANSWER = 4000
"""Characters of an answer that are stored for the conversation."""
_FORGOTTEN = timedelta(hours=1)
_ANNOUNCE = replacing(workers, "name", "projects", "seen_at")
_WATCHED = (instructions.c.number.in_(bindparam("numbers", expanding=True)), *IS_RUNNING)
_RENEW, _RENEW_ALL = update(instructions).where(*HELD), update(instructions).where(*_WATCHED)
_MESSAGE = instructions.alias("message")
_NEWEST = select(func.max(_MESSAGE.c.number)).where(_MESSAGE.c.job_id == instructions.c.job_id).scalar_subquery()
_IS_STOPPED = instructions.c.stop_reason.is_not(None).label("is_stopped")
_WATCH = select(instructions.c.number, _IS_STOPPED, _NEWEST.label("newest")).where(*_WATCHED)
_CHANGE = update(instructions).where(IS_IT)
_OF_JOB, _NEWEST_FIRST = instructions.c.job_id == bindparam("job"), instructions.c.number.desc()
_CONVERSATION = (
    select(instructions.c.prompt, instructions.c.answer, WORDS)
    .where(_OF_JOB, instructions.c.number < bindparam("instruction"))
    .order_by(_NEWEST_FIRST)
    .limit(_LONGEST_CONVERSATION)
)
_MIMETYPE = func.coalesce(attachments.c.mimetype, uploads.c.mimetype).label("mimetype")
_ATTACHMENTS = (
    select(*attachments.c["upload_id", "name", "instruction"], *uploads.c["size", "file"], _MIMETYPE)
    .select_from(instructions.join(attachments).join(uploads))
    .where(_OF_JOB, instructions.c.number <= bindparam("instruction"))
    .order_by(_NEWEST_FIRST, attachments.c.position.desc())
    .limit(_MOST_ATTACHMENTS)
)
_TOKENS = (jobs.c.tokens_sent + jobs.c.tokens_answered).label("tokens")
_IS_REPLY = (jobs.c.asked_at < instructions.c.created_at).label("is_reply")
_SPENT_SINCE = select(_TOKENS, jobs.c.tokens_agreed, WORDS, _IS_REPLY).join(instructions).where(IS_IT)
_ADD_SPENDING = upserting(spending, lambda new: {"tokens": spending.c.tokens + new.tokens})


class InstructionQueue:
    """Every method is one transaction."""

    def __init__(self, database: Database) -> None:
        self.database = database

    @transaction
    async def end_leases(self, session: Session) -> bool:
        """Ends all leases on SQLite, whose file one process owns. Returns whether it is that."""
        is_alone = session.dialect == "sqlite"
        if is_alone:
            await session.execute(update(instructions).where(WAITING).values(claimed_until=None))
        return is_alone

    @transaction
    async def backlog(self, session: Session) -> dict[str, InstructionBacklog]:
        """Returns what has not ended, by project."""
        project, is_queued = instructions.c.project_id, instructions.c.state == "queued"
        queued, running = func.count(case((is_queued, 1))), func.count(case((~is_queued, 1)))
        since = func.min(case((is_queued, instructions.c.created_at)))
        found = select(project, queued.label("queued"), running.label("running"), since.label("since"))
        rows = await session.rows(found.select_from(instructions.join(jobs)).where(WAITING).group_by(project))

        def waits(since: str | None) -> float:
            return max((session.moment - datetime.fromisoformat(since)).total_seconds(), 0.0) if since else 0.0

        return {
            row["project_id"]: InstructionBacklog(row["queued"], row["running"], waits(row["since"])) for row in rows
        }

    @transaction
    async def newest_project(self, session: Session) -> str | None:
        """Returns the project that was used last."""
        newest = select(instructions.c.project_id).order_by(instructions.c.number.desc()).limit(1)
        row = await session.first(newest)
        return str(row["project_id"]) if row else None

    @transaction
    async def claim(self, session: Session, worker: Worker, wanted: Wanted) -> Instruction | None:
        """Claims the next instruction, counts the attempt, and returns it."""
        row = await claim_first(session, worker, wanted)
        if row is None:
            return None
        details = await (read_details if row["was_begun"] else forget_last_words)(session, row["job_id"])
        taken = _from_row(row, details, await _conversation(session, row["job_id"], row["number"]))
        return replace(taken, attachments=await _attachments_until(session, row["job_id"], row["number"]))

    @transaction
    async def announce(self, session: Session, worker: Worker, projects: Mapping[str, str]) -> None:
        """Says for which projects a worker works, and with what; it counts for as long as a lease."""
        served = {"projects": json.dumps(dict(projects)), "seen_at": session.time()}
        await session.execute(_ANNOUNCE, vars(worker) | served)
        await session.execute(delete(workers).where(workers.c.seen_at < session.time(ago=_FORGOTTEN)))

    @transaction
    async def leave(self, session: Session, worker: Worker) -> None:
        await session.execute(delete(workers).where(workers.c.place == worker.place, workers.c.name == worker.name))

    @transaction
    async def offers(self, session: Session) -> list[dict[str, str]]:
        """Returns what each worker offers."""
        found = select(workers.c.projects).where(workers.c.seen_at > session.time(ago=LEASE))
        return [json.loads(row["projects"]) for row in await session.rows(found.order_by(workers.c.name))]

    @transaction
    async def watch(
        self, session: Session, worker: str, numbers: Collection[int], *, renew: bool
    ) -> dict[int, HeldInstruction]:
        """Returns those of these instructions that the worker still holds, whose leases it may renew."""
        ours = {"numbers": list(numbers), "worker": worker}
        if renew:
            await session.execute(_RENEW_ALL, ours | {"claimed_until": session.time(ago=-LEASE)})
        rows = await session.rows(_WATCH, **ours)
        return {row["number"]: HeldInstruction(row["is_stopped"], row["newest"]) for row in rows}

    @transaction
    async def renew(self, session: Session, instruction: Instruction) -> None:
        """Renews a lease. Raises LeaseLostError, as every write of a run does whose lease has become another's."""
        renewed = claim_of(instruction) | {"claimed_until": session.time(ago=-LEASE)}
        if not (await session.execute(_RENEW, renewed)).rowcount:
            raise LeaseLostError

    @transaction
    async def release(self, session: Session, worker: str, number: int | None = None) -> None:
        """Requeues what a worker still holds, or one instruction of that; the attempt does not count."""
        ours = update(instructions).where(
            WAITING, instructions.c.claimed_by == worker, instructions.c.state == "running"
        )
        one = ours if number is None else ours.where(instructions.c.number == number)
        back = {"state": "queued", "claimed_until": None, "attempts": instructions.c.attempts - 1}
        await session.execute(one.values(back))

    @transaction
    async def is_stopped(self, session: Session, instruction: Instruction) -> bool:
        """Whether somebody has cancelled the instruction."""
        stopped = (instructions.c.number == instruction.number, instructions.c.stop_reason.is_not(None))
        return await session.first(select(instructions.c.number).where(*stopped)) is not None

    @transaction
    async def record_progress(self, session: Session, instruction: Instruction, update: ProgressUpdate) -> None:
        job_id, details = instruction.job_id, await lock_held(session, instruction)
        changed = {name: value for name in ("plan", "activity") if (value := getattr(update, name)) is not None}
        await write_details(session, job_id, details.model_copy(update=changed))
        if update.session is not None:
            await change_job(session, job_id, session=update.session)
        if update.spent != Spent():
            await _record_spent(session, instruction, update.spent)

    @transaction
    async def spent(self, session: Session, job_id: str) -> Spent:
        """Returns a job's use of its model."""
        return await _read_spent(session, job_id)

    @transaction
    async def spent_since_asked(self, session: Session, instruction: Instruction) -> int:
        """Returns the tokens its job has used since a person last let it continue.

        A message sent after the question lets the job continue, unless it says no; earlier usage no longer counts.
        """
        row = await session.first(_SPENT_SINCE, instruction=instruction.number)
        if row is None:
            return 0
        if not row["is_reply"] or says_no(row["words"]):
            return int(row["tokens"] - row["tokens_agreed"])
        await lock_held(session, instruction)
        await change_job(session, instruction.job_id, tokens_agreed=row["tokens"], asked_at=None)
        return 0

    @transaction
    async def record_budget_end(self, session: Session, instruction: Instruction, error: BudgetUsedUpError) -> None:
        """Records that a person was asked, and drops a session that has not received the instruction."""
        await lock_held(session, instruction)
        if error.question:
            asking = update(jobs).where(jobs.c.id == instruction.job_id, jobs.c.asked_at.is_(None))
            await session.execute(asking.values(asked_at=session.time()))
        if not error.was_heard:
            await change_job(session, instruction.job_id, session=None)

    @transaction
    async def tokens_today(self, session: Session, project_id: str) -> tuple[str, int]:
        """Returns the day, in UTC, and the tokens that a project's jobs have used on it."""
        day = _day_of(session.moment)
        used = select(spending.c.tokens).where(spending.c.project_id == project_id, spending.c.day == day)
        row = await session.first(used)
        return day, int(row["tokens"]) if row else 0

    @transaction
    async def record_question(self, session: Session, instruction: Instruction, question: Question) -> None:
        await lock_held(session, instruction)
        asked = JobDetails(question=question.text, question_fields=question.fields)
        open_question = asked.model_dump_json(exclude_defaults=True)
        await change_job(session, instruction.job_id, open_question=open_question)

    @transaction
    async def next_reply(self, session: Session, instruction: Instruction) -> QueuedReply | None:
        """Returns the oldest message that waits behind an instruction, unless it has files or another mode."""
        has_files = exists().where(attachments.c.instruction == instructions.c.number)
        is_other = or_(has_files, instructions.c.mode != instruction.mode).label("is_other")
        queued = (instructions.c.state == "queued", instructions.c.answers.is_(None))
        found = select(instructions.c.number, WORDS, is_other).where(instructions.c.job_id == instruction.job_id)
        row = await session.first(found.where(*queued).order_by(instructions.c.number).limit(1))
        return None if row is None or row["is_other"] else QueuedReply(row["number"], row["words"])

    @transaction
    async def use_reply(self, session: Session, instruction: Instruction, reply: QueuedReply) -> bool:
        """Makes a message part of the instruction whose question it answers, and closes the question.

        Returns False if the message was stopped in the meantime.
        """
        await lock_held(session, instruction)
        queued = (instructions.c.state == "queued", instructions.c.answers.is_(None))
        using = update(instructions).where(instructions.c.number == reply.number, *queued)
        is_used = (await session.execute(using.values(answers=instruction.number))).rowcount == 1
        if is_used:
            await change_job(session, instruction.job_id, open_question=None)
        return is_used

    @transaction
    async def free_replies(self, session: Session, instruction: Instruction) -> None:
        """Lets what answered an earlier run's questions wait again: it answers them in this run, or is an instruction
        after all.
        """
        await lock_held(session, instruction)
        replies = update(instructions).where(IS_REPLY, instructions.c.answers == instruction.number)
        await session.execute(replies.values(answers=None))

    @transaction
    async def use_next_branch(self, session: Session, instruction: Instruction) -> Instruction:
        """Returns the instruction with the job's next branch, which an edit makes the job's."""
        await lock_held(session, instruction)
        row = await session.first(select(jobs.c.branch_number).where(jobs.c.id == instruction.job_id))
        number = 1 + (row["branch_number"] if row else 0)
        branch = branch_name(instruction.job_id, number)
        if instruction.mode is Mode.EDIT:  # until then, its pull request may be opened again
            await change_job(session, instruction.job_id, branch_number=number, branch=branch)
        return replace(instruction, branch=branch)

    @transaction
    async def record_answer(self, session: Session, instruction: Instruction, details: JobDetails) -> None:
        """Records what the editor said before the push, in case a restart has to report it."""
        known = await lock_held(session, instruction)
        words = ("summary", "question", "question_fields")
        updated = known.model_copy(update={name: getattr(details, name) for name in words})
        await write_details(session, instruction.job_id, updated)

    @transaction
    async def record_pushed(self, session: Session, instruction: Instruction, commit: str) -> None:
        """Records an instruction's commit; from then on it is not executed again."""
        await lock_held(session, instruction)
        await session.execute(_CHANGE, {"instruction": instruction.number, "commit_id": commit})

    @transaction
    async def record_partial(
        self, session: Session, instruction: Instruction, commit: str | None, count: int = 0
    ) -> None:
        """Records the commit that keeps a failed instruction's work; None if there is none."""
        await lock_held(session, instruction)
        await record_partial_work(session, instruction.job_id, commit, count)

    @transaction
    async def keep_partial(self, session: Session, instruction: Instruction, file_id: str) -> None:
        """Records the file with the commit of partial work, for other machines."""
        await lock_held(session, instruction)
        await change_job(session, instruction.job_id, partial_file=file_id)
        await keep_file(session, file_id)

    @transaction
    async def record_home(self, session: Session, instruction: Instruction, file_id: str) -> None:
        """Names the job's home after an instruction; no other machine gets it before it is stored."""
        await lock_held(session, instruction)
        await drop_file_of(session, jobs.c.home, instruction.job_id)
        await change_job(session, instruction.job_id, home=file_id)

    @transaction
    async def keep_home(self, session: Session, instruction: Instruction, file_id: str) -> None:
        """Keeps the file that was stored for it."""
        await lock_held(session, instruction)
        await keep_file(session, file_id)

    @transaction
    async def record_log(self, session: Session, instruction: Instruction, file_id: str) -> None:
        """Records the file with an instruction's log, in place of an earlier attempt's."""
        await lock_held(session, instruction)
        number = instructions.c.number == instruction.number
        await drop_files(session, files.c.id.in_(select(instructions.c.log).where(number)))
        await session.execute(_CHANGE, {"instruction": instruction.number, "log": file_id})
        await keep_file(session, file_id)

    @transaction
    async def finish(self, session: Session, instruction: Instruction, outcome: Outcome) -> None:
        """Records an instruction's outcome; if the queue is empty, the job ends too.

        The success of the next queued instruction does not hide the failure of this one. An instruction that somebody
        stopped has not failed, whatever its outcome.
        """
        job_id = instruction.job_id
        known = await lock_held(session, instruction)
        ended = await _final_outcome(session, instruction, outcome)
        state = "failed" if ended.failure else "stopped" if ended is not outcome else "done"
        said, reason = ended.details, ended.failure or ended.details.reason
        plan = said.proposal.text if said.proposal else ""
        words = (said.summary, plan, said.question, reason and f"({reason})")
        answer = "\n\n".join(dict.fromkeys(filter(None, words)))  # a plan may be the answer, too
        end = {"instruction": instruction.number, "state": state, "answer": answer[:_LONGEST_ANSWER]}
        await session.execute(_CHANGE, end)
        news = {"failure": ended.failure} if ended.failure else {}
        if ended.pr_link is not None:
            news |= {"pr_link": ended.pr_link, "pr_branch": instruction.branch}
        await write_details(session, job_id, _final_details(known, ended.details), open_question=None, **news)
        if state == "done" and instruction.mode is Mode.EDIT:
            await forget_partial_work(session, job_id)
        replies = update(instructions).where(instructions.c.answers == instruction.number)
        is_queued = instructions.c.state == "queued"
        await session.execute(replies.values(answers=None, state=case((is_queued, "done"), else_=instructions.c.state)))
        status = await end_if_idle(session, job_id)
        # What was written in the meantime revises it, and what failed before is told first.
        if said.proposal and status is Status.COMPLETED and state == "done":
            await record_proposal(session, job_id, said.proposal, proposal_tree=outcome.tree)


async def _conversation(session: Session, job_id: str, number: int) -> tuple[EarlierInstruction, ...]:
    rows = await session.rows(_CONVERSATION, job=job_id, instruction=number)
    return tuple(EarlierInstruction(row["prompt"], row["answer"], row["words"]) for row in reversed(rows))


async def _final_outcome(session: Session, instruction: Instruction, outcome: Outcome) -> Outcome:
    """Returns the outcome; for a stopped instruction, one that says who stopped it and whether it was pushed."""
    found = select(instructions.c.stop_reason, instructions.c.commit_id)
    row = await session.first(found.where(instructions.c.number == instruction.number))
    if row is None or row["stop_reason"] is None:
        return outcome
    is_pushed = outcome.commit or row["commit_id"]
    reason = f"{row['stop_reason']}, after the change had been pushed" if is_pushed else row["stop_reason"]
    return replace(outcome, failure=None, details=outcome.details.model_copy(update={"reason": reason}))


def _from_row(row: RowMapping, details: JobDetails, conversation: tuple[EarlierInstruction, ...]) -> Instruction:
    same = ("number", "job_id", "project_id", "branch", "prompt", "session", "home", "partial_file", "attempts")
    more = ("was_begun", "request_id", "model", "effort")
    return Instruction(
        **{name: row[name] for name in (*same, *more)},
        words=row["prompt"] if row["words"] is None else row["words"],
        requester=requester_from_row(row),
        conversation=conversation,
        partial=row["partial_commit"],
        commit=row["commit_id"],
        summary=details.summary or "",
        question=details.question or "",
        question_fields=details.question_fields,
        worker=row["claimed_by"],
        mode=Mode(row["mode"]),
        plan=_accepted_plan(row),
    )


def _accepted_plan(row: RowMapping) -> AcceptedPlan | None:
    if row["accepts"] is None:
        return None
    return AcceptedPlan(Proposal.model_validate_json(row["proposal"]).text, row["proposal_tree"])


def _final_details(known: JobDetails, new: JobDetails) -> JobDetails:
    kept = {name: getattr(new, name) or getattr(known, name) for name in ("changes", "pull_request", "revision")}
    pictures = (new if new.changes else known).pictures
    return new.model_copy(update={"plan": known.plan, "proposal": None, "pictures": pictures, **kept})


def _day_of(moment: datetime) -> str:
    """Returns the UTC day as stored in the table."""
    return as_text(moment)[:10]


async def _record_spent(session: Session, instruction: Instruction, spent: Spent) -> None:
    """Adds to the usage of the job, and to that of all its project's jobs today."""
    total = await _read_spent(session, instruction.job_id) + spent
    money, currency = (total.money.amount, total.money.currency) if total.money else (0.0, "")
    usage = {"tokens_sent": total.sent, "tokens_answered": total.answered, "money": money, "currency": currency}
    await change_job(session, instruction.job_id, **usage)
    values = {"project_id": instruction.project_id, "day": _day_of(session.moment), "tokens": spent.tokens}
    await session.execute(_ADD_SPENDING, values)
    old = spending.c.day < _day_of(session.moment - _SPENDING_KEPT)
    await session.execute(delete(spending).where(old))


async def _read_spent(session: Session, job_id: str) -> Spent:
    usage = select(jobs.c.tokens_sent, jobs.c.tokens_answered, jobs.c.money, jobs.c.currency)
    row = await session.first(usage.where(jobs.c.id == job_id))
    return spent_from_row(row) if row else Spent()


async def _attachments_until(session: Session, job_id: str, number: int) -> tuple[Attachment, ...]:
    """Returns the files of a job's instructions up to this one, oldest first."""
    rows = await session.rows(_ATTACHMENTS, job=job_id, instruction=number)
    return tuple(Attachment(**row) for row in reversed(rows))
