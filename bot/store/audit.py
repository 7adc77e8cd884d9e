"""The audit trail: who did what, and when."""

from collections.abc import Collection, Sequence

from sqlalchemy import bindparam, func, insert, select

from bot.domain.audit import AuditAction, AuditEntry, RecordedEntry
from bot.domain.requests import Person
from bot.store.schema.tables import audit
from bot.store.session import Session

_ADD = insert(audit)
_COUNT = (
    select(func.count().label("found"))
    .select_from(audit)
    .where(
        audit.c.person_id == bindparam("person"),
        audit.c.at >= bindparam("since"),
        audit.c.action.in_(bindparam("actions", expanding=True)),
    )
)
_READ = (
    select(audit)
    .where(audit.c.id > bindparam("after"), audit.c.at >= bindparam("since"), audit.c.at < bindparam("until"))
    .order_by(audit.c.id)
    .limit(bindparam("most"))
)


class Audit:
    """ports.Audit."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, entry: AuditEntry) -> None:
        values = {name: getattr(entry, name) for name in AuditEntry.__dataclass_fields__ if name != "person"}
        values |= {"person_id": entry.person.id, "team_id": entry.person.team_id, "at": self._session.now}
        await self._session.execute(_ADD, values)

    async def count(self, person_id: str, actions: Collection[AuditAction], *, since: float) -> int:
        rows = await self._session.rows(_COUNT, person=person_id, since=since, actions=list(actions))
        return int(rows[0]["found"])

    async def read(self, *, since: float, until: float, after: int, limit: int) -> Sequence[RecordedEntry]:
        rows = await self._session.rows(_READ, since=since, until=until, after=after, most=limit)
        return [
            RecordedEntry(
                row["id"],
                row["at"],
                AuditEntry(
                    AuditAction(row["action"]),
                    Person(row["person_id"], row["team_id"]),
                    row["channel_id"],
                    row["thread_id"],
                    row["job_id"],
                    row["project"],
                    row["way_in"],
                    row["reason"],
                ),
            )
            for row in rows
        ]
