"""Every statement of the store uses an index, so finished rows cost nothing."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import pytest
from sqlalchemy import Select, UpdateBase, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from support.databases import engine_for
from support.fakes.ports import FakeClock
from support.oracles.store_statements import Statements, of_the_store, seen_statements, use_all
from support.worlds.finished_jobs import fill, fill_activity, fill_early_replies, fill_request_files

from bot import store
from bot.domain.slack_limits import CallKind
from bot.store import notice_queue, threads, turns
from bot.store.schema.tables import metadata

HISTORY = 3_000
"""The number of finished jobs: so many that no database would choose to read all of them."""
MODULES = [import_module(f"bot.store.{each.name}") for each in iter_modules(store.__path__)]
OPEN_ONLY = ("due_at IS NOT NULL", "state = 'awaiting_person'", "claimed_until IS NOT NULL", "state = ANY ARRAY[")
"""Marks of an index with open rows only: reading such an index completely is no scan of finished rows."""
_WALKS = ("people", "in_turn", "walks", "ways", "each_share", "in_order")
_FEW_ROWS = ("listening",)
"""Tables with a row for each process, which may be read as a whole."""
_NO_TABLES = ("CONSTANT ROW", *_FEW_ROWS, "(subquery", "pagehand_schema", "open_jobs", *_WALKS)
"""Also called scans by SQLite: of a row in the statement itself, of an empty list, of the schema's version, of the
result of a subquery with a limit, of the result of an index walk.
"""


@pytest.fixture(params=["looked at", pytest.param("never looked at", marks=pytest.mark.full)])
async def engine(request: pytest.FixtureRequest, database: str) -> AsyncIterator[AsyncEngine]:
    """A database with a history. PostgreSQL analyzes its tables by itself, at any time; SQLite never does."""
    engine = engine_for(database)
    on_postgres = engine.dialect.name == "postgresql"
    if on_postgres and request.param == "never looked at":
        pytest.skip("PostgreSQL always does, sooner or later")
    await fill(engine, HISTORY)
    async with engine.begin() as connection:
        await fill_request_files(connection)
        await fill_early_replies(connection, HISTORY)
        await fill_activity(connection, HISTORY)
        if request.param == "looked at":
            await connection.execute(text("ANALYZE"))
    yield engine
    if on_postgres:
        # The next user of the database must not meet deleted rows.
        async with engine.begin() as connection:
            await connection.execute(text(f"TRUNCATE {', '.join(metadata.tables)}"))
    await engine.dispose()


@pytest.fixture
async def statements(engine: AsyncEngine, database: str, clock: FakeClock) -> Statements:
    with seen_statements() as seen:
        await use_all(database, clock)
    return seen


KINDS = [kind.name for kind in CallKind]
_IN_THREAD_ORDER = [kind for kind in CallKind if not kind.method.startswith("reactions.")]


_SORTING = ("Sort", "TEMP B-TREE")
_BY_TIME = ("ix_requests_due_at",)


@pytest.mark.parametrize(
    ("statement", "indexes", "without"),
    [
        (threads._CANDIDATES, ["ix_polls_due_at"], _SORTING),
        *(
            (
                statement,
                ["ix_notices_delivery", *(["ix_notices_thread_id"] if kind in _IN_THREAD_ORDER else [])],
                _SORTING,
            )
            for kind, statement in notice_queue._CANDIDATES.items()
        ),
        (notice_queue._DUE, ["ix_notices_delivery"], _SORTING),
        (turns.RECEIVED, ["ix_requests_to_be_prepared"], _BY_TIME),
        (turns.RECEIVED_OF, ["ix_requests_to_be_prepared"], _BY_TIME),
        (turns.WAITING, ["ix_requests_to_be_sent", "ix_requests_in_order", "ix_requests_under_way"], _BY_TIME),
    ],
    ids=[
        "polls",
        *KINDS,
        "which notices are due",
        "to be prepared",
        "more of one person",
        "to be sent",
    ],
)
async def test_due_work_is_found_by_index(
    database: str, statement: Select[int], indexes: list[str], without: tuple[str, ...]
) -> None:
    """In order; of the next person or thread in turn only the result is sorted, not the waiting rows."""
    plan = await _plan_for_many(database, statement)
    assert [index for index in indexes if index not in plan] == []
    assert [step for step in without if step in plan] == []


async def _plan_for_many(database: str, statement: Select[int]) -> str:
    engine = engine_for(database)
    values = {"now": 1e9, "limit": 10, "held_channels": ["C1"]}
    values |= {"ahead": ["docs"], "ahead_in_threads": ["guides"]}
    values |= {"turn": 7, "begin": "00000007", "most": 10, "person": "UANA", "thread": "t1"}
    sql = statement.params(values).compile(dialect=engine.dialect, compile_kwargs={"literal_binds": True})
    explain = "EXPLAIN QUERY PLAN"
    async with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            explain = "EXPLAIN"
            # For tables known to be empty any index would do; for new ones nothing is known. Statistics of rows that
            # other tests had in the same database would remain.
            await connection.execute(text(f"TRUNCATE {', '.join(metadata.tables)}"))
            await connection.execute(text("DELETE FROM pg_statistic WHERE starelid >= 16384"))  # not the catalogs'
            # The planner should choose as with many rows.
            for choice in ("enable_seqscan", "enable_bitmapscan", "enable_sort", "enable_hashjoin", "enable_mergejoin"):
                await connection.execute(text(f"SET LOCAL {choice} = off"))
        plan = "\n".join(str(row[-1]) for row in await connection.exec_driver_sql(f"{explain} {sql}"))
    await engine.dispose()
    return plan


async def test_no_statement_reads_a_whole_table(engine: AsyncEngine, statements: Statements) -> None:
    plans_of = _postgres_plans if engine.dialect.name == "postgresql" else _sqlite_plans
    looked_at, found = of_the_store(statements.sent, list(metadata.tables)), []
    async with engine.begin() as connection:
        for statement, values in looked_at.items():
            found += [f"{scan}: {statement}" async for scan in plans_of(connection, statement, values)]
    assert found == []
    _all_ran(statements, engine.dialect.name)


async def _sqlite_plans(connection: AsyncConnection, statement: str, values: Any) -> AsyncIterator[str]:
    for row in await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values):
        step = str(row[-1])
        if step.startswith("SCAN") and not step.removeprefix("SCAN ").startswith(_NO_TABLES):
            yield step


async def _postgres_plans(connection: AsyncConnection, statement: str, values: Any) -> AsyncIterator[str]:
    """Returns scans in the plan for these values, and in the generic plan that a prepared statement comes to use."""
    rows = await connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", values)
    nothing = f"({', '.join('NULL' for _ in values)})" if values else ""
    await connection.exec_driver_sql("SET LOCAL plan_cache_mode = force_generic_plan")
    driver: Any = (await connection.get_raw_connection()).driver_connection
    await driver.execute(f"PREPARE explained AS {statement}")
    generic = await driver.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE explained{nothing}")
    await driver.execute("DEALLOCATE explained")
    for kind, plan in (("these", rows.scalar_one()), ("any", generic)):
        plans = json.loads(plan) if isinstance(plan, str) else plan
        for node in _nodes(plans[0]["Plan"]):
            if await _reads_all(connection, node):
                yield f"{kind}: {node['Node Type']} {node.get('Relation Name')} {node.get('Index Name')}"


def _nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from _nodes(below)


async def _reads_all(connection: AsyncConnection, node: Mapping[str, Any]) -> bool:
    if node["Node Type"] == "Seq Scan":
        return node["Relation Name"] in metadata.tables and node["Relation Name"] not in _FEW_ROWS
    if "Index Name" not in node or "Index Cond" in node:
        return False
    looked_up = text("SELECT indexdef FROM pg_indexes WHERE indexname = :name")
    definition = (await connection.execute(looked_up, {"name": node["Index Name"]})).scalar_one()
    plain = definition.replace("(", "").replace(")", "")
    return not any(condition in plain for condition in OPEN_ONLY)


def _all_ran(statements: Statements, dialect: str) -> None:
    """Checks those written in the store's modules; statements built by methods run with the methods."""
    for module in MODULES:
        for name, statement in _statements_of(module, dialect):
            # Statements without a table are left out: they are for PostgreSQL only, and partly for one of its versions.
            if isinstance(statement, UpdateBase) or (isinstance(statement, Select) and _reads_a_table(statement)):
                assert any(statement is ran for ran in statements.ran), f"{module.__name__}.{name}"


def _statements_of(module: ModuleType, dialect: str) -> Iterator[tuple[str, object]]:
    for name, value in vars(module).items():
        yield name, value[dialect] if isinstance(value, Mapping) and dialect in value else value


def _reads_a_table(statement: Select[Any]) -> bool:
    return any(name in str(statement) for name in metadata.tables)


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=str)
def test_a_threads_rows_are_found_by_index_when_it_is_deleted(table: Any) -> None:
    """No plan shows the effect of a foreign key on a deletion; neither database creates an index for it."""
    indexes = [list(index.columns) for index in (*table.indexes, table.primary_key)]
    for key in table.foreign_keys:
        assert any(columns[0] is key.parent for columns in indexes)
