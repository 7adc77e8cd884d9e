"""The context of requests: fetched parts, and files to upload."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import (
    ColumnElement,
    Double,
    FromClause,
    RowMapping,
    and_,
    bindparam,
    delete,
    exists,
    func,
    select,
    update,
)

from bot.domain.context.fetched_parts import FetchedParts, FileOutcome, SettledFile
from bot.domain.context.slack_files import FileProblem, SlackFile
from bot.domain.requests.request import RejectionReason, RequestContext, RequestState
from bot.domain.threads.thread import Thread
from bot.errors import UnreadableRow
from bot.store.claims import CLAIM, FREE, LIMIT, claim_of, due
from bot.store.schema.rows import context_json, json_text, thread_from
from bot.store.schema.tables import request_files, requests, threads
from bot.store.session import Part, Session, for_each_dialect


@dataclass(frozen=True)
class ClaimedFile:
    """A file to upload for a request, with the thread as it was when claimed. `attempts` includes this try."""

    request_id: str
    position: int
    file: SlackFile
    thread: Thread
    attempts: int


_PARTS = TypeAdapter(FetchedParts)
_FILE = TypeAdapter(SlackFile)
_OUTCOME = TypeAdapter(FileOutcome)
_REQUEST: Any = bindparam("request")
_FETCHED = select(requests.c.fetched).where(requests.c.id == _REQUEST)
_ROW = and_(request_files.c.request_id == _REQUEST, request_files.c.position == bindparam("at"))
_OF_REQUEST = request_files.c.request_id == _REQUEST
_ADD = for_each_dialect(lambda into: into(request_files))
_CANDIDATES = (
    select(request_files)
    .where(due(request_files))
    .order_by(request_files.c.due_at)
    .limit(LIMIT)
    .with_for_update(skip_locked=True)
)
_REQUEST_OF = (
    select(requests.c.state, requests.c.problem, threads)
    .join(threads, threads.c.id == requests.c.thread_id)
    .where(requests.c.id == _REQUEST)
)
_NEXT = bindparam("next_at", type_=Double)
_CLAIM = update(request_files).where(_ROW).values(**CLAIM, attempts=request_files.c.attempts + 1)
_PARK = update(request_files).where(_ROW).values(due_at=None, **FREE)
_POSTPONE = update(request_files).where(_ROW).values(due_at=_NEXT, **FREE)
_FAILS = (
    update(request_files)
    .where(_ROW)
    .values(failing_since=func.coalesce(request_files.c.failing_since, bindparam("now", type_=Double)))
    .returning(request_files.c.failing_since)
)
_SETTLE = update(request_files).where(_ROW).values(outcome=bindparam("became"), due_at=None, **FREE)
_CLAIMED_BY = (
    select(request_files.c.file).where(_ROW, request_files.c.claimed_by == bindparam("owner")).with_for_update()
)
_ALL = select(request_files).where(_OF_REQUEST).order_by(request_files.c.position)
_CLEAR = delete(request_files).where(_OF_REQUEST)
_DUE_AGAIN = (
    update(request_files)
    .where(_OF_REQUEST, request_files.c.due_at.is_(None), request_files.c.outcome.is_(None))
    .values(due_at=_NEXT)
)


def files_are_settled(row: FromClause) -> ColumnElement[bool]:
    """Returns the condition that a request waits for no file."""
    waits = exists().where(request_files.c.request_id == row.c.id)
    return ~waits.correlate_except(request_files)


FILES_ARE_SETTLED = files_are_settled(requests)


class RequestParts(Part):
    """The context of requests: fetched parts, and files to upload."""

    async def fetched(self, request_id: str) -> FetchedParts:
        """Returns the parts stored for a request that is being prepared."""
        rows = await self._session.rows(_FETCHED, request=request_id)
        text = rows[0]["fetched"] if rows else None
        try:
            return FetchedParts() if text is None else _PARTS.validate_json(text)
        except ValueError:
            return FetchedParts()  # the parts are fetched again

    async def keep_fetched(self, request_id: str, parts: FetchedParts) -> None:
        """Stores fetched parts until the request changes its state."""
        kept = json_text(_PARTS.dump_python(parts, mode="json"))
        await self._session.execute(update(requests).where(requests.c.id == request_id).values(fetched=kept))

    async def to_upload(self, request_id: str, files: Sequence[SlackFile]) -> None:
        """Makes a waiting request, which is held, wait for the upload of exactly these files."""
        session = self._session
        await session.execute(_CLEAR, {"request": request_id})
        rows = [
            {
                "request_id": request_id,
                "position": position,
                "file": json_text(_FILE.dump_python(file, mode="json")),
                "attempts": 0,
                "due_at": session.now,
            }
            for position, file in enumerate(files)
        ]
        if rows:
            await session.execute(_ADD, rows)

    async def claim(self, owner: str, *, lease: float, limit: int) -> Sequence[ClaimedFile]:
        """Claims due files of waiting requests, and counts the attempt. Files of requests that no longer wait are
        dropped; those of a request that was returned are due again with it.
        """
        session, claimed = self._session, []
        for row in await session.rows(_CANDIDATES, now=session.now, limit=limit):
            (of,) = await session.rows(_REQUEST_OF, request=row[request_files.c.request_id])
            if of[requests.c.state] != RequestState.WAITING:
                await self._drop(row, of)
            elif (file := await self._read(row, of)) is not None:
                await session.execute(_CLAIM, {**_key(file), **claim_of(session, owner, lease)})
                claimed.append(file)
        return claimed

    async def is_claimed_by(self, claimed: ClaimedFile, owner: str) -> bool:
        """Returns whether `owner` still has the claim. Locks the file."""
        rows = await self._session.rows(_CLAIMED_BY, **_key(claimed), owner=owner)
        return bool(rows) and _file_from(rows[0]["file"]) == claimed.file

    async def postpone(self, claimed: ClaimedFile, *, due_in: float) -> None:
        """Makes a claimed file due again in this many seconds."""
        await self._session.execute(_POSTPONE, {**_key(claimed), "next_at": self._session.now + due_in})

    async def fails(self, claimed: ClaimedFile) -> float:
        """Records that Slack does not return a claimed file; returns since when (on the store's clock)."""
        result = await self._session.execute(_FAILS, {**_key(claimed), "now": self._session.now})
        return float(result.scalar_one())

    async def settle(self, claimed: ClaimedFile, outcome: FileOutcome) -> None:
        """Records the outcome of a claimed file."""
        became = json_text(_OUTCOME.dump_python(outcome, mode="json"))
        await self._session.execute(_SETTLE, {**_key(claimed), "became": became})

    async def settled(self, request_id: str) -> Sequence[SettledFile] | None:
        """Returns all files of a request in order; None until all are uploaded or given up."""
        rows = await self._session.rows(_ALL, request=request_id)
        if any(row["outcome"] is None for row in rows):
            return None
        return [SettledFile(_file_from(row["file"]), _outcome_from(row["outcome"])) for row in rows]

    async def tried(self, request_id: str) -> None:
        """Records that sending a request began (with its first file), unless that was recorded before."""
        first = func.coalesce(requests.c.first_tried_at, self._session.now)
        await self._session.execute(update(requests).where(requests.c.id == request_id).values(first_tried_at=first))

    async def complete(self, request_id: str, context: RequestContext) -> None:
        """Releases a request whose files are settled, with this context."""
        values = {"context": context_json(context)}
        await self._session.execute(update(requests).where(requests.c.id == request_id).values(values))
        await self._session.execute(_CLEAR, {"request": request_id})

    async def _drop(self, row: RowMapping, of: RowMapping) -> None:
        """Handles a file whose request is not waiting for it. If the request is sent again later, so is its file."""
        if of[requests.c.problem] == RejectionReason.HANDED_BACK:
            key = {"request": row[request_files.c.request_id], "at": row[request_files.c.position]}
            await self._session.execute(_PARK, key)
        else:
            await self._session.execute(_CLEAR, {"request": row[request_files.c.request_id]})

    async def _read(self, row: RowMapping, of: RowMapping) -> ClaimedFile | None:
        request_id, position = row[request_files.c.request_id], row[request_files.c.position]
        try:
            thread = thread_from(of)
        except UnreadableRow:
            await self._session.execute(_CLEAR, {"request": request_id})  # the request ends when its turn comes
            return None
        file = _file_from(row[request_files.c.file])
        return ClaimedFile(request_id, position, file, thread, row[request_files.c.attempts] + 1)


async def due_again(session: Session, request_id: str) -> None:
    """Makes the files of a request due again if it was returned and is sent again."""
    await session.execute(_DUE_AGAIN, {"request": request_id, "next_at": session.now})


def _key(claimed: ClaimedFile) -> dict[str, Any]:
    return {"request": claimed.request_id, "at": claimed.position}


def _file_from(text: str) -> SlackFile:
    """An unreadable file must not lose the request: it is treated as one that Slack does not have."""
    try:
        return _FILE.validate_json(text)
    except ValueError:
        return SlackFile("", "")


def _outcome_from(text: str) -> FileOutcome:
    try:
        return _OUTCOME.validate_json(text)
    except ValueError:
        return FileOutcome(problem=FileProblem.REFUSED)
