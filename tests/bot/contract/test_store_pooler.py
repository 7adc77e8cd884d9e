"""PostgreSQL behind a connection pooler: the real PgBouncer in transaction mode, with two connections for everybody."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from urllib.parse import urlsplit

import pytest
from sqlalchemy import text
from support.databases import engine_for
from support.fakes.ports import FakeClock
from support.oracles.store_statements import use_all
from support.servers.pgbouncer import POOL_SIZE, PROGRAM, PgBouncer, pgbouncer
from support.servers.postgres import PostgresServer
from support.worlds.core_world import ANA, CoreWorld

from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import WayIn
from bot.queue.migration import SchemaState
from bot.store.schema.migration import migrate, schema_state
from bot.store.store import Transaction, open_store

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(PROGRAM is None, reason="PgBouncer is left out: it is not installed"),
]


@pytest.fixture
async def pooler(postgres: PostgresServer) -> AsyncIterator[PgBouncer]:
    async with pgbouncer(postgres) as running:
        yield running


@pytest.fixture
async def direct(postgres: PostgresServer) -> AsyncIterator[str]:
    """The URL of a database of the server, without the pooler."""
    async with postgres.database() as url:
        yield url


@pytest.fixture
def pooled(pooler: PgBouncer, direct: str) -> str:
    """The URL of the same database, through the pooler."""
    return pooler.url(urlsplit(direct).path.lstrip("/"))


@pytest.fixture
async def worlds(pooled: str, clock: FakeClock) -> AsyncIterator[Sequence[CoreWorld]]:
    """Two processes."""
    opened = [await open_store(pooled, clock=clock) for _ in range(2)]
    one = CoreWorld("one").on(opened[0], clock)
    yield one, CoreWorld("two").on(opened[1], clock, beside=one)
    for store in opened:
        await store.close()


async def begun(world: CoreWorld, names: Sequence[str]) -> None:
    jobs = (NewJob(ANA, "C1", f"Do {name}", name, WayIn.COMMAND) for name in names)
    await asyncio.gather(*(world.service.start(job) for job in jobs))


async def all_sent(worlds: Sequence[CoreWorld], names: Sequence[str]) -> None:
    """Both processes work until every job is created, each once."""
    while len(worlds[0].job_api.created) < len(names):
        await asyncio.gather(*(world.settle() for world in worlds))
    assert sorted(worlds[0].job_api.created) == sorted(f"Do {name}" for name in names)


async def answering(tx: Transaction) -> int:
    """Returns the server's process that runs this transaction."""
    return int((await tx.session.execute(text("SELECT pg_backend_pid()"))).scalar_one())


async def test_every_statement_runs_through_the_pooler(pooled: str, clock: FakeClock) -> None:
    await use_all(pooled, clock)


async def test_commands_of_two_processes_are_recorded_and_processed_once(worlds: Sequence[CoreWorld]) -> None:
    names = [f"{number}" for number in range(40)]
    recording = (begun(world, names[half::2]) for half, world in enumerate(worlds))
    await asyncio.gather(*recording, all_sent(worlds, names))


async def test_transactions_move_between_server_connections(worlds: Sequence[CoreWorld]) -> None:
    """Otherwise the other tests would prove nothing."""
    both = asyncio.Barrier(POOL_SIZE)

    async def concurrency(tx: Transaction) -> int:
        await both.wait()
        return await answering(tx)

    servers = set(await asyncio.gather(*(world.store.transact(concurrency) for world in worlds)))
    assert len(servers) == POOL_SIZE
    assert {await worlds[0].store.transact(answering), await worlds[0].store.transact(answering)} == servers


async def test_tables_are_created_and_compared_through_the_pooler(pooler: PgBouncer, postgres: PostgresServer) -> None:
    async with postgres.empty_database() as url:
        pooled = pooler.url(urlsplit(url).path.lstrip("/"))
        await asyncio.gather(*(migrate(pooled) for _ in range(3)))
        assert await schema_state(pooled) is SchemaState.CURRENT
        await pooler.kill()


async def prepared(url: str) -> int:
    """Returns how many statements stay prepared on a connection that has run one."""
    engine = engine_for(url)
    try:
        async with engine.begin() as connection:
            await connection.exec_driver_sql("SELECT 1")
            result = await connection.exec_driver_sql("SELECT count(*) FROM pg_prepared_statements WHERE name <> ''")
            return int(result.scalar_one())
    finally:
        await engine.dispose()


async def test_statements_are_prepared_only_without_a_pooler(pooled: str, direct: str) -> None:
    assert await prepared(direct) > 0
    assert await prepared(pooled) == 0


@pytest.mark.parametrize(
    ("option", "stays"),
    [
        ("statement_cache_size=0", False),
        ("prepared_statement_cache_size=0", False),
        ("prepared_statements=false", False),
        ("pgbouncer=true", False),
        ("statement_cache_size=200", True),
        ("max_cached_statement_lifetime=0", True),
    ],
)
async def test_the_usual_pooler_options_are_understood(direct: str, option: str, *, stays: bool) -> None:
    assert (await prepared(f"{direct}&{option}") > 0) is stays
