"""People's preferences, drafts and Homes, their requests that count towards a limit, and the audit trail."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, RowMapping, bindparam, case, delete, func, insert, or_, select, tuple_, update

from bot.domain.people import Preference
from bot.domain.requests.audit import ABOUT, AuditAction, AuditEntry, RecordedEntry
from bot.domain.requests.request import Person
from bot.queue.claims import FREE, first_due
from bot.queue.transaction import adding, replacing
from bot.store.schema.tables import audit, counted_requests, drafts, homes, preferences
from bot.store.session import Part, Session

logger = logging.getLogger("bot.store.audit")


@dataclass(frozen=True)
class ClaimedHome:
    """A Home to publish, with the page of jobs that its person sees."""

    person_id: str
    page: int


_DUE_HOMES = first_due(select(homes.c.person_id, homes.c.page), homes)
_NOTHING_NEW = or_(homes.c.due_at.is_(None), homes.c.due_at == homes.c.claimed_until)
"""A Home in progress is due when its claim ends, unless something has changed meanwhile."""
_CHANGED = (
    update(homes)
    .where(homes.c.person_id == bindparam("person"))
    .values(due_at=case((_NOTHING_NEW, bindparam("next_at", type_=homes.c.due_at.type)), else_=homes.c.due_at))
)
_PREFERENCE = select(preferences).where(preferences.c.person_id == bindparam("person"))
_SAVE_DRAFT = replacing(drafts, "text", "updated_at")
_SAVE_PREFERENCE = replacing(preferences, "project", "quiet")
_HOME_OPENED = replacing(homes, "page", "opened_at", "due_at")


class Drafts(Part):
    """Text typed into a modal that was not submitted. `place`: where the modal was opened."""

    async def get(self, person_id: str, place: str) -> str:
        """Returns the text; empty if there is none."""
        rows = await self._session.rows(select(drafts.c.text).where(*_at(person_id, place)))
        return str(rows[0]["text"]) if rows else ""

    async def save(self, person_id: str, place: str, text: str) -> None:
        """Replaces the text."""
        values = {"person_id": person_id, "place": place, "text": text, "updated_at": self._session.now}
        await self._session.execute(_SAVE_DRAFT, values)

    async def delete(self, person_id: str, place: str) -> None:
        """Deletes the text."""
        await self._session.execute(delete(drafts).where(*_at(person_id, place)))


def _at(person_id: str, place: str) -> tuple[ColumnElement[bool], ...]:
    return drafts.c.person_id == person_id, drafts.c.place == place


class Preferences(Part):
    """People's preferences."""

    async def get(self, person_id: str) -> Preference:
        """Returns a person's preference, with defaults for what they never set."""
        rows = await self._session.rows(_PREFERENCE, person=person_id)
        return Preference(rows[0]["project"], rows[0]["quiet"]) if rows else Preference()

    async def save(self, person_id: str, preference: Preference) -> None:
        """Saves a preference, which the person's Home shows."""
        values = {"person_id": person_id, "project": preference.project, "quiet": preference.quiet}
        await self._session.execute(_SAVE_PREFERENCE, values)
        await home_changed(self._session, person_id, due_in=0.0)


HOME_DELAY = 2.0
"""Seconds after which a change appears in its person's Home, together with later ones."""


async def home_changed(session: Session, person_id: str, *, due_in: float = HOME_DELAY) -> None:
    """Makes somebody's Home due, if they ever opened it."""
    await session.execute(_CHANGED, {"person": person_id, "next_at": session.now + due_in})


