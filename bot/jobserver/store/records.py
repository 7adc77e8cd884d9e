"""The values that the store accepts and returns, and how they are read from its rows and written to them."""

import hashlib
import json
import secrets
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import ColumnElement, RowMapping, bindparam, case, exists, select, update

from bot.jobapi.models import (
    AgentJob,
    AttachedFile,
    CheckResult,
    Cost,
    JobDetails,
    Mode,
    PartialWork,
    PlanStep,
    Proposal,
    ProposalState,
    PullRequestState,
    QuestionField,
    Requester,
    Source,
    Status,
    Usage,
)
from bot.jobserver.errors import RequestRejectedError
from bot.jobserver.store.database import Session, as_text
from bot.jobserver.store.files import drop_files
from bot.jobserver.store.tables import WAITING, files, instructions, jobs
from bot.jobserver.usage import Spent

_IS_JOB = jobs.c.id == bindparam("job_id")
# Built once: to build a statement takes several times as long as SQLite needs to run it.
_JOB = select(jobs).where(jobs.c.project_id == bindparam("project_id"), _IS_JOB)
_LOCKED_JOB, _DETAILS = _JOB.with_for_update(), select(jobs.c.details).where(_IS_JOB).with_for_update()
_CHANGE_JOB = update(jobs).where(_IS_JOB)
_END = (
    _CHANGE_JOB.where(jobs.c.status == Status.ACTIVE, ~exists().where(instructions.c.job_id == jobs.c.id, WAITING))
    .values(status=case((jobs.c.failure.is_(None), Status.COMPLETED), else_=Status.FAILED))
    .returning(jobs.c.status)
)
_NO = frozenset({"no", "no thanks", "no thank you", "nope", "stop"})


@dataclass(frozen=True)
class Question:
    """An agent's question. `text`: the whole question, in Markdown; `fields`: what can be chosen."""

    text: str
    fields: tuple[QuestionField, ...] = ()


@dataclass(frozen=True)
class JobTemplate:
    """What new jobs have in common."""

    repository: str
    ref: str
    model: str


@dataclass(frozen=True)
class Choices:
    """What a project's clients may choose."""

    modes: tuple[Mode, ...] = (Mode.EDIT,)
    models: tuple[str, ...] = ()
    efforts: tuple[str, ...] = ()

    def check(self, request: "PromptRequest") -> None:
        """Raises RequestRejectedError for a request that is not possible here; its words say what is."""
        if request.proposal and request.job_id is None:
            raise RequestRejectedError("proposal: a new job has no plan yet")
        if request.mode not in self.modes:
            words = "This project's agent can't be kept from changing pages, so it can't plan first or only answer."
            raise RequestRejectedError(words, 422)
        for name, offered in (("model", self.models), ("effort", self.efforts)):
            if getattr(request, name) not in ("", *offered):
                words = f"these can: {', '.join(offered)}" if offered else "leave it out"
                raise RequestRejectedError(f"This {name} can't be chosen in this project; {words}.", 422)


_CHOSEN = ("mode", "model", "effort", "proposal")


@dataclass(frozen=True)
class PromptRequest:
    """A client's request for a new job of its project (no job id), or a message to one.

    `idempotency_key`: the client's, or one of our own, since the answer to a commit may be lost. `words`: the part of
    the prompt that is the person's own; None if all of it is. `request_id` is for the log. `model`, `effort`: wanted
    for it, if any. `proposal`: the id of the plan that it accepts, if any.
    """

    prompt: str
    job_id: str | None = None
    idempotency_key: str = field(default_factory=secrets.token_hex)
    requester: Requester | None = None
    files: tuple[AttachedFile, ...] = ()
    words: str | None = None
    request_id: str = ""
    mode: Mode = Mode.EDIT
    model: str = ""
    effort: str = ""
    proposal: str = ""

    @property
    def fingerprint(self) -> str:
        """Identifies the content of a request, which must not change when an Idempotency-Key is repeated.

        The requester is left out: a person's name may change between a request and its repetition. So are the person's
        own words, which a client may begin to tell apart in between; they are a part of the prompt.
        """
        files = [[file.id, file.name] for file in self.files]
        chosen = {name: value for name in _CHOSEN if (value := getattr(self, name)) != getattr(PromptRequest, name)}
        # Requests without files or choices keep the fingerprint of versions without them: keys are stored for long.
        same = [self.job_id, self.prompt, *filter(None, (files, chosen))]
        return hashlib.sha256(json.dumps(same).encode()).hexdigest()


@dataclass(frozen=True)
class EarlierInstruction:
    """An earlier instruction of the same job, with its answer. `words` is the person's own part of the prompt."""

    prompt: str
    answer: str
    words: str = ""


@dataclass(frozen=True)
class Attachment:
    """An uploaded file that came with an instruction of a job. `size` is in bytes; `file` is its id in the store."""

    upload_id: str
    file: str | None
    name: str
    mimetype: str
    size: int
    instruction: int


