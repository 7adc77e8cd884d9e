"""Posts about a request that waits, was refused, may not have arrived, or lacks something; and about outages of the job
API, during which requests wait.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from bot.domain.jobs.job import Problem
from bot.domain.requests.request import Doubt, RejectionReason, Request, RequestKind
from bot.notices.notice import Addressed, NoticeContent, NoticeKey, Quotes


@dataclass(frozen=True)
class RequestSummary(Quotes):
    """The request that a notice is about. `text` is the beginning of a follow-up; kind None: no longer known."""

    quotes: ClassVar = ("text",)
    request_id: str
    person_id: str
    kind: RequestKind | None
    text: str = ""


@dataclass(frozen=True)
class _AboutRequest(NoticeContent):
    quotes: ClassVar = ("request",)
    request: RequestSummary

    @property
    def about(self) -> str:
        return self.request.person_id

    def addressed_to(self, person_id: str) -> Self:
        return replace(self, request=replace(self.request, person_id=person_id))


@dataclass(frozen=True)
class _Outage(NoticeContent):
    """`waiting`: a request that waits for its end."""

    quotes: ClassVar = ("waiting",)
    waiting: RequestSummary | None = field(default=None, kw_only=True)

    @property
    def about(self) -> str:
        return self.waiting.person_id if self.waiting else ""

    @staticmethod
    def key(count: int) -> NoticeKey:
        """`count`: the number of outages announced in the thread, including this one."""
        return NoticeKey(f"out/{count}")

    @staticmethod
    def delay_key(request: Request) -> NoticeKey:
        """Told once for a request that is delayed although its job can be read."""
        return NoticeKey(f"{request.id}/out")


@dataclass(frozen=True)
class OutageStarted(_Outage, kind="outage_started"):
    """The job API is unavailable. `reason` is our text, `problem_text` its own; it asked not to be called before
    `until` (seconds since the epoch).
    """

    problem: Problem
    reason: str = ""
    problem_text: str = ""
    until: int | None = None


@dataclass(frozen=True)
class AccessDenied(_Outage, kind="access_denied"):
    """The job API does not accept our key, with status 401 or 403."""

    status: int


@dataclass(frozen=True)
class OutageEnded(NoticeContent, kind="outage_ended"):
    """The job API is available again. `problem`: what was wrong."""

    problem: Problem | None = None

    @staticmethod
    def key(count: int) -> NoticeKey:
        """`count`: the same as when it started."""
        return NoticeKey(f"back/{count}")


@dataclass(frozen=True)
class RequestRejected(_AboutRequest, kind="request_rejected"):
    """A request was not accepted, or without effect. `api_text` is the job API's text, `status` that of its response;
    `stopped_by` is who stopped the job before it was sent.
    """

    reason: RejectionReason
    api_text: str = ""
    stopped_by: str = ""
    status: int | None = None

    @staticmethod
    def key(request: Request) -> NoticeKey:
        """Told once for each attempt."""
        return NoticeKey(f"{request.id}/refused/{request.attempts}")

    @staticmethod
    def unreadable_key(request_id: str) -> NoticeKey:
        """Told once for a request whose record is damaged."""
        return NoticeKey(f"{request_id}/unreadable")


@dataclass(frozen=True)
class RequestUncertain(_AboutRequest, kind="request_uncertain"):
    """Nobody knows whether a request was accepted, for the reason in `doubt`; a person can send it again. `job_ended`:
    the job was not running, so people would see if it starts to work on a follow-up. `api_text` is the job API's text.
    """

    job_ended: bool = True
    doubt: Doubt = Doubt.NO_ANSWER
    api_text: str = ""

    @staticmethod
    def key(request: Request) -> NoticeKey:
        """Told once for each attempt."""
        return NoticeKey(f"{request.id}/unsure/{request.attempts}")


@dataclass(frozen=True)
class ReplyNotFullySent(Addressed, kind="reply_not_fully_sent"):
    """A reply contained more than text, or no text. `file_names` can be fewer than `file_count`."""

    quotes: ClassVar = ("file_names",)
    person_id: str
    words_sent: bool
    file_count: int = 0
    file_names: tuple[str, ...] = ()
    forwarded: bool = False

    @staticmethod
    def key(request: Request) -> NoticeKey:
        """Told once for a reply, however it is handled."""
        return NoticeKey(f"{request.reply_id}/not_carried")


@dataclass(frozen=True)
class ContextCut(Addressed, kind="context_cut"):
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

    @staticmethod
    def key(request: Request) -> NoticeKey:
        """Told once for a request."""
        return NoticeKey(f"{request.reply_id}/cut")

    @staticmethod
    def files_key(request: Request) -> NoticeKey:
        """Told once for a request whose files could not be uploaded."""
        return NoticeKey(f"{request.reply_id}/files")