class Homes(Part):
    """The App Homes of people who have opened theirs."""

    async def opened(self, person_id: str, *, page: int = 0) -> None:
        """Records which page of their Home somebody sees, and makes the Home due at once."""
        now = self._session.now
        values = {"person_id": person_id, "page": page, "opened_at": now, "due_at": now}
        await self._session.execute(_HOME_OPENED, values)

    async def changed(self, person_id: str, *, due_in: float = HOME_DELAY) -> None:
        """Makes somebody's Home due in this many seconds, if they ever opened it."""
        await home_changed(self._session, person_id, due_in=due_in)

    async def claim(self, owner: str, *, lease: float, limit: int) -> Sequence[ClaimedHome]:
        """Claims Homes that are due and unclaimed."""
        session = self._session
        found = await session.rows(_DUE_HOMES, now=session.now, limit=limit)
        if found:
            claimed = update(homes).where(homes.c.person_id.in_([row["person_id"] for row in found]))
            lease_end = session.now + lease
            await session.execute(claimed.values(claimed_by=owner, claimed_until=lease_end, due_at=lease_end))
        return [ClaimedHome(row["person_id"], row["page"]) for row in found]

    async def published(self, person_id: str, owner: str, *, again_in: float | None = None) -> None:
        """Frees a Home that `owner` holds; it is due again in this many seconds (None: when something changes). If
        others may have claimed it by now, it is due at once: what was published late may have replaced something newer.
        """
        next_at = None if again_in is None else self._session.now + again_in
        held = await self._session.execute(
            update(homes)
            .where(homes.c.person_id == person_id, homes.c.claimed_by == owner)
            .values(due_at=case((_NOTHING_NEW, next_at), else_=homes.c.due_at), **FREE)
        )
        if not held.rowcount:  # another process may have shown something newer before
            await self.changed(person_id, due_in=0.0)


_LIMITS = 7_401
"""The first key of PostgreSQL's advisory locks for checking a person's limit; the second is the person."""
_LOCK = select(func.pg_advisory_xact_lock(_LIMITS, func.hashtext(bindparam("person"))))
_COUNT, _ADD_ENTRY = adding(counted_requests), insert(audit)


class Limits(Part):
    """The number of requests that people have made recently."""

    async def free_at(self, person_id: str, request_id: str, *, limit: int, within: float) -> float | None:
        """Returns when somebody who has made `limit` requests within `seconds` may make another; None if they may now,
        as they always may if there is no limit (0) or the request is already counted. Other transactions about
        this person wait until this one ends; lock all threads first.
        """
        session = self._session
        if limit < 1:
            return None
        if session.dialect == "postgresql":  # a transaction in SQLite has the whole database to itself
            await session.execute(_LOCK, {"person": person_id})
        if await session.rows(select(counted_requests.c.at).where(counted_requests.c.request_id == request_id)):
            return None
        recent = (counted_requests.c.person_id == person_id, counted_requests.c.at > session.now - within)
        newest_first = select(counted_requests.c.at).where(*recent).order_by(counted_requests.c.at.desc())
        rows = await session.rows(newest_first.offset(limit - 1).limit(1))
        return float(rows[0][counted_requests.c.at]) + within if rows else None

    async def count(self, person_id: str, request_id: str) -> bool:
        """Counts an allowed request. False if it was counted before, because it is being prepared again."""
        values = {"request_id": request_id, "person_id": person_id, "at": self._session.now}
        counted = await self._session.execute(_COUNT, values)
        return counted.rowcount == 1


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
        await self._session.execute(_ADD_ENTRY, values)
        self._added.append(entry)

    async def read(self, *, since: float, until: float, after: int, limit: int) -> Sequence[RecordedEntry]:
        """Returns entries from `since` until `until`, oldest first. Of those at exactly `since`, only the ones with a
        number above `after` (0 for the first page). The next page begins with the last entry's time and number.
        """
        place = tuple_(audit.c.at, audit.c.id)
        later = (place > tuple_(since, after, types=[audit.c.at.type, audit.c.id.type]), audit.c.at < until)
        rows = await self._session.rows(select(audit).where(*later).order_by(audit.c.at, audit.c.id).limit(limit))
        return [_recorded_entry(row) for row in rows]


def log_entries(entries: Sequence[AuditEntry]) -> None:
    """Writes a log line for each entry."""
    for entry in entries:
        logger.info("audit: %s", entry.action, extra={"fields": entry.details})


def _recorded_entry(row: RowMapping) -> RecordedEntry:
    person = Person(row["person_id"], row["team_id"])
    entry = AuditEntry(AuditAction(row["action"]), person, **{name: row[name] for name in ABOUT})
    return RecordedEntry(row["id"], row["at"], entry)
