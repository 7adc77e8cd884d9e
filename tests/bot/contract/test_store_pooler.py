"""PostgreSQL behind a connection pooler: the real PgBouncer in transaction mode, with two connections for everybody."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from support.fakes.ports import FakeClock
from support.oracles.store_statements import use_all
from support.servers.pgbouncer import POOL_SIZE, PROGRAM, PgBouncer, pgbouncer
from support.servers.postgres import PostgresServer
from support.worlds.store_world import (
    JOB,
    a_post,
    changed,
    claim_notices,
    claim_polls,
    claim_requests,
    done,
    save,
    save_polls,
    settle,
)

from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import Person, RequestState, WayIn
from bot.domain.threads.thread import ThreadState
from bot.notices.notice import CARD_CHANGED
from bot.service import Service
from bot.store.database.engine import engine_for
from bot.store.schema.migration import SchemaState, migrate, schema_state
from bot.store.store import Store, Transaction, open_store

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
async def stores(pooled: str) -> AsyncIterator[Sequence[Store]]:
    """Two, as two processes have them."""
    opened = [await open_store(pooled) for _ in range(2)]
    yield opened
    for store in opened:
        await store.close()


async def answering(tx: Transaction) -> int:
    """Returns the server's process that runs this transaction."""
    return int((await tx.session.connection.exec_driver_sql("SELECT pg_backend_pid()")).scalar_one())


async def begun(store: Store, names: Sequence[str]) -> None:
    service = Service(store, on_commit=lambda: None)
    ana = Person("UANA", "T1")
    await asyncio.gather(*(service.start(NewJob(ana, "C1", f"Do {name}", name, WayIn.COMMAND)) for name in names))


async def prepare(store: Store, owner: str) -> None:
    """Moves received requests to the queue for sending, each under its card."""

    async def ready(tx: Transaction) -> None:
        for item in await tx.requests.claim_received(owner, lease=30.0, limit=10):
            await tx.requests.prepared(replace(item.request, state=RequestState.WAITING))
            await tx.notices.add(item.thread.id, CARD_CHANGED)

    await store.transact(ready)


async def worked_off(store: Store, owner: str, sent: Counter[str], count: int) -> None:
    """Runs the loops: preparing, cards, requests, and the first poll of each job."""
    while sent.total() < count:
        await prepare(store, owner)
        for item in await claim_notices(store, owner):
            await store.transact(lambda tx, item=item: tx.threads.set_card(item.thread.id, f"{item.thread.id}.1"))  # type: ignore[misc]
            await done(store, item, owner)
        for request in await claim_requests(store, owner):
            sent[request.request.text] += 1
            await settle(store, request.request.id, RequestState.ACCEPTED)
            await save(store, request.thread.id, ThreadState(job=JOB), poll_in=0.0)
        polls = await claim_polls(store, owner)
        await save_polls(store, *(changed(item, a_post("polled"), next_poll_in=None) for item in polls), owner=owner)


async def test_every_statement_runs_through_the_pooler(pooled: str, clock: FakeClock) -> None:
    await use_all(pooled, clock)


async def test_commands_of_two_processes_are_recorded_and_processed_once(stores: Sequence[Store]) -> None:
    names = [f"{number}" for number in range(40)]
    sent: Counter[str] = Counter()
    await asyncio.gather(
        *(begun(store, names[half::2]) for half, store in enumerate(stores)),
        *(worked_off(store, f"owner {half}", sent, len(names)) for half, store in enumerate(stores)),
    )
    assert sent == Counter(f"Do {name}" for name in names)


async def test_transactions_move_between_server_connections(pooled: str, stores: Sequence[Store]) -> None:
    """Otherwise the other tests would prove nothing."""
    both = asyncio.Barrier(POOL_SIZE)

    async def concurrency(tx: Transaction) -> int:
        await both.wait()
        return await answering(tx)

    servers = set(await asyncio.gather(*(store.transact(concurrency) for store in stores)))
    assert len(servers) == POOL_SIZE
    seen = {await stores[0].transact(answering), await stores[0].transact(answering)}
    assert seen == servers


@pytest.mark.full
async def test_the_pooler_may_be_killed_and_return(pooler: PgBouncer, stores: Sequence[Store]) -> None:
    names = [f"{number}" for number in range(20)]
    sent: Counter[str] = Counter()
    await begun(stores[0], names[:10])

    killed = asyncio.Event()

    async def kill_once(tx: Transaction) -> None:
        if not killed.is_set():
            await pooler.kill()
            killed.set()
        await answering(tx)

    async def start() -> None:
        await killed.wait()
        await pooler.start()

    await asyncio.gather(stores[0].transact(kill_once), begun(stores[1], names[10:]), start())
    await asyncio.gather(*(worked_off(store, f"{n}", sent, len(names)) for n, store in enumerate(stores)))
    assert sent == Counter(f"Do {name}" for name in names)


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
