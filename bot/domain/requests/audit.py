"""The audit trail: who did what, and when. Never what they wrote."""

from dataclasses import dataclass
from enum import StrEnum

from bot.domain.requests.request import Person, Request
from bot.domain.threads.thread import Thread


class AuditAction(StrEnum):
    """What somebody did. The database stores these values."""

    ASKED = "asked"
    STEERED = "steered"
    STOPPED = "stopped"
    RETRIED = "retried"
    DISCARDED = "discarded"
    MUTED = "muted"
    UNMUTED = "unmuted"
    PROJECT_CHOSEN = "project_chosen"
    PLAN_ACCEPTED = "plan_accepted"
    PLAN_DROPPED = "plan_dropped"
    REFUSED = "refused"
    """They were not permitted to do something; the reason says why."""


@dataclass(frozen=True)
class AuditEntry:
    """Something that a person did, or was refused. All fields but the first three can be empty: none, or unknown."""

    action: AuditAction
    person: Person
    channel_id: str
    thread_id: str = ""
    job_id: str = ""
    project: str = ""
    way_in: str = ""
    reason: str = ""

    @property
    def details(self) -> dict[str, str]:
        """All fields but `action`, by their names in the log and in exports; empty: none, or unknown."""
        who = {"person": self.person.id, "team": self.person.team_id}
        return who | {name.removesuffix("_id"): getattr(self, name) for name in ABOUT}


ABOUT = ("channel_id", "thread_id", "job_id", "project", "way_in", "reason")
"""The fields of an entry that say what it is about."""


def audited(action: AuditAction, request: Request, thread: Thread, *, reason: str = "") -> AuditEntry:
    """The entry that the person of a request did something about a job, or was refused it for a reason."""
    return AuditEntry(
        action,
        request.person,
        thread.channel_id,
        thread_id=thread.id,
        job_id=thread.state.job.id if thread.state.job else "",
        project=thread.project,
        way_in=request.way_in.value,
        reason=reason,
    )


@dataclass(frozen=True)
class RecordedEntry:
    """An entry with its number and time, in seconds since the epoch."""

    number: int
    at: float
    entry: AuditEntry
