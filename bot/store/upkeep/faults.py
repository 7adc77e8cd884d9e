"""Faults of the set-up: recorded as the checks find them, and reported once each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Double, and_, bindparam, select, update

from bot.domain.findings import Finding, FindingStatus
from bot.domain.last_times import LastTime
from bot.store.claims import CLAIM, FREE, LIMIT, claim_of, due
from bot.store.schema.operator_tables import faults, last_times
from bot.store.session import Session, for_each_dialect
from bot.store.upkeep.last_times import LastTimes


@dataclass(frozen=True)
class ClaimedFault:
    """A fault to be reported. `found_at` is when it was first seen; `attempts` includes this one."""

    key: str
    words: str
    found_at: float
    attempts: int


DAY = 86_400.0
"""Seconds during which a fault that comes and goes is not reported again."""

_NOW = bindparam("now", type_=Double)
_TOLD_LATELY = faults.c.found_at > bindparam("lately", type_=Double)
_OF_KEY = faults.c.key == bindparam("of_key")
_IS_BACK = and_(_OF_KEY, faults.c.cleared_at.is_not(None))
_STILL_FOUND = faults.c.key.in_(bindparam("found", expanding=True))
_ADD = for_each_dialect(lambda into: into(faults).on_conflict_do_nothing(index_elements=[faults.c.key]))
_BACK_SOON = update(faults).where(_IS_BACK, _TOLD_LATELY).values(cleared_at=None)
_BACK = (
    update(faults)
    .where(_IS_BACK, ~_TOLD_LATELY)
    .values(
        cleared_at=None, found_at=_NOW, words=bindparam("new_words"), attempts=0, due_at=bindparam("next_at"), **FREE
    )
)
# A fault that was not reported yet stays due, in case it comes back soon; while it is gone, nobody claims it.
_CLEAR = tuple(
    update(faults)
    .where(column.in_(bindparam("well", expanding=True)), faults.c.cleared_at.is_(None), ~_STILL_FOUND)
    .values(cleared_at=_NOW)
    for column in (faults.c.key, faults.c.parent)
)
_DUE = (
    select(faults)
    .where(due(faults), faults.c.cleared_at.is_(None))
    .order_by(faults.c.due_at)
    .limit(LIMIT)
    .with_for_update(skip_locked=True)
)
_CLAIM_THESE = (
    update(faults)
    .where(faults.c.key.in_(bindparam("keys", expanding=True)))
    .values(**CLAIM, attempts=faults.c.attempts + 1)
)
_RESULT = (
    update(faults)
    .where(_OF_KEY, faults.c.claimed_by == bindparam("owner"))
    .values(due_at=bindparam("next_at", type_=Double), **FREE)
)

_LOOKED_BEFORE = select(last_times.c.kind).where(last_times.c.kind == LastTime.CHECKS)


class Faults:
    """Faults of the set-up that the checks found, each by the name of its check.

    A fault is reported once, and again if it comes back on another day after it was fixed.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    async def record(self, findings: Sequence[Finding], *, tell: bool) -> None:
        """Records the findings of one run. A finding without a fault clears the faults of its name, and of names with
        one more part. With `tell`, a new fault is due to be reported. It is false in the first run, whose faults are
        known to the person who set Pagehand up.
        """
        found = {finding.check: finding.words for finding in findings if finding.is_fault and not finding.passing}
        well = [finding.check for finding in findings if finding.status is FindingStatus.OK]
        for clear in _CLEAR if well else ():
            await self._session.execute(clear, {"well": well, "found": list(found), "now": self._session.now})
        looked_before = bool(await self._session.rows(_LOOKED_BEFORE))
        for key, words in sorted(found.items()):
            await self._found(key, words, tell=tell and looked_before)
        await LastTimes(self._session).note([LastTime.CHECKS])

    async def _found(self, key: str, words: str, *, tell: bool) -> None:
        session, now = self._session, self._session.now
        next_at = now if tell else None
        known: dict[str, Any] = {"of_key": key, "lately": now - DAY}
        await session.execute(_BACK_SOON, known)
        await session.execute(_BACK, known | {"now": now, "new_words": words, "next_at": next_at})
        parent = key.rpartition(".")[0]
        new = {"key": key, "parent": parent, "words": words, "found_at": now, "attempts": 0, "due_at": next_at}
        await session.execute(_ADD[session.dialect], new)

    async def claim(self, owner: str, *, lease: float, limit: int) -> Sequence[ClaimedFault]:
        """Claims faults that are due to be reported."""
        session = self._session
        rows = await session.rows(_DUE, now=session.now, limit=limit)
        if rows:
            keys = [row["key"] for row in rows]
            await session.execute(_CLAIM_THESE, {"keys": keys, **claim_of(session, owner, lease)})
        return [ClaimedFault(row["key"], row["words"], row["found_at"], row["attempts"] + 1) for row in rows]

    async def settled(self, key: str, owner: str) -> None:
        """Records that a fault that the owner holds is reported."""
        await self._session.execute(_RESULT, {"of_key": key, "owner": owner, "next_at": None})

    async def postpone(self, key: str, owner: str, *, due_in: float) -> None:
        """Makes it due again in this many seconds."""
        next_at = self._session.now + due_in
        await self._session.execute(_RESULT, {"of_key": key, "owner": owner, "next_at": next_at})
