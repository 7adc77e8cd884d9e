"""The audit trail: who did what, and when. Each entry is also a line of the log, once it is committed."""

import logging
from collections.abc import Sequence

from sqlalchemy import Double, RowMapping, bindparam, insert, select, tuple_

from bot.domain.requests.audit import AuditAction, AuditEntry, RecordedEntry
from bot.domain.requests.request import Person
from bot.store.schema.people_tables import audit
from bot.store.session import Session

logger = logging.getLogger(__name__)

_ADD = insert(audit)
_READ = (
    select(audit)
    .where(
        tuple_(audit.c.at, audit.c.id) > tuple_(bindparam("since", type_=Double), bindparam("after")),
        audit.c.at < bindparam("until", type_=Double),
    )
    .order_by(audit.c.at, audit.c.id)
    .limit(bindparam("most"))
)


class Audit:
    """Who did what, and when."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._added: list[AuditEntry] = []

    @property
    def added(self) -> Sequence[AuditEntry]:
        """The entries that this transaction has recorded."""
        return tuple(self._added)

    async def add(self, entry: AuditEntry) -> None:
        """Records an entry at the transaction's time."""
        values = {name: getattr(entry, name) for name in AuditEntry.__dataclass_fields__ if name != "person"}
        values |= {"person_id": entry.person.id, "team_id": entry.person.team_id, "at": self._session.now}
        await self._session.execute(_ADD, values)
        self._added.append(entry)

    async def read(self, *, since: float, until: float, after: int, limit: int) -> Sequence[RecordedEntry]:
        """Returns entries from `since` until `until`, oldest first. Of those at exactly `since`, only the ones with a
        number above `after` (0 for the first page). The next page begins with the last entry's time and number.
        """
        rows = await self._session.rows(_READ, since=since, until=until, after=after, most=limit)
        return [_recorded(row) for row in rows]


def log_entries(entries: Sequence[AuditEntry]) -> None:
    """Writes a log line for each entry."""
    for entry in entries:
        logger.info("audit: %s", entry.action, extra={"fields": entry.details})


def _recorded(row: RowMapping) -> RecordedEntry:
    person = Person(row["person_id"], row["team_id"])
    others = {name: row[name] for name in ("channel_id", "thread_id", "job_id", "project", "way_in", "reason")}
    return RecordedEntry(row["id"], row["at"], AuditEntry(AuditAction(row["action"]), person, **others))
