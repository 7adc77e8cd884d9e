"""Fixtures and hooks for all tests: the lanes, a search of every log record for secrets, and shared servers."""

import asyncio
import compileall
import gc
import logging
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.compiled_statements import share_compiled_statements
from support.hypothesis_settings import LONG, SEED, look
from support.lanes import divide
from support.oracles.leaks import SecretWatch, planting
from support.scratch import IN_MEMORY
from support.servers.forked_commands import forked_commands
from support.servers.postgres import NoPostgres, PostgresServer, postgres_server

from bot.runtime.logging import NOISY
from bot.store.schema.migration import migrate

pytest_plugins = ["support.worlds.browser_fixtures"]

signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
"""So that programs that tests start receive both, even if `nohup` or a shell's background job started the tests."""

share_compiled_statements()
SOURCES = Path(__file__).parents[1]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Runs before Hypothesis's own plugin reads the option. An empty mark expression is the full lane."""
    full = not config.option.markexpr
    look(full=full)
    if config.option.hypothesis_seed is None and not full and not LONG:
        config.option.hypothesis_seed = SEED
    if config.getoption("numprocesses", None):
        compile_once()


def compile_once() -> None:
    """Before the processes start that run tests: each would compile what a fresh clone has not compiled yet."""
    for folder in ("bot", "tests/support"):
        compileall.compile_dir(SOURCES / folder, quiet=2)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Thousands of tests live until the end, so the garbage collector need not scan them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    divide(item)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begins with the longest test, for whose end the others would wait."""
    items.sort(key=lambda item: item.path.name != "test_kills.py")


@pytest.fixture(scope="session", autouse=True)
def log_watch() -> Iterator[SecretWatch]:
    """Looks at records before they are masked: masking is only a safety net."""
    watch = SecretWatch()
    with watch.watching(), planting():
        yield watch
    assert not watch.found


@pytest.fixture(scope="session")
def postgres_if_any() -> Iterator[PostgresServer | NoPostgres]:
    """One server for the whole run, or the reason why there is none. It need not wait for the
    disk: no test cuts its power.
    """
    try:
        with postgres_server(fsync="off", full_page_writes="off") as server:
            yield server
    except NoPostgres as error:
        yield error


@pytest.fixture(scope="session")
def maybe_postgres(postgres_if_any: PostgresServer | NoPostgres) -> PostgresServer | None:
    return None if isinstance(postgres_if_any, NoPostgres) else postgres_if_any


@pytest.fixture(scope="session")
def postgres(postgres_if_any: PostgresServer | NoPostgres) -> PostgresServer:
    if isinstance(postgres_if_any, NoPostgres):
        pytest.skip(str(postgres_if_any))
    return postgres_if_any


@pytest.fixture(scope="session")
def forked() -> Iterator[tuple[str, ...]]:
    """The start of a command line: a replacement for `python -m` that starts at once."""
    with forked_commands() as head:
        yield head


@pytest.fixture(scope="session")
def pagehand(forked: tuple[str, ...]) -> tuple[str, ...]:
    """The same for `python -m bot`."""
    return (*forked, "bot.cli.main")


@pytest.fixture(scope="session")
def sqlite_template() -> Iterator[Path]:
    """A SQLite database with empty tables; copying it takes a hundredth of the time of creating it."""
    with TemporaryDirectory(dir=IN_MEMORY) as directory:
        path = Path(directory) / "template.db"
        asyncio.run(migrate(f"sqlite:///{path}"))
        yield path


@pytest.fixture(params=("sqlite", pytest.param("postgres", marks=pytest.mark.postgres)))
def server(request: pytest.FixtureRequest) -> PostgresServer | None:
    """The server that the test's database is on; None for SQLite."""
    return request.getfixturevalue("postgres") if request.param == "postgres" else None


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A directory for SQLite databases, in memory, since tests would mostly wait for a disk."""
    with TemporaryDirectory(dir=IN_MEMORY) as directory:
        yield Path(directory)


@pytest.fixture
async def empty_database(server: PostgresServer | None, scratch: Path) -> AsyncIterator[str]:
    """The URL of a database without tables."""
    if server is None:
        yield f"sqlite:///{scratch}/empty.db"
        return
    async with server.empty_database() as url:
        yield url


@pytest.fixture(autouse=True)
def log_as_before(log_watch: SecretWatch) -> Iterator[None]:
    """Restores the logging set-up, which a command changes if a test calls it in its own process; and no secret is
    logged.
    """
    loggers = [logging.getLogger(name) for name in (None, *NOISY)]
    levels, handlers = [logger.level for logger in loggers], loggers[0].handlers[:]
    yield
    loggers[0].handlers[:] = handlers
    for logger, level in zip(loggers, levels, strict=True):
        if logger.level != level:  # each change makes all loggers forget their levels
            logger.setLevel(level)
    found, log_watch.found = log_watch.found, []
    assert not found
