"""The messages that are posted in a thread.

The database stores each message by its `kind` and fields, so renaming or changing one needs a migration. Texts that
people wrote contain marked mentions (bot.domain.context.message_text); `quotes` names their fields.
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
    """The request that a notice is about. `text` is the beginning of a follow-up; kind None: no longer known."""

    quotes: ClassVar = ("text",)
    request_id: str
    person_id: str
    kind: RequestKind | None
    text: str = ""


class _InThread(NoticeContent):
    delivery: ClassVar = Delivery.POST


@dataclass(frozen=True)
class _Addressed(_InThread):
    """Addresses one person; the thread's requester if `person_id` is empty."""

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
    """`waiting`: a request that cannot be sent meanwhile."""

    quotes: ClassVar = ("waiting",)
    waiting: RequestSummary | None = field(default=None, kw_only=True)

    @property
    def about(self) -> str:
        return self.waiting.person_id if self.waiting else ""


@dataclass(frozen=True)
class JobStarted(_InThread):
    """The agent has started. Fields that the job API did not report are empty."""

    job_id: str
    repository: str = ""
    ref: str = ""
    model: str = ""
    kind: Literal["job_started"] = field(default="job_started", kw_only=True)


@dataclass(frozen=True)
class JobActiveAgain(_InThread):
    """A job that had ended is running again, after a follow-up."""

    kind: Literal["job_active_again"] = field(default="job_active_again", kw_only=True)


@dataclass(frozen=True)
class JobStatusChanged(_InThread):
    """A running job has another status, one that the specification doesn't have or, after such a one, `active`."""

    status: str
    kind: Literal["job_status_changed"] = field(default="job_status_changed", kw_only=True)


@dataclass(frozen=True)
class JobSilent(_InThread):
    """The agent is working, but nothing has changed for a long time."""

    kind: Literal["job_silent"] = field(default="job_silent", kw_only=True)


@dataclass(frozen=True)
class HistoryUnread(_InThread):
    """Not all of what was written here could be read, while nobody listened `since` then `until` then, in seconds since
    the epoch.
    """

    since: float
    until: float
    kind: Literal["history_unread"] = field(default="history_unread", kw_only=True)


@dataclass(frozen=True)
class JobFinished(_Addressed):
    """A job has finished.

    `link` is empty if there is no pull request; `new`: it was not announced before; `changed`: another one was.
    `again`: the job had finished before. `report` has the job's details, if any. `person_id` is who wrote the request
    that the agent worked on; empty: the requester.
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
    """A job that `person_id` had stopped has ended. Other fields are as in JobFinished."""

    person_id: str
    link: str = ""
    new: bool = False
    changed: bool = False
    report: JobReport | None = None
    kind: Literal["job_stopped"] = field(default="job_stopped", kw_only=True)


@dataclass(frozen=True)
class JobStillStopping(_Addressed):
    """The job API accepted the stop by `person_id`, but the job has not ended."""

    person_id: str
    kind: Literal["job_still_stopping"] = field(default="job_still_stopping", kw_only=True)


@dataclass(frozen=True)
class AgentAskedToStop(_Addressed):
    """The job API cannot stop a job, so the agent was asked to stop, for `person_id`."""

    person_id: str
    kind: Literal["agent_asked_to_stop"] = field(default="agent_asked_to_stop", kw_only=True)


@dataclass(frozen=True)
class JobFailed(_Addressed):
    """A job has failed. The specification has no reason for it. Other fields are as in JobFinished."""

    report: JobReport | None = None
    link: str = ""
    new: bool = False
    changed: bool = False
    person_id: str = field(default="", kw_only=True)
    kind: Literal["job_failed"] = field(default="job_failed", kw_only=True)


@dataclass(frozen=True)
class QuestionAsked(_Addressed):
    """The agent asks a question that no message about an end contains. `person_id` is whom it asks; empty: the
    requester. `fields` is a form for the answer.
    """

    question: str
    fields: tuple[QuestionField, ...] = ()
    person_id: str = field(default="", kw_only=True)
    kind: Literal["question_asked"] = field(default="question_asked", kw_only=True)


@dataclass(frozen=True)
class JobArchived(_InThread):
    """The job no longer accepts follow-ups."""

    kind: Literal["job_archived"] = field(default="job_archived", kw_only=True)


@dataclass(frozen=True)
class JobDisappeared(_InThread):
    """The job API no longer knows the job."""

    kind: Literal["job_disappeared"] = field(default="job_disappeared", kw_only=True)


@dataclass(frozen=True)
class PullRequestFound(_InThread):
    """A link that came before the end, or late, or instead of an announced one (`changed`).

    `alone`: no end was announced for the work that it belongs to.
    """

    link: str
    changed: bool = False
    alone: bool = False
    kind: Literal["pull_request_found"] = field(default="pull_request_found", kw_only=True)


@dataclass(frozen=True)
class RecordDamaged(_InThread):
    """The thread's state can no longer be read."""

    kind: Literal["record_damaged"] = field(default="record_damaged", kw_only=True)


