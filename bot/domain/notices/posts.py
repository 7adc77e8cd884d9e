"""The messages that go into a thread.

Databases hold each message by its `kind` and fields: one that is renamed or changed needs a migration. Texts that
people wrote hold marked mentions (bot.domain.context.message_text); `quotes` says which those are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

from bot.domain.jobs.details import JobReport, QuestionField
from bot.domain.jobs.job import Problem
from bot.domain.notices.content import Delivery, NoticeContent, Quotes
from bot.domain.requests.request import Doubt, RejectionReason, RequestKind


@dataclass(frozen=True)
class RequestSummary(Quotes):
    """The request that a notice is about. `text` is how a follow-up begins; kind None: not known any more."""

    quotes: ClassVar = ("text",)
    request_id: str
    person_id: str
    kind: RequestKind | None
    text: str = ""


class _InThread(NoticeContent):
    delivery: ClassVar = Delivery.POST


@dataclass(frozen=True)
class _Addressed(_InThread):
    """Addresses one person; the thread's requester where `person_id` is empty."""

    person_id: str = field(kw_only=True)

    @property
    def about(self) -> str:
        return self.person_id

    def addressed_to(self, person_id: str) -> Self:
        return replace(self, person_id=person_id)


@dataclass(frozen=True)
class _AboutRequest(_InThread):
    quotes: ClassVar = ("request",)
    request: RequestSummary

    @property
    def about(self) -> str:
        return self.request.person_id

    def addressed_to(self, person_id: str) -> Self:
        return replace(self, request=replace(self.request, person_id=person_id))


@dataclass(frozen=True)
class _WhileWaiting(_InThread):
    """`waiting`: the request that cannot be sent meanwhile."""

    quotes: ClassVar = ("waiting",)
    waiting: RequestSummary | None = field(default=None, kw_only=True)

    @property
    def about(self) -> str:
        return self.waiting.person_id if self.waiting else ""


@dataclass(frozen=True)
class JobStarted(_InThread):
    """The agent has begun. What the job API did not tell is empty."""

    job_id: str
    repository: str = ""
    ref: str = ""
    model: str = ""
    kind: Literal["job_started"] = field(default="job_started", kw_only=True)


@dataclass(frozen=True)
class JobActiveAgain(_InThread):
    """A job that had ended is at work, after a follow-up."""

    kind: Literal["job_active_again"] = field(default="job_active_again", kw_only=True)


@dataclass(frozen=True)
class JobSilent(_InThread):
    """The agent is at work, and nothing was seen to change for long."""

    kind: Literal["job_silent"] = field(default="job_silent", kw_only=True)


@dataclass(frozen=True)
class JobFinished(_Addressed):
    """`link` is empty without a pull request; `new`: it was not announced before; `changed`: another one was.

    `again`: the thread was told before that the job finished. `report` is what the job told beyond its specification,
    None where that was nothing. `person_id` wrote what the agent was at work on; empty: the requester.
    """

    link: str = ""
    new: bool = False
    changed: bool = False
    again: bool = False
    report: JobReport | None = None
    person_id: str = field(default="", kw_only=True)
    kind: Literal["job_finished"] = field(default="job_finished", kw_only=True)


@dataclass(frozen=True)
class JobStopped(_Addressed):
    """A job that `person_id` had stopped has ended. The others as of JobFinished."""

    person_id: str
    link: str = ""
    new: bool = False
    changed: bool = False
    report: JobReport | None = None
    kind: Literal["job_stopped"] = field(default="job_stopped", kw_only=True)


@dataclass(frozen=True)
class JobStillStopping(_Addressed):
    """The job API took the stop of `person_id`, but the job shows no end."""

    person_id: str
    kind: Literal["job_still_stopping"] = field(default="job_still_stopping", kw_only=True)


@dataclass(frozen=True)
class AgentAskedToStop(_Addressed):
    """The job API cannot stop a job: the agent was asked to, by `person_id`."""

    person_id: str
    kind: Literal["agent_asked_to_stop"] = field(default="agent_asked_to_stop", kw_only=True)


@dataclass(frozen=True)
class JobFailed(_Addressed):
    """By its specification the job API gives no reason. The others as of JobFinished."""

    report: JobReport | None = None
    link: str = ""
    new: bool = False
    changed: bool = False
    person_id: str = field(default="", kw_only=True)
    kind: Literal["job_failed"] = field(default="job_failed", kw_only=True)


@dataclass(frozen=True)
class QuestionAsked(_Addressed):
    """The agent asks something, and no message about an end tells it. `person_id` is whom it asks; empty: the
    requester. `fields`: what can be chosen as an answer.
    """

    question: str
    fields: tuple[QuestionField, ...] = ()
    person_id: str = field(default="", kw_only=True)
    kind: Literal["question_asked"] = field(default="question_asked", kw_only=True)


@dataclass(frozen=True)
class JobArchived(_InThread):
    """The job takes no follow-ups any more."""

    kind: Literal["job_archived"] = field(default="job_archived", kw_only=True)


