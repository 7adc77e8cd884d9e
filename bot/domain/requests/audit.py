"""The audit trail: who did what, and when. Never what they wrote."""

from dataclasses import dataclass
from enum import StrEnum

from bot.domain.requests.request import Person, Request
from bot.domain.threads.thread import Thread


class AuditAction(StrEnum):
    """What somebody did. Databases hold these words."""

    ASKED = "asked"
    STEERED = "steered"
    STOPPED = "stopped"
    RETRIED = "retried"
    DISCARDED = "discarded"
    MUTED = "muted"
    UNMUTED = "unmuted"
    PROJECT_CHOSEN = "project_chosen"
    REFUSED = "refused"
    """They wanted something that they may not do; the reason tells why not."""


@dataclass(frozen=True)
class AuditEntry:
    """One thing that somebody did, or was refused. All but the first three can be empty: there is none, or it is not
    known.
    """

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
        """All but what was done, by the names that the log and an export have for it; empty: not known, or there is
        none.
        """
        return {
            "person": self.person.id,
            "team": self.person.team_id,
            "channel": self.channel_id,
            "thread": self.thread_id,
            "job": self.job_id,
            "project": self.project,
            "way_in": self.way_in,
            "reason": self.reason,
        }


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
    """An entry with its number and its time, in seconds since the epoch."""

    number: int
    at: float
    entry: AuditEntry
