"""A SQLite database: durable, one transaction at a time; and the schema of the jobs database."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import aiosqlite

from bot.jobserver.errors import JobServerError
from bot.runtime.private_files import owner_only

_FIRST_TABLES = """
CREATE TABLE jobs (
    id TEXT PRIMARY KEY, project_id TEXT NOT NULL, status TEXT NOT NULL, repository TEXT NOT NULL, ref TEXT NOT NULL,
    model TEXT NOT NULL, branch TEXT NOT NULL, pr_link TEXT, failure TEXT,
    created_at TEXT NOT NULL, finished_at TEXT, archived_at TEXT
) STRICT;
CREATE TABLE instructions (
    number INTEGER PRIMARY KEY AUTOINCREMENT, job_id TEXT NOT NULL REFERENCES jobs (id), project_id TEXT NOT NULL,
    prompt TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed')),
    created_at TEXT NOT NULL
) STRICT;
CREATE INDEX instructions_of_job ON instructions (job_id, number);
CREATE INDEX instructions_of_project ON instructions (project_id, created_at);
CREATE INDEX instructions_waiting ON instructions (state) WHERE state IN ('queued', 'running');
CREATE INDEX jobs_to_archive ON jobs (finished_at) WHERE archived_at IS NULL;
CREATE TABLE answers (
    key TEXT NOT NULL, project_id TEXT NOT NULL, fingerprint TEXT NOT NULL, answer TEXT NOT NULL,
    created_at TEXT NOT NULL, PRIMARY KEY (project_id, key)
) STRICT;
"""

# `pr_branch`: the branch that `pr_link` is for. `details`: models.JobDetails as JSON. `commit_id`: what was pushed.
# SQLite cannot change a CHECK: the table of instructions is created again, and its numbering continues.
_DETAILS_AND_STOPS = """
ALTER TABLE jobs ADD COLUMN branch_number INTEGER NOT NULL DEFAULT 1;
ALTER TABLE jobs ADD COLUMN pr_branch TEXT;
ALTER TABLE jobs ADD COLUMN session TEXT;
ALTER TABLE jobs ADD COLUMN details TEXT NOT NULL DEFAULT '{}';
UPDATE jobs SET pr_branch = branch WHERE pr_link IS NOT NULL;
CREATE INDEX jobs_to_delete ON jobs (archived_at) WHERE archived_at IS NOT NULL;
CREATE TABLE new_instructions (
    number INTEGER PRIMARY KEY AUTOINCREMENT, job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    project_id TEXT NOT NULL, prompt TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'stopped')),
    created_at TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, commit_id TEXT, stop_reason TEXT,
    answer TEXT NOT NULL DEFAULT '', requester_name TEXT, requester_id TEXT, requester_url TEXT
) STRICT;
INSERT INTO new_instructions (number, job_id, project_id, prompt, state, created_at)
    SELECT number, job_id, project_id, prompt, state, created_at FROM instructions ORDER BY number;
