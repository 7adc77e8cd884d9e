"""The audit trail: who did what, and when. Never what they wrote."""

from dataclasses import dataclass
from enum import StrEnum

from bot.domain.requests.request import Person


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


@dataclass(frozen=True)
class RecordedEntry:
    """An entry with its number and its time, in seconds since the epoch."""

    number: int
    at: float
    entry: AuditEntry
