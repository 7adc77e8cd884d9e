"""A database of the schema before, filled by SQL alone: the migration keeps every row, in the words of today."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from bot.store.database.engine import engine_for
from bot.store.schema.migration import _config, known_versions, migrate

Rows = Sequence[Mapping[str, Any]]

_DUE: dict[str, Any] = {"due_at": 5.0, "claimed_by": None, "claimed_until": None}
_CLAIMED: dict[str, Any] = {"due_at": 5.0, "claimed_by": "one", "claimed_until": 9.0}
_ENDED: dict[str, Any] = {"due_at": None, "claimed_by": None, "claimed_until": None}

THREADS: Rows = [
    {
        "id": name,
        "team_id": "T1",
        "channel_id": "C1",
        "ts": ts,
        "asker_id": "UANA",
        "prompt": "known, 'taken' and touched_at: words of watches",
        "project_id": "docs",
        "created_at": 1.0,
        "touched_at": 2.5,
        "job_id": job,
        "known": '{"round":1,"problem":null}',
        "revision": 4,
    }
    for name, ts, job in (("t1", "1.1", "job-1"), ("t2", None, None), ("t3", "1.3", None))
]
WATCHES: Rows = [{"thread_id": name} | claim for name, claim in (("t1", _CLAIMED), ("t2", _ENDED), ("t3", _DUE))]
REQUESTS: Rows = [
    {
        "id": f"r{number}",
        "thread_id": "t1",
        "kind": kind,
        "source_key": f"key/{number}",
        "person_id": "UANA",
        "text": "taken",
        "written_at": "" if kind == "start" else f"2.{number}",
        "recorded_at": 3.0,
        "state": state,
        "attempts": number,
        "first_tried_at": None if state == "waiting" else 4.0,
        "problem": "unsure",
        "edited_at": "2.9",
        "newest": newest,
        "uncertain": state == "unsure",
    }
    | claim
    for number, (kind, state, newest, claim) in enumerate(
        [
            ("start", "taken", None, _ENDED),
            ("follow_up", "waiting", "refused", _DUE),
            ("follow_up", "sending", "", _CLAIMED),
            ("follow_up", "refused", None, _ENDED),
            ("follow_up", "unsure", "newer", _ENDED),
            ("follow_up", "withdrawn", "", _ENDED),
        ]
    )
]
NOTICES: list[dict[str, Any]] = [
    {
        "id": 10 * number,
        "key": f"t1/{number}",
        "thread_id": "t1",
        "delivery": delivery,
        "message": '{"kind":"card_changed"}',
        "person_id": "UANA" if delivery == "ephemeral" else None,
        "created_at": 6.0,
        "state": state,
        "revision": number,
        "attempts": 1,
        "uncertain": uncertain,
        "without_blocks": uncertain,
        "posted_ts": "7.1" if state == "done" else None,
        "problem": "tell",
    }
    | claim
    for number, (delivery, state, uncertain, claim) in enumerate(
        [
            ("card", "done", False, _ENDED),
            ("post", "waiting", True, _DUE),
            ("reaction", "sending", False, _CLAIMED),
            ("ephemeral", "given_up", True, _ENDED),
        ]
    )
]
EARLY_REPLIES: Rows = [
    {
        "channel_id": "C1",
        "message_ts": "8.1",
        "thread_ts": "8.0",
        "person_id": "UBEN",
        "team_id": "T1",
        "text": "early",
        "extras": '{"files":["a.md"],"forwarded":false}',
        "edited_at": "",
        "withdrawn": False,
    }
]
_FILE: dict[str, Any] = {
    "request_id": "r1",
    "position": 0,
    "file": "{}",
    "outcome": None,
    "failing_since": None,
    "attempts": 0,
    "due_at": 5.0,
    "claimed_by": None,
    "claimed_until": None,
}
BEFORE: Mapping[str, Rows] = {
    "threads": THREADS,
    "watches": WATCHES,
    "requests": REQUESTS,
    "notices": NOTICES,
    "early_replies": EARLY_REPLIES,
}

RENAMED = {
    "project_id": "project",
    "asker_id": "requester_id",
    "touched_at": "updated_at",
    "known": "state",
    "newest": "latest_text",
    "extras": "attachments",
}
STATES = {"taken": "accepted", "refused": "rejected", "unsure": "uncertain"}

OPTIONS = '{"way_in":"command","quiet":false,"project_said":"","project_reason":"only_one"}'
ADDED: Mapping[str, dict[str, Any]] = {
    "threads": {"number": 0, "origin": "card", "options": OPTIONS, "root_ts": "", "follows": ""},
    "requests": {"team_id": "", "attachments": "", "context": None, "merged_into": "", "fetched": None},
    "notices": {"reactions_shown": None, "reaction_added": False, "only_progress": False},
    "early_replies": {
        "mentions_us": False,
        "word": "",
        "attachments": '{"files": [{"id": "", "name": "a.md"}], "forwarded": []}',
    },
}
"""What rows of that time have since."""


def today(table: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as it is to be after the migration."""
    new = {RENAMED.get(name, name): value for name, value in row.items()}
    if table == "requests":
        new |= {"state": STATES.get(new["state"], new["state"]), "requester": None}
        new["way_in"] = "command" if new["kind"] == "start" else "reply"
    return new | ADDED.get(table, {}) | ({"card_ts": row["ts"]} if table == "threads" else {})