@dataclass(frozen=True)
class OutageStarted(_WhileWaiting):
    """The job API is unavailable. `reason` is our text, `problem_text` its own; it asked not to be called before
    `until` (seconds since the epoch). `waiting`: the request that waits for the end of the outage.
    """

    problem: Problem
    reason: str = ""
    problem_text: str = ""
    until: int | None = None
    kind: Literal["outage_started"] = field(default="outage_started", kw_only=True)


@dataclass(frozen=True)
class AccessDenied(_WhileWaiting):
    """The job API does not accept our key, with status 401 or 403. `waiting`: the request that waits."""

    status: int
    kind: Literal["access_denied"] = field(default="access_denied", kw_only=True)


@dataclass(frozen=True)
class OutageEnded(_InThread):
    """The job API is available again. `problem`: what was wrong."""

    problem: Problem | None = None
    kind: Literal["outage_ended"] = field(default="outage_ended", kw_only=True)


@dataclass(frozen=True)
class RequestRejected(_AboutRequest):
    """A request was not accepted, or without effect. `api_text` is the job API's text, `status` that of its response;
    `stopped_by` is who stopped the job before it was sent.
    """

    reason: RejectionReason
    api_text: str = ""
    stopped_by: str = ""
    status: int | None = None
    kind: Literal["request_rejected"] = field(default="request_rejected", kw_only=True)


@dataclass(frozen=True)
class RequestUncertain(_AboutRequest):
    """Nobody knows whether a request was accepted, for the reason in `doubt`; a person can send it again. `job_ended`:
    the job was not running, so people would see if it starts to work on a follow-up. `api_text` is the job API's text.
    """

    job_ended: bool = True
    doubt: Doubt = Doubt.NO_ANSWER
    api_text: str = ""
    kind: Literal["request_uncertain"] = field(default="request_uncertain", kw_only=True)


@dataclass(frozen=True)
class ReplyNotFullySent(_Addressed):
    """A reply contained more than text, or no text. `file_names` can be fewer than `file_count`."""

    quotes: ClassVar = ("file_names",)
    person_id: str
    words_sent: bool
    file_count: int = 0
    file_names: tuple[str, ...] = ()
    forwarded: bool = False
    kind: Literal["reply_not_fully_sent"] = field(default="reply_not_fully_sent", kw_only=True)


@dataclass(frozen=True)
class ContextCut(_Addressed):
    """The agent does not get all of a request's context.

    Attributes:
        person_id: Whose request it is.
        link_only: Names of files of which the agent gets only the link.
        cut_files: Names of files that are shortened.
        left_out: Parts of the thread or of forwarded messages are left out.
        masked: The kinds of secrets that were masked.
        name_only: Names of files of which the agent gets only the name.
        thread_unread: The thread could not be read.
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
class Introduction(NoticeContent):
    """Pagehand was invited to a channel, and says there what it does; or, `to_workflow`, a workflow mentioned it there,
    and it says who can ask. It has no job and no thread.
    """

    delivery: ClassVar = Delivery.POST
    to_workflow: bool = False
    kind: Literal["introduction"] = field(default="introduction", kw_only=True)


@dataclass(frozen=True)
class UnknownNotice(NoticeContent):
    """A notice that a newer version, which shares our database, has recorded."""

    quotes: ClassVar = ("fields",)
    """Any text may be a person's, because the fields' meaning is unknown here."""
    unknown_kind: str
    fields: Mapping[str, Any]
    delivery: Delivery = Delivery.POST
    kind: Literal["unknown"] = field(default="unknown", kw_only=True)

    @property
    def about(self) -> str:
        return str(self.fields.get("person_id") or "")


JobEnd = JobFinished | JobFailed | JobStopped
"""How a round ended. Each includes the pull request, if there is one."""
JobNews = (
    JobStarted
    | JobActiveAgain
    | JobStatusChanged
    | JobSilent
    | JobEnd
    | JobStillStopping
    | AgentAskedToStop
    | QuestionAsked
    | PullRequestFound
    | JobArchived
    | JobDisappeared
    | HistoryUnread
    | RecordDamaged
)
"""Messages about the job."""
RequestNews = (
    OutageStarted | AccessDenied | OutageEnded | RequestRejected | RequestUncertain | ReplyNotFullySent | ContextCut
)
"""Messages about requests, and about outages of the job API, during which they wait."""
Post = JobNews | RequestNews | Introduction | UnknownNotice
"""A message in the thread; an `Introduction` is one in the channel."""