DROP TABLE instructions;
ALTER TABLE new_instructions RENAME TO instructions;
CREATE INDEX instructions_of_job ON instructions (job_id, number);
CREATE INDEX instructions_of_project ON instructions (project_id, created_at);
CREATE INDEX instructions_waiting ON instructions (state) WHERE state IN ('queued', 'running');
ALTER TABLE answers ADD COLUMN job_id TEXT;
UPDATE answers SET job_id = json_extract(answer, '$.id');
CREATE INDEX answers_of_job ON answers (job_id);
CREATE INDEX answers_by_age ON answers (created_at);
CREATE TABLE old_branches (
    name TEXT PRIMARY KEY, left_at TEXT NOT NULL
) STRICT;
"""

# `used_at`: the time of the last upload. A file is kept as long as an instruction names it.
_ATTACHMENTS = """
CREATE TABLE uploads (
    id TEXT PRIMARY KEY, size INTEGER NOT NULL, mimetype TEXT NOT NULL, used_at TEXT NOT NULL
) STRICT;
CREATE INDEX uploads_by_age ON uploads (used_at);
CREATE TABLE attachments (
    instruction INTEGER NOT NULL REFERENCES instructions (number) ON DELETE CASCADE, position INTEGER NOT NULL,
    upload_id TEXT NOT NULL REFERENCES uploads (id), name TEXT NOT NULL, mimetype TEXT,
    PRIMARY KEY (instruction, position)
) STRICT;
CREATE INDEX attachments_of_upload ON attachments (upload_id);
"""

# Changes that are pushed but not yet proposed, one row per job. `checks`: of the newest change, as JSON. `extras`:
# comma-separated names of models.Extra. `version` grows with each addition, so that settling an older version does
# not settle a newer one.
_PROPOSALS = """
CREATE TABLE proposals (
    job_id TEXT PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE, branch TEXT NOT NULL, title TEXT NOT NULL,
    description TEXT NOT NULL, checks TEXT NOT NULL, extras TEXT NOT NULL,
    requester_name TEXT, requester_id TEXT, requester_url TEXT,
    version INTEGER NOT NULL DEFAULT 1, failures INTEGER NOT NULL DEFAULT 0, due_at TEXT NOT NULL
) STRICT;
CREATE INDEX proposals_due ON proposals (due_at);
"""

# The work of a failed instruction: a commit that is not pushed anywhere, and the number of files it changes.
_PARTIAL_WORK = """
ALTER TABLE jobs ADD COLUMN partial_commit TEXT;
ALTER TABLE jobs ADD COLUMN partial_files INTEGER NOT NULL DEFAULT 0;
CREATE INDEX jobs_with_partial_work ON jobs (id) WHERE partial_commit IS NOT NULL;
"""

# A job's use of its model: tokens, and money if it was reported. `spending` has the tokens of all jobs by day.
# `asked_at`: when the budget was used up and a person was asked whether the job may continue; `tokens_agreed`: its
# usage when somebody last let it continue.
_USAGE = """
ALTER TABLE jobs ADD COLUMN tokens_sent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN tokens_answered INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN money REAL NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN currency TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN tokens_agreed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN asked_at TEXT;
CREATE TABLE spending (
    day TEXT PRIMARY KEY, tokens INTEGER NOT NULL
) STRICT
"""

# An agent's open question, as JSON; `answers`: the running instruction whose question a message answers.
_QUESTIONS = """
ALTER TABLE jobs ADD COLUMN open_question TEXT;
ALTER TABLE instructions ADD COLUMN answers INTEGER;
CREATE INDEX instructions_that_answer ON instructions (answers) WHERE answers IS NOT NULL;
"""

# By which an instruction's lines are found in the log; a client may have chosen it.
_REQUEST_IDS = """
ALTER TABLE instructions ADD COLUMN request_id TEXT NOT NULL DEFAULT '';
"""

# The part of the prompt that is the person's own words; NULL if all of it is.
_WORDS = """
ALTER TABLE instructions ADD COLUMN words TEXT;
"""

STEPS = (
    _FIRST_TABLES,
    _DETAILS_AND_STOPS,
    _ATTACHMENTS,
    _PROPOSALS,
    _PARTIAL_WORK,
    _USAGE,
    _QUESTIONS,
    _REQUEST_IDS,
    _WORDS,
)


class Database:
    """A connection with WAL and full synchronization.

    `steps` create and upgrade the tables: each consists of statements that end with a semicolon (which occurs nowhere
    else) and takes a file from one version to the next, the first one from an empty file. The file's `user_version`
    counts the steps applied. Never change a released step: add another one.
    """

    def __init__(self, path: Path, steps: Sequence[str]) -> None:
        self._path = path
        self._steps = tuple(steps)
        self._lock = asyncio.Lock()
        self._connection: aiosqlite.Connection | None = None

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(owner_only, self._path)
        connection = await aiosqlite.connect(self._path, isolation_level=None)
        self._connection = connection
        connection.row_factory = aiosqlite.Row
        await connection.execute("PRAGMA busy_timeout = 10000")
        await connection.execute("PRAGMA journal_mode = WAL")
        await connection.execute("PRAGMA synchronous = FULL")
        await connection.execute("PRAGMA foreign_keys = ON")
        try:
            await self._prepare()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _prepare(self) -> None:
        """Applies all missing steps, or none of them."""
        async with self.transaction() as connection:
            row = await fetch_row(connection, "PRAGMA user_version")
            version = row[0] if row else 0
            if version > len(self._steps):
                raise JobServerError(f"{self._path.name} was written by a newer version: update Pagehand")
            for step in self._steps[version:]:
                for statement in step.split(";"):
                    await connection.execute(statement)
            await connection.execute(f"PRAGMA user_version = {len(self._steps)}")

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[aiosqlite.Connection]:
        """Runs a transaction, which is committed as a whole or rolled back; the next one waits until it ends."""
        if self._connection is None:
            raise JobServerError("the job server's database is closed")
        async with self._lock:
            connection = self._connection
            try:
                await connection.execute("BEGIN IMMEDIATE")
                yield connection
            except BaseException:
                with contextlib.suppress(sqlite3.OperationalError):  # it had not begun
                    await asyncio.shield(connection.execute("ROLLBACK"))
                raise
            await asyncio.shield(connection.execute("COMMIT"))

    async def execute(self, statement: str, parameters: Iterable[object] = ()) -> int:
        """Runs one statement as a transaction; returns how many rows it changed."""
        async with self.transaction() as connection:
            return (await connection.execute(statement, parameters)).rowcount

    async def rows(self, statement: str, parameters: Iterable[object] = ()) -> list[sqlite3.Row]:
        """Returns the rows that one statement yields, which is a transaction of its own."""
        async with self.transaction() as connection:
            return list(await connection.execute_fetchall(statement, parameters))


async def fetch_row(
    connection: aiosqlite.Connection, statement: str, parameters: Iterable[object] = ()
) -> sqlite3.Row | None:
    """Returns the first row that a statement yields, or None."""
    cursor = await connection.execute(statement, tuple(parameters))
    return await cursor.fetchone()
