"""What holds for every test: no log record carries a secret, whatever it is about, and none fails for being slow;
several workers share what takes long.
"""

import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings
from support.dealing import deal
from support.oracles.leaks import SecretWatch, planting

from bot.runtime.logging import NOISY

settings.register_profile("pagehand", deadline=None)
settings.load_profile("pagehand")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each worker of pytest-xdist has the same list, and knows how many there are."""
    if workers := os.environ.get("PYTEST_XDIST_WORKER_COUNT"):
        items[:] = deal(items, int(workers))


@pytest.fixture(scope="session", autouse=True)
def log_watch() -> Iterator[SecretWatch]:
    """Looks at records before anything is masked: the mask is for what nobody thought of."""
    watch = SecretWatch()
    with watch.watching(), planting():
        yield watch
    assert not watch.found


@pytest.fixture(autouse=True)
def log_as_before() -> Iterator[None]:
    """A command that a test calls in its own process sets up the log: that is undone, for the tests that come after."""
    loggers = [logging.getLogger(name) for name in (None, *NOISY)]
    levels, handlers = [logger.level for logger in loggers], loggers[0].handlers[:]
    yield
    loggers[0].handlers[:] = handlers
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.fixture(autouse=True)
def no_secret_is_logged(log_watch: SecretWatch) -> Iterator[None]:
    yield
    found, log_watch.found = log_watch.found, []
    assert not found
