"""When each kind of event last happened."""

from collections.abc import Collection, Iterable, Mapping

from sqlalchemy import RowMapping, select

from bot.domain.last_times import LastTime
from bot.store.schema.tables import last_times
from bot.store.session import Part, replacing

ALL_TIMES = select(last_times)
_KNOWN = frozenset(LastTime)


_NOTE = replacing(last_times, "at")


def times_in(rows: Iterable[RowMapping]) -> Mapping[LastTime, float]:
    """Reads rows of ALL_TIMES. Ignores kinds that only a newer version knows."""
    return {LastTime(row["kind"]): float(row["at"]) for row in rows if row["kind"] in _KNOWN}


class LastTimes(Part):
    """When each kind of event last happened."""

    async def note(self, kinds: Collection[LastTime]) -> None:
        """Records that these happened now."""
        session = self._session
        if kinds:
            rows = [{"kind": kind, "at": session.now} for kind in sorted(kinds)]  # the same order in all processes
            await session.execute(_NOTE, rows)
