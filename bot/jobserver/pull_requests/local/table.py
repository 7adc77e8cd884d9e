"""The table of local pull requests."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import aiosqlite

from bot.jobapi.models import PullRequestState
from bot.jobserver.errors import PullRequestNotFoundError
from bot.jobserver.pull_requests.interface import NewPullRequest
from bot.jobserver.store.database import Database

STEPS = (
    """
CREATE TABLE pull_requests (
    number INTEGER PRIMARY KEY AUTOINCREMENT, branch TEXT NOT NULL, base TEXT NOT NULL, title TEXT NOT NULL,
    description TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('open', 'merged', 'closed')),
    base_commit TEXT NOT NULL, head_commit TEXT NOT NULL, created_at TEXT NOT NULL, ended_at TEXT
) STRICT;
CREATE UNIQUE INDEX one_open_a_branch ON pull_requests (branch) WHERE state = 'open';
""",
    """
ALTER TABLE pull_requests ADD COLUMN ended_by TEXT;
ALTER TABLE pull_requests ADD COLUMN requested_by TEXT;
ALTER TABLE pull_requests ADD COLUMN request_url TEXT;
CREATE INDEX pull_requests_of_state ON pull_requests (state, number);
""",
)
"""How the database came to be; see `store.database.Database`."""
_DESCRIPTION_LIMIT = 200_000


@dataclass(frozen=True)
class PullRequestRow:
    """A stored pull request; the two commits are the ends of its diff.

    `ended_by` is who merged or closed it on its page; None where that is not known, as for a merge by hand.
    """

    number: int
    branch: str
    base: str
    title: str
    description: str
    state: PullRequestState
    base_commit: str
    head_commit: str
    created_at: datetime
    ended_at: datetime | None
    ended_by: str | None = None
    requested_by: str | None = None
    request_url: str | None = None


@dataclass(frozen=True)
class StateCounts:
    """How many pull requests there are of each state."""

    open: int = 0
    merged: int = 0
    closed: int = 0

    def of(self, state: PullRequestState | None) -> int:
        """Returns the number in one state, or in all."""
        return self.open + self.merged + self.closed if state is None else int(getattr(self, state.value))


class PullRequestTable:
    """Every method is one transaction."""

    def __init__(self, database: Database, *, now: Callable[[], datetime]) -> None:
        self._database = database
        self._now = now

    async def insert(self, new: NewPullRequest, *, base: str, base_commit: str, head_commit: str) -> PullRequestRow:
        requester = (new.requester.name, new.requester.url) if new.requester else (None, None)
        async with self._database.transaction() as connection:
            cursor = await connection.execute(
                "INSERT INTO pull_requests (branch, base, title, description, state, base_commit, head_commit, "
                "created_at, requested_by, request_url) VALUES (?, ?, ?, ?, 'open', ?, ?, ?, ?, ?) RETURNING *",
                (new.branch, base, new.title, new.description, base_commit, head_commit, self._iso_now(), *requester),
            )
            rows = list(await cursor.fetchall())
        return _from_row(rows[0])

    async def get(self, number: int) -> PullRequestRow:
        """Returns a pull request.

        Raises:
            PullRequestNotFoundError: there is none of this number.
        """
        rows = await self._database.rows("SELECT * FROM pull_requests WHERE number = ?", (number,))
        for row in rows:
            return _from_row(row)
        raise PullRequestNotFoundError("there is no pull request of this number")

    async def find(self, branch: str) -> PullRequestRow | None:
        rows = await self._database.rows(
            "SELECT * FROM pull_requests WHERE branch = ? ORDER BY number DESC LIMIT 1", (branch,)
        )
        return next((_from_row(row) for row in rows), None)

    async def newest(self, state: PullRequestState | None, *, offset: int, limit: int) -> list[PullRequestRow]:
        """Returns those in one state, or in any, the newest first."""
        rows = await self._database.rows(
            "SELECT * FROM pull_requests WHERE ?1 IS NULL OR state = ?1 ORDER BY number DESC LIMIT ?2 OFFSET ?3",
            (state and state.value, limit, offset),
        )
        return [_from_row(row) for row in rows]

    async def counts(self) -> StateCounts:
        rows = await self._database.rows("SELECT state, count(*) FROM pull_requests GROUP BY state")
        return StateCounts(**{row[0]: row[1] for row in rows})

    async def add_to_description(self, number: int, addition: str) -> None:
        """Adds a paragraph, unless it is there already, or the description is 200,000 characters long."""
        await self._database.execute(
            "UPDATE pull_requests SET description = description || char(10, 10) || :addition "
            "WHERE number = :number AND instr(description, :addition) = 0 AND length(description) < :limit",
            {"number": number, "addition": addition, "limit": _DESCRIPTION_LIMIT},
        )

    async def set_commits(self, number: int, *, base_commit: str, head_commit: str) -> None:
        await self._database.execute(
            "UPDATE pull_requests SET base_commit = ?, head_commit = ? WHERE number = ?",
            (base_commit, head_commit, number),
        )

    async def end(self, number: int, state: PullRequestState, *, by: str | None) -> None:
        """Records that it was merged or closed, when, and by whom."""
        await self._database.execute(
            "UPDATE pull_requests SET state = ?, ended_at = ?, ended_by = ? WHERE number = ?",
            (state.value, self._iso_now(), by, number),
        )

    async def ended(self, age: timedelta) -> list[int]:
        """Returns the numbers of up to 100 that were merged or closed at least this long ago."""
        rows = await self._database.rows(
            "SELECT number FROM pull_requests WHERE state != 'open' AND ended_at <= ? LIMIT 100",
            ((self._now() - age).astimezone(UTC).isoformat(),),
        )
        return [row["number"] for row in rows]

    async def delete(self, number: int) -> None:
        await self._database.execute("DELETE FROM pull_requests WHERE number = ?", (number,))

    def _iso_now(self) -> str:
        return self._now().astimezone(UTC).isoformat()


def _from_row(row: aiosqlite.Row) -> PullRequestRow:
    created_at, ended_at = (row[name] and datetime.fromisoformat(row[name]) for name in ("created_at", "ended_at"))
    state = PullRequestState(row["state"])
    return PullRequestRow(**{**dict(row), "created_at": created_at, "ended_at": ended_at, "state": state})
