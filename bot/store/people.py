"""People's preferences, drafts and Homes, and their requests that count towards a limit."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Double, bindparam, case, delete, func, or_, select, update

from bot.domain.people.members import Preference
from bot.store.claims import CLAIM, FREE, LIMIT, claim_of, due
from bot.store.schema.people_tables import counted_requests, drafts, homes, preferences
from bot.store.session import Part, Session, adding, replacing


@dataclass(frozen=True)
class ClaimedHome:
    """A Home to publish, with the page of jobs that its person sees."""

    person_id: str
    page: int


_DRAFT = select(drafts.c.text).where(drafts.c.person_id == bindparam("person"), drafts.c.place == bindparam("at"))
_DELETE_DRAFT = delete(drafts).where(drafts.c.person_id == bindparam("person"), drafts.c.place == bindparam("at"))
_PREFERENCE = select(preferences).where(preferences.c.person_id == bindparam("person"))
_DUE_HOMES = (
    select(homes.c.person_id, homes.c.page)
    .where(due(homes))
    .order_by(homes.c.due_at)
    .limit(LIMIT)
    .with_for_update(skip_locked=True)
)
_NEXT = bindparam("next_at", type_=Double)
_CLAIM_HOMES = (
    update(homes)
    .where(homes.c.person_id.in_(bindparam("ids", expanding=True)))
    .values(**CLAIM, due_at=bindparam("lease_end", type_=Double))
)
_NOTHING_NEW = or_(homes.c.due_at.is_(None), homes.c.due_at == homes.c.claimed_until)
"""A Home in progress is due when its claim ends, unless something has changed meanwhile."""
_HOME_CHANGED = (
    update(homes)
    .where(homes.c.person_id == bindparam("person"))
    .values(due_at=case((_NOTHING_NEW, _NEXT), else_=homes.c.due_at))
)
_PUBLISHED = (
    update(homes)
    .where(homes.c.person_id == bindparam("person"), homes.c.claimed_by == bindparam("owner"))
    .values(due_at=case((_NOTHING_NEW, _NEXT), else_=homes.c.due_at), **FREE)
)


_SAVE_DRAFT = replacing(drafts, "text", "updated_at")
_SAVE_PREFERENCE = replacing(preferences, "project", "quiet")
_HOME_OPENED = replacing(homes, "page", "opened_at", "due_at")


class Drafts(Part):
    """Text typed into a modal that was not submitted. `place`: where the modal was opened."""

    async def get(self, person_id: str, place: str) -> str:
        """Returns the text; empty if there is none."""
        rows = await self._session.rows(_DRAFT, person=person_id, at=place)
        return str(rows[0]["text"]) if rows else ""

    async def save(self, person_id: str, place: str, text: str) -> None:
        """Replaces the text."""
        session = self._session
        values = {"person_id": person_id, "place": place, "text": text, "updated_at": session.now}
        await session.execute(_SAVE_DRAFT, values)

    async def delete(self, person_id: str, place: str) -> None:
        """Deletes the text."""
        await self._session.execute(_DELETE_DRAFT, {"person": person_id, "at": place})


class Preferences(Part):
    """People's preferences."""

    async def get(self, person_id: str) -> Preference:
        """Returns a person's preference, with defaults for what they never set."""
        rows = await self._session.rows(_PREFERENCE, person=person_id)
        return Preference(rows[0]["project"], rows[0]["quiet"]) if rows else Preference()

    async def save(self, person_id: str, preference: Preference) -> None:
        """Saves a preference."""
        session = self._session
        values = {"person_id": person_id, "project": preference.project, "quiet": preference.quiet}
        await session.execute(_SAVE_PREFERENCE, values)


HOME_DELAY = 2.0
"""Seconds after which a change appears in its person's Home, together with later ones."""


async def home_changed(session: Session, person_id: str, *, due_in: float = HOME_DELAY) -> None:
    """Makes somebody's Home due, if they ever opened it."""
    await session.execute(_HOME_CHANGED, {"person": person_id, "next_at": session.now + due_in})


class Homes(Part):
    """The App Homes of people who have opened theirs."""

    async def opened(self, person_id: str, *, page: int = 0) -> None:
        """Records which page of their Home somebody sees, and makes the Home due at once."""
        session = self._session
        values = {"person_id": person_id, "page": page, "opened_at": session.now, "due_at": session.now}
        await session.execute(_HOME_OPENED, values)

    async def changed(self, person_id: str, *, due_in: float) -> None:
        """Makes somebody's Home due in this many seconds, if they ever opened it."""
        await home_changed(self._session, person_id, due_in=due_in)

    async def claim(self, owner: str, *, lease: float, limit: int) -> Sequence[ClaimedHome]:
        """Claims Homes that are due and unclaimed."""
        session = self._session
        found = await session.rows(_DUE_HOMES, now=session.now, limit=limit)
        if found:
            ids = [row["person_id"] for row in found]
            await session.execute(_CLAIM_HOMES, {"ids": ids, **claim_of(session, owner, lease)})
        return [ClaimedHome(row["person_id"], row["page"]) for row in found]

    async def published(self, person_id: str, owner: str, *, again_in: float | None = None) -> None:
        """Frees a Home that `owner` holds; it is due again in this many seconds (None: when something changes). If
        others may have claimed it by now, it is due at once: what was published late may have replaced something newer.
        """
        next_at = None if again_in is None else self._session.now + again_in
        held = await self._session.execute(_PUBLISHED, {"person": person_id, "owner": owner, "next_at": next_at})
        if not held.rowcount:  # another process may have shown something newer before
            await self.changed(person_id, due_in=0.0)


_LIMITS = 7_401
"""The first key of PostgreSQL's advisory locks for checking a person's limit; the second is the person."""
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
_COUNT = adding(counted_requests)


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
        if await session.rows(_COUNTED, request=request_id):
            return None
        rows = await session.rows(_NTH_NEWEST, person=person_id, since=session.now - within, newer=limit - 1)
        return float(rows[0][counted_requests.c.at]) + within if rows else None

    async def count(self, person_id: str, request_id: str) -> bool:
        """Counts an allowed request. False if it was counted before, because it is being prepared again."""
        values = {"request_id": request_id, "person_id": person_id, "at": self._session.now}
        counted = await self._session.execute(_COUNT, values)
        return counted.rowcount == 1
