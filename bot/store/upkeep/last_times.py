"""When each kind of event last happened."""

from collections.abc import Collection, Iterable, Mapping

from sqlalchemy import Executable, RowMapping, select

from bot.domain.last_times import LastTime
from bot.store.schema.tables import last_times
from bot.store.session import InsertInto, Session, for_each_dialect

ALL_TIMES = select(last_times)
_KNOWN = frozenset(LastTime)


def _note(into: InsertInto) -> Executable:
    insert = into(last_times)
    return insert.on_conflict_do_update(index_elements=[last_times.c.kind], set_={"at": insert.excluded.at})


_NOTE = for_each_dialect(_note)


def times_in(rows: Iterable[RowMapping]) -> Mapping[LastTime, float]:
    """Reads rows of ALL_TIMES. Ignores kinds that only a newer version knows."""
    return {LastTime(row["kind"]): float(row["at"]) for row in rows if row["kind"] in _KNOWN}


class LastTimes:
    """When each kind of event last happened."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def note(self, kinds: Collection[LastTime]) -> None:
        """Records that these happened now."""
        session = self._session
        if kinds:
            rows = [{"kind": kind, "at": session.now} for kind in sorted(kinds)]  # the same order in all processes
            await session.execute(_NOTE[session.dialect], rows)