@dataclass(frozen=True)
class AcceptedPlan:
    """A plan to be carried out. `tree`: the git tree of the files from which it was made."""

    text: str
    tree: str


@dataclass(frozen=True)
class Instruction:
    """One prompt of a job, on its way through the queue. `words` is the person's own part of it.

    `session`: the agent's id for the job's conversation. `partial`: the commit with the work of an earlier instruction
    that failed. `home`, `partial_file`: the ids under which other machines find them. `attempts`: how often it was
    started, including this time. `was_begun`: by an earlier attempt, or one that was given back, so it may be pushed.
    `commit`, `summary`, `question` and `question_fields`: what was pushed and what the editor said before an
    interruption. `attachments`: the files of this and earlier instructions, the oldest first. `request_id` is for the
    log. `worker`: who has claimed it. `model`, `effort`: wanted for it, if any. `plan`: what it carries out.
    """

    number: int
    job_id: str
    project_id: str
    branch: str
    prompt: str
    words: str
    requester: Requester | None = None
    conversation: tuple[EarlierInstruction, ...] = ()
    session: str | None = None
    home: str | None = None
    partial: str | None = None
    partial_file: str | None = None
    attempts: int = 1
    was_begun: bool = False
    commit: str | None = None
    summary: str = ""
    question: str = ""
    question_fields: tuple[QuestionField, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    request_id: str = ""
    worker: str = ""
    mode: Mode = Mode.EDIT
    model: str = ""
    effort: str = ""
    plan: AcceptedPlan | None = None


@dataclass(frozen=True)
class HeldInstruction:
    """What a worker's instruction looks like in its row. `newest`: the number of the job's newest message."""

    is_stopped: bool
    newest: int


@dataclass(frozen=True)
class InstructionBacklog:
    """How many instructions are queued and running, and for how many seconds the oldest queued one has waited."""

    queued: int = 0
    running: int = 0
    oldest_seconds: float = 0.0


@dataclass(frozen=True)
class QueuedReply:
    """A message that waits behind an instruction and may answer its question."""

    number: int
    words: str


@dataclass(frozen=True)
class Outcome:
    """The outcome of an instruction. `failure`: why it failed. `commit`: what was pushed.

    From `details`, the summary, reason, question and examples always replace those of the job; changes, pictures, pull
    request and revision do if they are set; the job's plan stays. `tree`: the files from which a proposal in them was
    made.
    """

    failure: str | None = None
    commit: str | None = None
    pr_link: str | None = None
    details: JobDetails = field(default_factory=JobDetails)
    tree: str = ""


@dataclass(frozen=True)
class PendingProposal:
    """What was pushed for a job, and what its pull request still lacks.

    `wants_extras`: its labels and the request for a review are still to be added. `checks` are those of the newest
    change. `version` grows with each addition.
    """

    job_id: str
    branch: str
    title: str
    description: str
    checks: tuple[CheckResult, ...]
    wants_extras: bool
    requester: Requester | None
    version: int
    failures: int


@dataclass(frozen=True)
class ProgressUpdate:
    """What an editor reported since the last update; None means nothing new. The plan may be of any length."""

    plan: tuple[PlanStep, ...] | None = None
    activity: str | None = None
    session: str | None = None
    spent: Spent = field(default_factory=Spent)


@dataclass(frozen=True)
class Cancellation:
    """A cancelled job; `running` is the number of the instruction that still has to be stopped."""

    job: AgentJob
    running: int | None = None


def job_from_row(row: RowMapping) -> AgentJob:
    details = JobDetails.model_validate_json(row["details"])
    # The next instruction's words do not hide a failure.
    updates: dict[str, object] = {"reason": row["failure"] or details.reason or _why_pending(row, details)}
    if row["partial_commit"] and row["status"] != Status.ACTIVE:
        updates["partial_work"] = PartialWork(files=row["partial_files"])
    if row["status"] == Status.ACTIVE:
        # The answer is shown at the end only: the change is still being pushed.
        updates |= {"summary": None, "question": None, "question_fields": (), "examples": (), **_open_question(row)}
    updates |= {"usage": usage_from_row(row), "proposal": _proposal_from_row(row)}
    if row["mode"] != Mode.EDIT:
        updates["mode"] = Mode(row["mode"])
    details = details.model_copy(update=updates)
    return AgentJob(
        id=row["id"],
        status=Status(row["status"]),
        source=Source(repository=row["repository"], ref=row["ref"]),
        model=row["model"],
        pr_link=None if row["status"] == Status.ACTIVE or _is_pending(details) else row["pr_link"],
        created_at=_in_milliseconds(row["created_at"]),
        archived_at=_in_milliseconds(row["archived_at"]) if row["archived_at"] else None,
        details=details if details != JobDetails() else None,
    )


def _proposal_from_row(row: RowMapping) -> Proposal | None:
    if row["proposal"] is None:
        return None
    proposal = Proposal.model_validate_json(row["proposal"])
    is_over = row["status"] == Status.ARCHIVED and proposal.state is ProposalState.PROPOSED
    return proposal.model_copy(update={"state": ProposalState.SUPERSEDED}) if is_over else proposal


def _in_milliseconds(stored: str) -> str:
    return as_text(datetime.fromisoformat(stored), "milliseconds")


def _open_question(row: RowMapping) -> dict[str, object]:
    if row["open_question"] is None:
        return {}
    asked = JobDetails.model_validate_json(row["open_question"])
    return {"question": asked.question, "question_fields": asked.question_fields}


def _why_pending(row: RowMapping, details: JobDetails) -> str | None:
    """Returns why there is no pull request yet, for clients that show nothing but the reason."""
    known = details.pull_request
    if known is None or not _is_pending(details) or not known.reason:
        return None
    why = f"The change was pushed to {row['branch']}, but has no pull request yet: {known.reason.rstrip('.')}."
    return f"{why} The server keeps trying."


def _is_pending(details: JobDetails) -> bool:
    """Whether the newest change has no pull request yet; the ended one of an earlier branch does not count."""
    return details.pull_request is not None and details.pull_request.state is PullRequestState.PENDING


def usage_from_row(row: RowMapping) -> Usage | None:
    spent = spent_from_row(row)
    if spent == Spent():
        return None
    return Usage(tokens_sent=spent.sent, tokens_answered=spent.answered, cost=spent.money)


def spent_from_row(row: RowMapping) -> Spent:
    money = Cost(amount=row["money"], currency=row["currency"]) if row["currency"] else None
    return Spent(row["tokens_sent"], row["tokens_answered"], money)


def requester_from_row(row: RowMapping) -> Requester | None:
    if row["requester_name"] is None:
        return None
    return Requester(name=row["requester_name"], id=row["requester_id"], url=row["requester_url"])


def requester_values(requester: Requester | None) -> dict[str, str | None]:
    """Returns the columns that hold a requester."""
    name, person, url = (requester.name, requester.id, requester.url) if requester else (None, None, None)
    return {"requester_name": name, "requester_id": person, "requester_url": url}


def branch_name(job_id: str, number: int) -> str:
    """Returns the name of a job's branch; the first has no number."""
    return f"pagehand/{job_id}" if number == 1 else f"pagehand/{job_id}-{number}"


async def read_job(session: Session, project_id: str, job_id: str, *, lock: bool = False) -> AgentJob:
    """Returns a job. Who changes a job locks its row first. Raises RequestRejectedError."""
    row = await session.first(_LOCKED_JOB if lock else _JOB, project_id=project_id, job_id=job_id)
    if row is None:
        raise RequestRejectedError("there is no such job in this project", 404)
    return job_from_row(row)


async def change_job(session: Session, job_id: str, /, **values: object) -> None:
    columns = {jobs.c[name].key: value for name, value in values.items()}  # any other name would be left out in silence
    await session.execute(_CHANGE_JOB, columns | {"job_id": job_id})


async def read_details(session: Session, job_id: str) -> JobDetails:
    """Returns the stored details, to be changed: this locks the job. Empty ones for a job that no longer exists."""
    row = await session.first(_DETAILS, job_id=job_id)
    return JobDetails.model_validate_json(row["details"]) if row else JobDetails()


async def write_details(session: Session, job_id: str, details: JobDetails, **more: object) -> None:
    """Changes the job's details, and what else there is to change."""
    await change_job(session, job_id, details=details.model_dump_json(exclude_defaults=True), **more)


async def forget_last_words(session: Session, job_id: str) -> JobDetails:
    """Clears what the previous instruction said and planned; returns the facts about the pull request, which remain."""
    known = await read_details(session, job_id)
    facts = JobDetails(**{name: getattr(known, name) for name in ("changes", "pictures", "pull_request", "revision")})
    await write_details(session, job_id, facts)
    return facts


async def forget_partial_work(session: Session, job_id: str) -> None:
    """For work that is now in a pull request, or was discarded; a sweep removes its commit from the mirror."""
    await record_partial_work(session, job_id, None, 0)


async def record_partial_work(session: Session, job_id: str, commit: str | None, count: int) -> None:
    """Records a commit, which other machines cannot get yet."""
    await drop_file_of(session, jobs.c.partial_file, job_id)
    await change_job(session, job_id, partial_commit=commit, partial_files=count, partial_file=None)


async def drop_file_of(session: Session, column: ColumnElement[str], job_id: str) -> None:
    """Has the file that a column of a job names deleted soon."""
    await drop_files(session, files.c.id.in_(select(column).where(jobs.c.id == job_id)))


async def end_if_idle(session: Session, job_id: str) -> Status | None:
    """Ends a job that has nothing left in its queue; returns how it ended, None if it goes on."""
    ended = await session.execute(_END, {"job_id": job_id, "finished_at": session.time()})
    return next(map(Status, ended.scalars()), None)


def says_no(reply: str) -> bool:
    """Whether a reply says no and nothing else."""
    return " ".join("".join(c if c.isalpha() else " " for c in reply.casefold()).split()) in _NO
