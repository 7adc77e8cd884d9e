"""Times in which nobody listened to Slack (ports.Gaps)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Double,
    Executable,
    FromClause,
    RowMapping,
    Select,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    literal,
    literal_column,
    not_,
    or_,
    select,
    union,
    update,
)

from bot.domain.gaps import ALL_CHANNELS, BEAT, DAY, WEEK, Gap, Listening, resumed_at
from bot.domain.requests.request import RequestKind, WayIn
from bot.queue.claims import FREE, LIMIT, NOW, due
from bot.queue.transaction import InsertInto, adding, for_each_dialect, upserting
from bot.store.schema.tables import gaps, listening, polls, requests, stops_seen, threads
from bot.store.session import Part


@dataclass(frozen=True)
class ClaimedGap:
    """A gap to read, and how often that was tried, this time included."""

    gap: Gap
    attempts: int


_ANYBODY = ""
_FRESH = 3 * BEAT
"""Seconds; a process that noted nothing for longer does not listen."""
_LONGEST_HOLD = 30.0
"""Seconds that words wait for the history of their thread."""
_SOMEBODY = listening.c.owner > _ANYBODY


def _larger(one: ColumnElement[float], other: ColumnElement[float]) -> ColumnElement[float]:
    return case((one > other, one), else_=other)


def _lengthened(insert: Any) -> Executable:
    """Makes an INSERT lengthen the conversation's gap if there is one."""
    new = insert.excluded
    sooner = case((new.due_at < gaps.c.due_at, new.due_at), else_=gaps.c.due_at)
    longer: Executable = insert.on_conflict_do_update(
        index_elements=[gaps.c.channel_id, gaps.c.thread_ts],
        set_={
            "since": case((new.since < gaps.c.since, new.since), else_=gaps.c.since),
            "until": _larger(new.until, gaps.c.until),
            "asks": or_(new.asks, gaps.c.asks),
            "first": and_(new.first, gaps.c.first),
            "newest": _larger(new.newest, gaps.c.newest),
            "attempts": 0,
            "due_at": sooner,
        },
    )
    return longer


_ABOUT = [
    bindparam("since", type_=Double).label("since"),
    bindparam("until", type_=Double).label("until"),
    bindparam("asks", type_=gaps.c.asks.type).label("asks"),
    bindparam("first", type_=gaps.c.first.type).label("first"),
]
_ROOT = func.coalesce(threads.c.ts, threads.c.root_ts)
_NEWEST, _DUE_NOW, _UNTRIED = func.max(threads.c.updated_at), NOW.label("due_at"), literal(0).label("attempts")
_RECENT = union(
    select(polls.c.thread_id).where(polls.c.due_at.is_not(None)),
    # The second limit tells PostgreSQL that these are few.
    select(threads.c.id).where(threads.c.updated_at.between(bindparam("ended_after", type_=Double), NOW)),
)
_COLUMNS = ("channel_id", "thread_ts", "since", "until", "asks", "first", "newest", "attempts", "due_at")


def _of_jobs_and_direct_messages(into: InsertInto) -> Executable:
    of_jobs = (
        select(threads.c.channel_id, _ROOT.label("thread_ts"), *_ABOUT, _NEWEST.label("newest"), _UNTRIED, _DUE_NOW)
        .where(threads.c.id.in_(_RECENT), threads.c.requester_id != "", _ROOT != "")
        .group_by(threads.c.channel_id, _ROOT)
    )
    until = bindparam("until", type_=Double).label("newest")
    of_direct_messages = (
        select(threads.c.channel_id, literal("").label("thread_ts"), *_ABOUT, until, _UNTRIED, _DUE_NOW)
        .where(threads.c.channel_id >= "D", threads.c.channel_id < "E")
        .group_by(threads.c.channel_id)
    )
    return _lengthened(into(gaps).from_select(_COLUMNS, of_jobs.union_all(of_direct_messages)))


