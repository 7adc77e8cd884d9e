"""What holds for every test: no log record carries a secret, whatever the test is about."""

import logging
import re
from collections.abc import Iterator

import pytest

PLANTED = re.compile(r"planted[-_](?:secret|admin_key|key-of|bot-token|app-token|signing)")
"""How the secrets that tests use are to be recognised; new ones contain `planted-secret-`."""


class _Watch(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        if PLANTED.search(text):
            self.found.append(f"{record.name}: {text}")


@pytest.fixture(autouse=True)
def no_secret_is_logged() -> Iterator[None]:
    """Looks at records before anything is masked: the mask is for what nobody thought of."""
    watch = _Watch()
    logging.getLogger().addHandler(watch)
    yield
    logging.getLogger().removeHandler(watch)
    assert not watch.found
