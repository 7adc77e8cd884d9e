"""Files in the job server's database, on SQLite and PostgreSQL: written and read in chunks, kept, and deleted."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from sqlalchemy import func, select
from support.servers.postgres import JOB_SERVER, PostgresServer

from bot.jobserver.errors import JobServerError, RequestRejectedError
from bot.jobserver.store.database import Database
from bot.jobserver.store.files import CHUNK_BYTES, FileStore, keep_file
from bot.jobserver.store.tables import chunks, files, uploads
from bot.jobserver.store.uploads import UploadLimits, UploadStore

pytestmark = pytest.mark.promise("files")
LARGE = bytes(range(256)) * 10_000
"""More than two chunks."""
DAY = timedelta(days=1)


class Files:
    """A real store whose clock a test sets."""

    def __init__(self, url: str) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)
        self.database = Database(url, now=lambda: self.time)
        self.store = FileStore(self.database)
        self.uploads = UploadStore(self.store, "docs", UploadLimits(file=len(LARGE), space=2 * len(LARGE)))

    async def keep(self, file_id: str) -> None:
        await self.database.transact(lambda session: keep_file(session, file_id))

    async def sweep(self) -> int:
        steps = 0
        while await self.store.delete_expired():
            steps += 1
        return steps

    async def counts(self) -> tuple[int, ...]:
        """Returns how many files and chunks there are."""
        counted = (select(func.count()).select_from(table).scalar_subquery() for table in (files, chunks))
        [row] = await self.database.rows(select(*counted))
        return tuple(int(count) for count in dict(row).values())

    async def upload(self, content: bytes) -> str:
        file_id = hashlib.sha256(content).hexdigest()
        await self.uploads.add(file_id, "text/plain", pieces(content))
        return file_id


async def pieces(content: bytes, size: int = 70_000, *, breaks_off: bool = False) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]
    if breaks_off:
        raise ConnectionError


async def contents(store: FileStore, file_id: str) -> bytes:
    return b"".join([chunk async for chunk in store.read(file_id)])


@pytest.fixture
async def stored(jobs_database: str) -> AsyncIterator[Files]:
    made = Files(jobs_database)
    async with made.database:
        yield made


@pytest.mark.parametrize("content", [b"", b"x", LARGE[:CHUNK_BYTES], LARGE])
async def test_a_file_is_read_as_it_was_written(stored: Files, content: bytes) -> None:
    file_id = await stored.store.write(pieces(content))
    await stored.keep(file_id)
    stored.time += 2 * DAY
    assert await stored.sweep() == 0
    assert await contents(stored.store, file_id) == content
    assert await stored.counts() == (1, -(-len(content) // CHUNK_BYTES))


async def test_what_is_written_again_since_the_answer_to_a_commit_was_lost_is_there_once(
    stored: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, begun = stored.database._database.run, Counter[object]()

    async def loses_each_first_answer(work: Any, **how: Any) -> object:
        answer = await commit(work, **how)
        begun[how["end"]] += 1
        if begun[how["end"]] == 1:
            raise TimeoutError
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(stored.database._database, "run", loses_each_first_answer)
        file_id = await stored.store.write(pieces(LARGE))
    assert await contents(stored.store, file_id) == LARGE
    assert await stored.counts() == (1, 3)


async def test_what_breaks_off_is_deleted_at_once_and_what_a_kill_leaves_after_a_day(stored: Files) -> None:
    with pytest.raises(ConnectionError):
        await stored.store.write(pieces(LARGE, breaks_off=True))
    left = await stored.store.write(pieces(LARGE))
    assert await stored.counts() == (2, 5)
    await stored.sweep()
    assert await stored.counts() == (1, 3)
    stored.time += DAY
    with pytest.raises(JobServerError, match="took too long"):
        await stored.keep(left)
    await stored.sweep()
    assert await stored.counts() == (0, 0)


async def test_large_files_are_deleted_in_batches(stored: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.jobserver.store.files.CHUNK_BYTES", 100)
    await stored.store.write(pieces(bytes(4_500)))
    stored.time += DAY
    assert await stored.sweep() == 3
    assert await stored.counts() == (0, 0)


@pytest.mark.postgres
async def test_several_processes_sweep_at_the_same_time(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.jobserver.store.files.CHUNK_BYTES", 100)
    async with postgres.database(JOB_SERVER) as url:
        stored = Files(url)
        async with stored.database:
            await stored.store.write(pieces(bytes(20_000)))
            stored.time += DAY
            await asyncio.gather(*(stored.sweep() for _ in range(5)))
            assert await stored.counts() == (0, 0)


@pytest.mark.postgres
async def test_a_file_that_is_uploaded_again_while_it_is_swept_is_there(postgres: PostgresServer) -> None:
    async with postgres.database(JOB_SERVER) as url:
        stored = Files(url)
        async with stored.database:
            file_id = await stored.upload(LARGE)
            sweeping = await asyncpg.connect(url)
            async with sweeping.transaction():
                gone = await sweeping.fetchval("DELETE FROM uploads RETURNING file")
                await sweeping.execute("UPDATE files SET expires_at = '' WHERE id = $1", gone)
                uploading = asyncio.create_task(stored.upload(LARGE))
                await asyncio.sleep(0.5)
            await uploading
            await sweeping.close()
            await stored.sweep()
            [row] = await stored.database.rows(select(uploads.c.file))
            assert hashlib.sha256(await contents(stored.store, row["file"])).hexdigest() == file_id


async def test_uploads_by_two_servers_at_the_same_time_share_the_space(stored: Files) -> None:
    """Another's limits are the same; identical content takes no more."""
    first, second, third = (letter * len(LARGE) for letter in (b"a", b"b", b"c"))
    outcomes = await asyncio.gather(*map(stored.upload, (first, second, third, first)), return_exceptions=True)
    refused = [outcome for outcome in outcomes if isinstance(outcome, RequestRejectedError)]
    assert {error.status for error in refused} == {507}
    rows = await stored.database.rows(select(*uploads.c["id", "file"]))
    assert len(rows) == 2
    await stored.sweep()
    assert await stored.counts() == (2, 6)
    for row in rows:
        assert hashlib.sha256(await contents(stored.store, row["file"])).hexdigest() == row["id"]


async def test_a_file_that_was_uploaded_again_outlives_the_sweep(stored: Files) -> None:
    file_id = await stored.upload(LARGE)
    stored.time += 9 * DAY
    await stored.upload(LARGE)
    stored.time += 9 * DAY
    assert await stored.uploads.delete_unused() == 0
    stored.time += 2 * DAY
    assert await stored.uploads.delete_unused() == 1
    await stored.sweep()
    assert await stored.counts() == (0, 0)
    await stored.upload(LARGE)
    assert [row["id"] for row in await stored.database.rows(select(uploads.c.id))] == [file_id]