@pytest.fixture
async def of_before(empty_database: str) -> Any:
    """A database of the schema before, with rows in every state."""
    engine = engine_for(empty_database)
    async with engine.begin() as connection:
        await connection.run_sync(_upgrade_to, "0004")
        for table, rows in BEFORE.items():
            await _insert(connection, table, rows)
        await connection.execute(text("DELETE FROM notices WHERE id = 30"))
        await _insert(connection, "notices", [NOTICES[3] | {"id": 29}])
    yield engine
    await engine.dispose()


async def test_every_row_is_kept_in_todays_words(of_before: AsyncEngine, empty_database: str) -> None:
    await migrate(empty_database)
    async with of_before.begin() as connection:
        for table, rows in BEFORE.items():
            after = [dict(row) for row in await _rows(connection, "polls" if table == "watches" else table)]
            expected = [today(table, row) for row in rows]
            if table == "notices":
                expected[3]["id"] = 29
            assert _sorted(after) == _sorted(expected)


async def test_what_is_left_behind_is_nothing(of_before: AsyncEngine, empty_database: str) -> None:
    await migrate(empty_database)
    async with of_before.begin() as connection:
        if connection.dialect.name == "sqlite":
            assert (await connection.execute(text("PRAGMA foreign_key_check"))).all() == []
            assert (await connection.execute(text("PRAGMA integrity_check"))).scalar_one() == "ok"
            left = await connection.execute(text("SELECT name FROM sqlite_master WHERE sql LIKE '%_before%'"))
        else:
            left = await connection.execute(text("SELECT relname FROM pg_class WHERE relname LIKE '%watches%'"))
        assert left.all() == []


async def test_what_belongs_to_a_thread_still_goes_with_it(of_before: AsyncEngine, empty_database: str) -> None:
    await migrate(empty_database)
    async with of_before.begin() as connection:
        await connection.execute(text("DELETE FROM threads WHERE id = 't1'"))
        assert [row["thread_id"] for row in await _rows(connection, "polls")] in (["t2", "t3"], ["t3", "t2"])
        assert await _rows(connection, "requests") == []
        assert await _rows(connection, "notices") == []


async def test_ids_of_notices_are_not_used_again(of_before: AsyncEngine, empty_database: str) -> None:
    if of_before.dialect.name == "postgresql":
        pytest.skip("its sequence is not touched, and was passed over by rows with ids of their own")
    await migrate(empty_database)
    async with of_before.begin() as connection:
        await _insert(connection, "notices", [{"key": "new"} | _without(today("notices", NOTICES[0]), "id", "key")])
        ids = await connection.execute(text("SELECT id FROM notices WHERE key = 'new'"))
        assert ids.scalar_one() == 31, "30 was deleted before"


async def test_files_stay_with_their_requests_when_these_are_made_anew(empty_database: str) -> None:
    """SQLite makes the whole table anew for one word more; what refers to it is not lost, and still goes with it."""
    engine = engine_for(empty_database)
    async with engine.begin() as connection:
        await connection.run_sync(_upgrade_to, "0004")
        await _insert(connection, "threads", THREADS)
        await _insert(connection, "requests", REQUESTS)
        await connection.run_sync(_upgrade_to, "0016")
        await _insert(connection, "request_files", [_FILE])
    await migrate(empty_database)
    async with engine.begin() as connection:
        assert [dict(row) for row in await _rows(connection, "request_files")] == [_FILE]
        assert len(await _rows(connection, "requests")) == len(REQUESTS)
        await connection.execute(text("UPDATE requests SET kind = 'discard' WHERE id = 'r3'"))
        await connection.execute(text("DELETE FROM requests WHERE id = 'r1'"))
        assert await _rows(connection, "request_files") == []
    await engine.dispose()


def _without(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def _upgrade_to(connection: Connection, version: str) -> None:
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, version)


async def _insert(connection: AsyncConnection, table: str, rows: Rows) -> None:
    names = list(rows[0])
    values = ", ".join(f":{name}" for name in names)
    statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values})"  # noqa: S608 - the test's own words
    await connection.execute(text(statement), [dict(row) for row in rows])


async def _rows(connection: AsyncConnection, table: str) -> Sequence[Any]:
    return (await connection.execute(text(f"SELECT * FROM {table}"))).mappings().all()  # noqa: S608 - the same


def _sorted(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """By id, or whatever else is first among their keys: no two are equal there."""
    return sorted((dict(row) for row in rows), key=lambda row: str(row.get("id", row.get("thread_id"))))


def test_the_versions_are_those_of_the_migrations_in_their_order() -> None:
    """They are read off the files' names, so that a start need not import Alembic."""
    script = ScriptDirectory.from_config(_config())
    assert known_versions() == [revision.revision for revision in script.walk_revisions()][::-1]
    assert known_versions()[-1] == script.get_current_head()