_LISTENS = upserting(listening, lambda new: {"since": new.since, "until": _larger(listening.c.until, new.until)})
_ADD = for_each_dialect(lambda into: _lengthened(into(gaps)))
_SPREAD = for_each_dialect(_of_jobs_and_direct_messages)
_COVERED = exists().where(_SOMEBODY, listening.c.since <= gaps.c.since, listening.c.until >= gaps.c.until)
_DUE = select(gaps).where(due(gaps)).order_by(gaps.c.newest.desc()).limit(LIMIT).with_for_update(skip_locked=True)
_DROP_COVERED = delete(gaps).where(gaps.c.channel_id == "", gaps.c.since < gaps.c.until, due(gaps), _COVERED)
_SEEN = adding(stops_seen)


def waits_for_history(request: FromClause) -> ColumnElement[bool]:
    """Returns the condition that a follow-up waits, because its thread's history may have older ones."""
    job = threads.alias("of_the_words")
    of_thread = and_(gaps.c.channel_id == job.c.channel_id, gaps.c.thread_ts == func.coalesce(job.c.ts, job.c.root_ts))
    of_all = and_(gaps.c.channel_id == literal_column("''"), gaps.c.due_at <= NOW)
    return (
        exists()
        .where(
            request.c.kind == literal_column(f"'{RequestKind.FOLLOW_UP}'"),
            request.c.recorded_at > NOW - literal(_LONGEST_HOLD, Double),
            job.c.id == request.c.thread_id,
            not_(gaps.c.first),
            or_(of_thread, of_all),
        )
        .correlate(request)
    )