@dataclass(frozen=True)
class JobDisappeared(_InThread):
    """The job API does not know the job any more."""

    kind: Literal["job_disappeared"] = field(default="job_disappeared", kw_only=True)


@dataclass(frozen=True)
class PullRequestFound(_InThread):
    """A link that came before the end, or late, or instead of another one that was announced (`changed`).

    `alone`: no end was told of the work that it came of.
    """

    link: str
    changed: bool = False
    alone: bool = False
    kind: Literal["pull_request_found"] = field(default="pull_request_found", kw_only=True)


@dataclass(frozen=True)
class RecordDamaged(_InThread):
    """The thread's state cannot be read any more."""

    kind: Literal["record_damaged"] = field(default="record_damaged", kw_only=True)


@dataclass(frozen=True)
class OutageStarted(_WhileWaiting):
    """The job API could not be asked. `reason` are our words, `problem_text` its own; before `until` (seconds since the
    epoch) it asked not to be asked again. `waiting`: the request that waits for its end.
    """

    problem: Problem
    reason: str = ""
    problem_text: str = ""
    until: int | None = None
    kind: Literal["outage_started"] = field(default="outage_started", kw_only=True)


@dataclass(frozen=True)
class AccessDenied(_WhileWaiting):
    """The job API does not accept our key, with status 401 or 403. `waiting`: the request that waits for its end."""

    status: int
    kind: Literal["access_denied"] = field(default="access_denied", kw_only=True)


@dataclass(frozen=True)
class OutageEnded(_InThread):
    """`problem`: the one that is over."""

    problem: Problem | None = None
    kind: Literal["outage_ended"] = field(default="outage_ended", kw_only=True)


@dataclass(frozen=True)
class RequestRejected(_AboutRequest):
    """A request was not accepted, or to no purpose. `api_text` are the job API's words; `stopped_by` is who stopped the
    job before it was sent.
    """

    reason: RejectionReason
    api_text: str = ""
    stopped_by: str = ""
    kind: Literal["request_rejected"] = field(default="request_rejected", kw_only=True)


@dataclass(frozen=True)
class RequestUncertain(_AboutRequest):
    """It is not known whether a request was accepted, for the reason in `doubt`; a person can send it again.
    `job_ended`: the job was not at work, so that it would be seen to take a follow-up up.
    """

    job_ended: bool = True
    doubt: Doubt = Doubt.NO_ANSWER
    kind: Literal["request_uncertain"] = field(default="request_uncertain", kw_only=True)


@dataclass(frozen=True)
class ReplyNotFullySent(_Addressed):
    """A reply held more than words, or none. `file_names` are not all where there are many, or some have none."""

    quotes: ClassVar = ("file_names",)
    person_id: str
    words_sent: bool
    file_count: int = 0
    file_names: tuple[str, ...] = ()
    forwarded: bool = False
    kind: Literal["reply_not_fully_sent"] = field(default="reply_not_fully_sent", kw_only=True)


@dataclass(frozen=True)
class ContextCut(_Addressed):
    """Not all that belongs to a request goes to the agent. The tuples are names of files, of which the agent gets the
    link only, or not the whole, or the name only; `left_out`: of the thread or of forwarded messages not all goes
    along; `masked`: kinds of secrets that were taken out; `thread_unread`: the thread was to go along, and could not be
    read.
    """

    quotes: ClassVar = ("link_only", "cut_files", "name_only")
    person_id: str
    link_only: tuple[str, ...] = ()
    cut_files: tuple[str, ...] = ()
    left_out: bool = False
    masked: tuple[str, ...] = ()
    name_only: tuple[str, ...] = ()
    thread_unread: bool = False
    kind: Literal["context_cut"] = field(default="context_cut", kw_only=True)


@dataclass(frozen=True)
class UnknownNotice(NoticeContent):
    """What a newer version recorded, whose process shares our database."""

    quotes: ClassVar = ("fields",)
    """Nobody knows here which texts people wrote, or where they are."""
    unknown_kind: str
    fields: Mapping[str, Any]
    delivery: Delivery = Delivery.POST
    kind: Literal["unknown"] = field(default="unknown", kw_only=True)

    @property
    def about(self) -> str:
        return str(self.fields.get("person_id") or "")


JobEnd = JobFinished | JobFailed | JobStopped
"""How a round ended. Each has the pull request, where there is one."""
JobNews = (
    JobStarted
    | JobActiveAgain
    | JobSilent
    | JobEnd
    | JobStillStopping
    | AgentAskedToStop
    | QuestionAsked
    | PullRequestFound
    | JobArchived
    | JobDisappeared
    | RecordDamaged
)
"""Messages about the job."""
RequestNews = (
    OutageStarted | AccessDenied | OutageEnded | RequestRejected | RequestUncertain | ReplyNotFullySent | ContextCut
)
"""Messages about requests, and about the job API's outages, for which they wait."""
Post = JobNews | RequestNews | UnknownNotice
"""A message in the thread."""
