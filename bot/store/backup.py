"""Backups: copying a running SQLite database, and marking what was open in a backup as uncertain, because it may
have been sent since.
"""

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import and_, false, func, or_, select, true, update

from bot.domain.pull_requests import FollowedPullRequest
from bot.domain.requests.request import RequestKind, RequestState
from bot.errors import ConfigError, StoreUnavailable
from bot.notices.notice import Delivery
from bot.queue.claims import FREE
from bot.queue.engine import existing_file
from bot.runtime.private_files import owner_only
from bot.store.schema.migration import schema_state
from bot.store.schema.rows import json_of
from bot.store.schema.tables import notices, polls, pull_requests, requests, to_be_prepared
from bot.store.session import Part

_OLDER_IN_DOUBT = (
    "UPDATE notices SET uncertain = 1 WHERE due_at IS NOT NULL",
    "UPDATE requests SET state = 'sending', claimed_by = 'backup', claimed_until = 0 WHERE state = 'waiting'",
    "UPDATE notices SET revision = revision + 2 WHERE key LIKE '%/mark'",
)
"""Open notices and requests in the copy may have been sent by the time it is restored, so they are marked in doubt. And
a reply may have any reaction by then. This is for backups made before a migration: no column here is missing in an
older schema.
"""


async def backup(url: str, target: Path, *, mark_in_doubt: Callable[[str], Awaitable[object]]) -> None:
    """Copies the SQLite database at `url` into a new file while it is in use. The file is complete as soon as it is
    there. `mark_in_doubt` gets the URL of a copy whose schema this program can work with. Raises ConfigError for any
    other database, StoreUnavailable if the file exists or the copy fails.
    """
    source = await asyncio.to_thread(existing_file, url)
    if source is None:
        raise ConfigError(["DATABASE_URL is not a SQLite database: for PostgreSQL, use pg_dump."])
    if await asyncio.to_thread(target.exists):
        raise StoreUnavailable(f"{target} is there already: name a new file.")
    try:
        with TemporaryDirectory(dir=target.parent, prefix=".pagehand-backup-") as directory:
            file = Path(directory) / "copy.sqlite3"
            await asyncio.to_thread(_copy, source, file)
            # Without this, a restored copy would send open notices and requests again.
            if (await schema_state(f"sqlite:///{file}")).usable:
                await mark_in_doubt(f"sqlite:///{file}")
            else:
                await asyncio.to_thread(_mark_older_in_doubt, file)
            await asyncio.to_thread(_put, file, target)
    except sqlite3.Error as error:
        raise StoreUnavailable(f"The copy failed: {error}.") from None


def _put(file: Path, target: Path) -> None:
    with file.open("rb") as written:
        os.fsync(written.fileno())
    file.rename(target)


def _copy(source: Path, target: Path) -> None:
    owner_only(target)
    with closing(sqlite3.connect(source, timeout=30.0)) as database:
        database.execute("VACUUM INTO ?", (str(target),))


def _mark_older_in_doubt(target: Path) -> None:
    with closing(sqlite3.connect(target)) as copy, copy:
        for statement in _OLDER_IN_DOUBT:
            copy.execute(statement)


_TO_THE_AGENT = (requests.c.due_at.is_not(None), requests.c.kind.in_((RequestKind.START, RequestKind.FOLLOW_UP)))
_WAITS = requests.c.state == RequestState.WAITING


class Restoration(Part):
    """Marks as uncertain, in a database restored from a backup, what may have been sent since the backup."""

    async def mark_requests_in_doubt(self) -> int:
        """Marks requests that were on their way to the agent as possibly arrived; returns how many. Those not sent yet
        count as never tried (`Request.restored`).
        """
        session, on_their_way = self._session, update(requests).where(*_TO_THE_AGENT)
        # One that is uncertain already stays so, as if the process that sent it again had ended: nobody holds it.
        tried = on_their_way.where(_WAITS, requests.c.uncertain == true(), requests.c.attempts > 0)
        await session.execute(tried.values(state=RequestState.SENDING, claimed_by="backup", claimed_until=0.0))
        # Others may have been edited and merged before they were sent, so the request sender handles each separately.
        untried = on_their_way.where(or_(to_be_prepared(requests), and_(_WAITS, requests.c.uncertain == false())))
        await session.execute(untried.values(uncertain=True, attempts=0, first_tried_at=None))
        in_doubt = or_(requests.c.uncertain == true(), requests.c.state == RequestState.SENDING)
        found = await session.execute(select(func.count()).select_from(requests).where(*_TO_THE_AGENT, in_doubt))
        return int(found.scalar_one())

    async def open_of_kinds(self, kinds: Collection[RequestKind]) -> Sequence[str]:
        """Returns the ids of all open requests of these kinds, oldest first."""
        of_kinds = (requests.c.due_at.is_not(None), requests.c.kind.in_(kinds))
        oldest_first = select(requests.c.id).where(*of_kinds).order_by(requests.c.recorded_at, requests.c.id)
        rows = await self._session.rows(oldest_first)
        return [str(row[requests.c.id]) for row in rows]

    async def open_threads(self) -> Sequence[str]:
        """Returns the ids of all threads with a poll, an open request or an open notice."""
        found: dict[str, None] = {}
        for table in (polls, requests, notices):
            is_open = select(table.c.thread_id).where(table.c.due_at >= 0.0).order_by(table.c.due_at)
            found |= dict.fromkeys((await self._session.execute(is_open)).scalars())
        return tuple(found)

    async def mark_notices_in_doubt(self) -> int:
        """Marks open notices to be looked for in Slack before they are posted; returns how many."""
        is_open = update(notices).where(notices.c.due_at.is_not(None))
        return (await self._session.execute(is_open.values(uncertain=True))).rowcount

    async def mark_pull_requests_in_doubt(self) -> None:
        """Marks the news of pull requests as possibly told: the next reading of each announces nothing."""
        unread = update(pull_requests).where(pull_requests.c.due_at.is_not(None))
        values = {"followed": json_of(FollowedPullRequest(adopted=True)), "due_at": self._session.now, **FREE}
        await self._session.execute(unread.values(values))

    async def mark_reactions_in_doubt(self, *, after: int, limit: int) -> int | None:
        """Marks the replies of the next `limit` notices after an id as possibly carrying any reaction; returns the last
        of these ids, None if there are no more.
        """
        some = select(notices.c.id).where(notices.c.id > after).order_by(notices.c.id).limit(limit)
        ids = (await self._session.execute(some)).scalars().all()
        if not ids:
            return None
        reactions = (notices.c.id > after, notices.c.id <= ids[-1], notices.c.delivery == Delivery.REACTION)
        anything = {"revision": notices.c.revision + 1, "reactions_shown": None, "reaction_added": False}
        await self._session.execute(update(notices).where(*reactions).values(anything))
        return int(ids[-1])