class Gaps(Part):
    """Who listened until when, and which conversations are still to be read because nobody did."""

    async def listens(self, owner: str, now: Listening) -> bool:
        """Notes that a process listens. True if that shows a gap, which is then a row."""
        session, now = self._session, now.at(self._session.now)
        rows = {row["owner"]: row for row in await session.rows(_by_owner(_ANYBODY, owner))}
        before, watermark = rows.get(owner), rows.get(_ANYBODY)
        known = None if before is None else Listening(before["since"], before["until"])
        resumed = resumed_at(known, now)
        since = known.since if known and resumed is None else resumed
        notes = [{"owner": each, "since": since, "until": now.until} for each in (_ANYBODY, owner)]
        await session.execute(_LISTENS, notes)
        if watermark is None:
            await self.add([Gap("", "", now.until, now.until, first=True)], newest=now.until)
            return True
        if resumed is None or resumed - watermark["until"] <= now.repeated_for:
            return False
        await self._forget(_ANYBODY)
        fresh = (listening.c.owner != owner, listening.c.until > session.now - _FRESH)
        others = await session.rows(select(listening.c.owner).where(_SOMEBODY, *fresh))
        gap = Gap("", "", watermark["until"], resumed)
        await self.add([gap], newest=resumed, due_in=_FRESH if others else 0.0)
        return not others

    async def listens_no_more(self, owner: str) -> None:
        """Forgets a process that is about to end. Until when anybody listened stays known."""
        await self._forget(owner)

    async def _forget(self, owner: str) -> None:
        gone = or_(listening.c.owner == owner, listening.c.until < self._session.now - DAY)
        await self._session.execute(delete(listening).where(_SOMEBODY, gone))

    async def claim(self, owner: str, *, lease: float, limit: int) -> Sequence[ClaimedGap]:
        """Claims gaps to read, and drops those over which another process turned out to have listened."""
        session = self._session
        found = await session.rows(_DUE, now=session.now, limit=limit)
        if not found:
            return []
        dropped = await session.execute(_DROP_COVERED, {"now": session.now})
        if dropped.rowcount:
            found = [row for row in found if row["channel_id"]]
        for row in found:
            claim = {"claimed_by": owner, "claimed_until": session.now + lease, "attempts": gaps.c.attempts + 1}
            await session.execute(update(gaps).where(*_is(_gap(row))).values(claim))
        session.takeovers += sum(row["claimed_by"] is not None for row in found)
        return [ClaimedGap(_gap(row), row["attempts"] + 1) for row in found]

    async def keep(self, gap: Gap, owner: str, *, lease: float) -> float | None:
        """Extends a claim, and returns the time. None if it is another process's by now."""
        held = update(gaps).where(*_held(gap, owner))
        kept = await self._session.execute(held.values(claimed_until=self._session.now + lease))
        return self._session.now if kept.rowcount == 1 else None

    async def add(self, found: Sequence[Gap], *, newest: float, due_in: float = 0.0) -> None:
        """Adds gaps; one of the same conversation becomes longer."""
        session = self._session
        rows = [
            {**asdict(gap), "newest": newest, "attempts": 0, "due_at": session.now + due_in}
            for gap in sorted(found, key=lambda each: (each.channel_id, each.thread_ts))
        ]
        if rows:
            await session.execute(_ADD, rows)

    async def spread(self, gap: Gap) -> None:
        """Adds a gap for each job's thread and direct message that it concerns, and for all channels."""
        session = self._session
        about = {"since": gap.since, "until": gap.until, "asks": gap.asks, "first": gap.first}
        await session.execute(_SPREAD, {**about, "now": session.now, "ended_after": gap.since - WEEK})
        if not gap.first:
            await self.add([Gap(ALL_CHANNELS, "", gap.since, gap.until, gap.asks)], newest=gap.until)

    async def close(self, gap: Gap, owner: str) -> None:
        """Ends a gap that was read, unless it became longer meanwhile."""
        closed = await self._session.execute(delete(gaps).where(*_held(gap, owner), gaps.c.until == gap.until))
        if not closed.rowcount:
            await self.postpone(gap, owner, due_in=0.0)

    async def postpone(self, gap: Gap, owner: str, *, due_in: float, tried: bool = True) -> None:
        """Releases a gap that could not be read yet, without counting the attempt if it was not really `tried`."""
        held = update(gaps).where(*_held(gap, owner))
        attempts = gaps.c.attempts if tried else _larger(gaps.c.attempts - 1, literal(0))
        await self._session.execute(held.values(due_at=self._session.now + due_in, attempts=attempts, **FREE))

    async def restored(self) -> None:
        """Notes that nobody listened since the backup that the database was restored from."""
        session = self._session
        rows = await session.rows(_by_owner(_ANYBODY))
        await session.execute(delete(listening).where(_SOMEBODY))
        await session.execute(update(gaps).where(gaps.c.due_at >= 0.0).values(asks=True, **FREE))
        for row in rows:
            await self.add([Gap("", "", row["until"], session.now, asks=True)], newest=session.now)
            now = {"owner": _ANYBODY, "since": row["since"], "until": session.now}
            await session.execute(_LISTENS, now)

    async def is_new_stop(self, thread_id: str, person_id: str) -> bool:
        """Notes somebody's reaction for a stop on a job's card. False if it was noted before, or arrived by itself."""
        session = self._session
        seen = await session.execute(_SEEN, {"thread_id": thread_id, "person_id": person_id})
        stopped_before = select(requests.c.id).where(
            requests.c.thread_id == thread_id,
            requests.c.kind == RequestKind.STOP,
            requests.c.way_in == WayIn.REACTION,
            requests.c.person_id == person_id,
        )
        return seen.rowcount == 1 and not await session.rows(stopped_before)


def _by_owner(*owners: str) -> Select[Any]:
    return select(listening).where(listening.c.owner.in_(owners)).with_for_update()


def _gap(row: RowMapping) -> Gap:
    return Gap(row["channel_id"], row["thread_ts"], row["since"], row["until"], row["asks"], row["first"])


def _is(gap: Gap) -> tuple[ColumnElement[bool], ...]:
    return gaps.c.channel_id == gap.channel_id, gaps.c.thread_ts == gap.thread_ts


def _held(gap: Gap, owner: str) -> tuple[ColumnElement[bool], ...]:
    return *_is(gap), gaps.c.claimed_by == owner
