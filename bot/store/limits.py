"""What counts towards somebody's limit: each request that was let through, once."""

from sqlalchemy import Double, bindparam, func, select

from bot.store.schema.people_tables import counted_requests
from bot.store.session import Session, for_each_dialect

_LIMITS = 7_401
"""The first key of PostgreSQL's advisory locks that mean "somebody's limit is looked at"; the second is the person."""
_LOCK = select(func.pg_advisory_xact_lock(_LIMITS, func.hashtext(bindparam("person"))))
_COUNTED = select(counted_requests.c.request_id).where(counted_requests.c.request_id == bindparam("request"))
_NTH_NEWEST = (
    select(counted_requests.c.at)
    .where(
        counted_requests.c.person_id == bindparam("person"), counted_requests.c.at > bindparam("since", type_=Double)
    )
    .order_by(counted_requests.c.at.desc())
    .offset(bindparam("newer"))
    .limit(1)
)
_COUNT = for_each_dialect(lambda into: into(counted_requests).on_conflict_do_nothing())


class Limits:
    """ports.Limits."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def free_at(self, person_id: str, request_id: str, *, limit: int, within: float) -> float | None:
        session = self._session
        if limit < 1:
            return None
        if session.dialect == "postgresql":  # SQLite's transaction has the whole database to itself
            await session.execute(_LOCK, {"person": person_id})
        if await session.rows(_COUNTED, request=request_id):
            return None
        rows = await session.rows(_NTH_NEWEST, person=person_id, since=session.now - within, newer=limit - 1)
        return float(rows[0][counted_requests.c.at]) + within if rows else None

    async def count(self, person_id: str, request_id: str) -> bool:
        values = {"request_id": request_id, "person_id": person_id, "at": self._session.now}
        counted = await self._session.execute(_COUNT[self._session.dialect], values)
        return counted.rowcount == 1
