"""Posts about a job: its changes of status, its ends, its pull requests."""

from dataclasses import dataclass, field
from hashlib import sha256
from typing import ClassVar

from bot.domain.jobs.details import JobReport, QuestionField
from bot.domain.requests.request import Request
from bot.notices.notice import Addressed, NoticeContent, NoticeKey

_FINISHED, _FAILED, _STOPPED = "/completed", "/failed", "/stopped"


def tells_of_a_finish(key: NoticeKey) -> bool:
    """Returns whether this is the key of a `JobFinished` of any round."""
    return key.endswith(_FINISHED)


def tells_of_an_end(key: NoticeKey) -> bool:
    """Returns whether this is the key of any end."""
    return key.endswith((_FINISHED, _FAILED, _STOPPED))


def _in_round(round_: int, nth: int, fact: str) -> NoticeKey:
    """The key of what can happen `nth` times in a round."""
    return NoticeKey(f"r{round_}{fact}" if nth == 1 else f"r{round_}/{nth}{fact}")


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


@dataclass(frozen=True)
class JobStarted(NoticeContent, kind="job_started"):
    """The agent has started. Fields that the job API did not report are empty."""

    KEY: ClassVar = NoticeKey("started")
    job_id: str
    repository: str = ""
    ref: str = ""
    model: str = ""


@dataclass(frozen=True)
class JobActiveAgain(NoticeContent, kind="job_active_again"):
    """A job that had ended is running again, after a follow-up."""

    @staticmethod
    def key(round_: int, nth: int = 1) -> NoticeKey:
        """Told once each time."""
        return _in_round(round_, nth, "/active")


@dataclass(frozen=True)
class JobStatusChanged(NoticeContent, kind="job_status_changed"):
    """A running job has another status, one that the specification doesn't have or, after such a one, `active`."""

    status: str

    @staticmethod
    def key(round_: int, status: str, nth: int = 1) -> NoticeKey:
        """Told once each time, for a status that is no end. It can be any text."""
        return _in_round(round_, nth, f"/status/{_digest(status)}")


@dataclass(frozen=True)
class JobSilent(NoticeContent, kind="job_silent"):
    """The agent is working, but nothing has changed for a long time."""

    @staticmethod
    def key(round_: int) -> NoticeKey:
        """Told once a round."""
        return NoticeKey(f"r{round_}/silent")


@dataclass(frozen=True)
class HistoryUnread(NoticeContent, kind="history_unread"):
    """Not all of what was written here could be read, while nobody listened `since` then `until` then, in seconds since
    the epoch.
    """

    since: float
    until: float

    @staticmethod
    def key(until: float) -> NoticeKey:
        """Told once per time in which nobody listened."""
        return NoticeKey(f"unread/{until:.0f}")


@dataclass(frozen=True)
class JobEnd(Addressed):
    """How a round ended. It includes the pull request, if there is one.

    `link` is empty if there is no pull request; `new`: it was not announced before; `changed`: another one was.
    `report` has the job's details, if any. `person_id` is who wrote the request that the agent worked on; empty: the
    requester.
    """

    ends_work: ClassVar = True
    told_though_muted: ClassVar = True
    """One that finished without a pull request is not (bot.domain.notification)."""
    person_id: str = field(default="", kw_only=True)
    link: str = ""
    new: bool = False
    changed: bool = False
    report: JobReport | None = None


@dataclass(frozen=True)
class JobFinished(JobEnd, kind="job_finished"):
    """A job has finished. `again`: it had finished before."""

    again: bool = False

    @staticmethod
    def key(round_: int, nth: int = 1) -> NoticeKey:
        """Told once each time."""
        return _in_round(round_, nth, _FINISHED)


@dataclass(frozen=True)
class JobFailed(JobEnd, kind="job_failed"):
    """A job has failed. The specification has no reason for it."""

    @staticmethod
    def key(round_: int, nth: int = 1) -> NoticeKey:
        """Told once each time."""
        return _in_round(round_, nth, _FAILED)


@dataclass(frozen=True)
class JobStopped(JobEnd, kind="job_stopped"):
    """A job that `person_id` had stopped has ended."""

    person_id: str

    @staticmethod
    def key(round_: int, nth: int = 1) -> NoticeKey:
        """Told once each time, instead of the end that a stop causes."""
        return _in_round(round_, nth, _STOPPED)


@dataclass(frozen=True)
class _StopReported(Addressed):
    """What became of a stop by `person_id` that the job's end does not announce."""

    person_id: str

    @staticmethod
    def key(request: Request) -> NoticeKey:
        """Sent once for a stop."""
        return NoticeKey(f"{request.id}/stop")


@dataclass(frozen=True)
class JobStillStopping(_StopReported, kind="job_still_stopping"):
    """The job API accepted the stop, but the job has not ended."""


@dataclass(frozen=True)
class AgentAskedToStop(_StopReported, kind="agent_asked_to_stop"):
    """The job API cannot stop a job, so the agent was asked to stop."""


@dataclass(frozen=True)
class QuestionAsked(Addressed, kind="question_asked"):
    """The agent asks a question that no message about an end contains. `person_id` is whom it asks; empty: the
    requester. `fields` is a form for the answer.
    """

    question: str
    fields: tuple[QuestionField, ...] = ()
    person_id: str = field(default="", kw_only=True)

    @staticmethod
    def key(round_: int, digest: str) -> NoticeKey:
        """Told once per round for each question that the agent asks while it works."""
        return NoticeKey(f"r{round_}/question/{digest}")


@dataclass(frozen=True)
class JobArchived(NoticeContent, kind="job_archived"):
    """The job no longer accepts follow-ups."""

    ends_work: ClassVar = True

    @staticmethod
    def key(round_: int, nth: int = 1) -> NoticeKey:
        """Told once each time."""
        return _in_round(round_, nth, "/archived")


@dataclass(frozen=True)
class JobDisappeared(NoticeContent, kind="job_disappeared"):
    """The job API no longer knows the job."""

    told_though_muted: ClassVar = True

    @staticmethod
    def key(count: int) -> NoticeKey:
        """`count`: the number of outages announced in the thread, of which this is the newest."""
        return NoticeKey("gone" if count == 1 else f"gone/{count}")


@dataclass(frozen=True)
class PullRequestFound(NoticeContent, kind="pull_request_found"):
    """A link that came before the end, or late, or instead of an announced one (`changed`).

    `alone`: no end was announced for the work that it belongs to.
    """

    told_though_muted: ClassVar = True
    link: str
    changed: bool = False
    alone: bool = False

    @staticmethod
    def key(link: str) -> NoticeKey:
        """Told once for each link, which can have any length."""
        return NoticeKey(f"link/{_digest(link)}")


@dataclass(frozen=True)
class RecordDamaged(NoticeContent, kind="record_damaged"):
    """The thread's state can no longer be read."""

    told_though_muted: ClassVar = True
    KEY: ClassVar = NoticeKey("damaged")
