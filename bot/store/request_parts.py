"""The context of requests: fetched parts, and files to upload."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Update, bindparam, delete, exists, func, insert, select, update

from bot.domain.context import FetchedParts, FileOutcome, SettledFile
from bot.domain.messages import FileProblem, SlackFile
from bot.domain.requests.request import RejectionReason, RequestContext, RequestState
from bot.domain.threads.thread import Thread
from bot.errors import UnreadableRow
from bot.queue.claims import FREE, first_due
from bot.store.schema.rows import json_of, read_or, thread_from
from bot.store.schema.tables import request_files, requests, threads
from bot.store.session import Part, Session


@dataclass(frozen=True)
class ClaimedFile:
    """A file to upload for a request, with the thread as it was when claimed. `attempts` includes this try;
    `failing_since` is since when (on the store's clock) patience with Slack counts; None: it has not failed.
    """

    request_id: str
    position: int
    file: SlackFile
    thread: Thread
    attempts: int
    failing_since: float | None


_CANDIDATES = first_due(select(request_files), request_files)


def files_are_settled(row: FromClause) -> ColumnElement[bool]:
    """Returns the condition that a request waits for no file."""
    waits = exists().where(request_files.c.request_id == row.c.id)
    return ~waits.correlate_except(request_files)


FILES_ARE_SETTLED = files_are_settled(requests)
_FETCHED = select(requests.c.fetched).where(requests.c.id == bindparam("request"))
_CLEAR = delete(request_files).where(request_files.c.request_id == bindparam("request"))


class RequestParts(Part):
    """The context of requests: fetched parts, and files to upload."""

    async def fetched(self, request_id: str) -> FetchedParts:
        """Returns the parts stored for a request that is being prepared."""
        rows = await self._session.rows(_FETCHED, request=request_id)
        # Unreadable parts are fetched again.
        return read_or(FetchedParts(), FetchedParts, rows[0]["fetched"] if rows else None)

    async def keep_fetched(self, request_id: str, parts: FetchedParts) -> None:
        """Stores fetched parts until the request changes its state."""
        await self._update_request(request_id, fetched=json_of(parts))

    async def to_upload(self, request_id: str, files: Sequence[SlackFile]) -> None:
        """Makes a waiting request, which is held, wait for the upload of exactly these files."""
        now = self._session.now
        await self._clear(request_id)
        rows = [
            {"request_id": request_id, "position": position, "file": json_of(file), "due_at": now}
            for position, file in enumerate(files)
        ]
        if rows:
            await self._session.execute(insert(request_files), rows)

    async def claim(self, owner: str, *, lease: float, limit: int) -> Sequence[ClaimedFile]:
        """Claims due files of waiting requests, and counts the attempt. Files of requests that no longer wait are
        dropped; those of a request that was returned are due again with it.
        """
        session, claimed = self._session, []
        for row in await session.rows(_CANDIDATES, now=session.now, limit=limit):
            request_id, position, attempts = row["request_id"], row["position"], row["attempts"] + 1
            of_request = select(requests.c.state, requests.c.problem, threads).where(requests.c.id == request_id)
            (of,) = await session.rows(of_request.join(threads, threads.c.id == requests.c.thread_id))
            if of[requests.c.state] == RequestState.WAITING:
                try:
                    thread = thread_from(of)
                except UnreadableRow:
                    await self._clear(request_id)  # the request ends when its turn comes
                    continue
                of_row = _file_from(row["file"]), thread, attempts, row["failing_since"]
                file = ClaimedFile(request_id, position, *of_row)
                claim = {"claimed_by": owner, "claimed_until": session.now + lease, "attempts": attempts}
                await session.execute(_update(file).values(claim))
                claimed.append(file)
            elif of[requests.c.problem] == RejectionReason.HANDED_BACK:
                # If the request is sent again later, so is its file.
                parked = update(request_files).where(*_is(request_id, position))
                await session.execute(parked.values(due_at=None, **FREE))
            else:
                await self._clear(request_id)
        return claimed

    async def is_claimed_by(self, claimed: ClaimedFile, owner: str) -> bool:
        """Returns whether `owner` still has the claim. Locks the file."""
        mine = (*_is(claimed.request_id, claimed.position), request_files.c.claimed_by == owner)
        rows = await self._session.rows(select(request_files.c.file).where(*mine).with_for_update())
        return bool(rows) and _file_from(rows[0]["file"]) == claimed.file

    async def postpone(self, claimed: ClaimedFile, *, due_in: float) -> None:
        """Makes a claimed file due again in this many seconds, with its attempts and failures so far."""
        so_far = {"attempts": claimed.attempts, "failing_since": claimed.failing_since}
        await self._session.execute(_update(claimed).values(due_at=self._session.now + due_in, **so_far, **FREE))

    async def settle(self, claimed: ClaimedFile, outcome: FileOutcome) -> None:
        """Records the outcome of a claimed file."""
        await self._session.execute(_update(claimed).values(outcome=json_of(outcome), due_at=None, **FREE))

    async def settled(self, request_id: str) -> Sequence[SettledFile] | None:
        """Returns all files of a request in order; None until all are uploaded or given up."""
        of_request = select(request_files).where(request_files.c.request_id == request_id)
        rows = await self._session.rows(of_request.order_by(request_files.c.position))
        if any(row["outcome"] is None for row in rows):
            return None
        refused = FileOutcome(problem=FileProblem.REFUSED)
        return [SettledFile(_file_from(row["file"]), read_or(refused, FileOutcome, row["outcome"])) for row in rows]

    async def tried(self, request_id: str) -> None:
        """Records that sending a request began (with its first file), unless that was recorded before."""
        first = func.coalesce(requests.c.first_tried_at, self._session.now)
        await self._update_request(request_id, first_tried_at=first)

    async def complete(self, request_id: str, context: RequestContext) -> None:
        """Releases a request whose files are settled, with this context."""
        await self._update_request(request_id, context=json_of(context))
        await self._clear(request_id)

    async def _update_request(self, request_id: str, **values: Any) -> None:
        await self._session.execute(update(requests).where(requests.c.id == request_id).values(values))

    async def _clear(self, request_id: str) -> None:
        await self._session.execute(_CLEAR, {"request": request_id})


async def due_again(session: Session, request_id: str) -> None:
    """Makes the files of a request due again if it was returned and is sent again."""
    unsettled = (request_files.c.due_at.is_(None), request_files.c.outcome.is_(None))
    of_request = update(request_files).where(request_files.c.request_id == request_id, *unsettled)
    await session.execute(of_request.values(due_at=session.now))


def _is(request_id: str, position: int) -> tuple[ColumnElement[bool], ...]:
    return request_files.c.request_id == request_id, request_files.c.position == position


def _update(file: ClaimedFile) -> Update:
    return update(request_files).where(*_is(file.request_id, file.position))


def _file_from(text: str) -> SlackFile:
    """An unreadable file is treated as one that Slack does not have."""
    return read_or(SlackFile("", ""), SlackFile, text)
