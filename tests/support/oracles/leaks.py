"""Looks for secrets where they must not be: in log records as they are made, and in files that processes wrote."""

import base64
import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from bot.runtime.logging import NOISY, fields_of

PLANTED = re.compile(r"planted[-_](?:secret|admin_key|key-of|bot-token|app-token|signing)")
"""How the secrets of the tests are recognized; new ones contain `planted-secret-`."""
PLANT = "planted-secret-"
WORKSPACE_SECRETS = ("web_api.method", "delivery.socket_mode", "wire.interaction_payloads")
"""The workspace's modules that create tokens, tickets, and addresses that grant access."""
LINES_TOLD = 12
_NOISY = tuple(f"{name}." for name in NOISY)


class SecretWatch:
    """Sees every record of the test run, with the verbosity of `pagehand run` at level DEBUG,
    before anything is masked.
    """

    def __init__(self) -> None:
        self.found: list[str] = []
        self._format = logging.Formatter().format

    def see(self, record: logging.LogRecord) -> None:
        """Keeps a record that contains a secret."""
        text = f"{self._format(record)} {fields_of(record)}"
        if PLANTED.search(text):
            self.found.append(f"{record.name}: {text}")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Sees the records that levels would suppress; all other handlers get what the levels allow, which a changed
        level of the root logger would not ensure.
        """
        let_through, pass_on = logging.Logger.isEnabledFor, logging.Logger.callHandlers

        def call_handlers(logger: logging.Logger, record: logging.LogRecord) -> None:
            if record.levelno >= _own_level(logger):
                self.see(record)
            if let_through(logger, record.levelno):
                pass_on(logger, record)

        def is_enabled(logger: logging.Logger, level: int) -> bool:
            return level >= _own_level(logger) or let_through(logger, level)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(logging.Logger, "isEnabledFor", is_enabled)
            patch.setattr(logging.Logger, "callHandlers", call_handlers)
            yield


def _own_level(logger: logging.Logger) -> int:
    """Returns the level that the sources give a logger; DEBUG where they leave that to the settings."""
    at: logging.Logger | None = logger
    while at is not None and at.parent is not None:
        if at.level:
            return at.level
        at = at.parent
    return logging.WARNING if f"{logger.name}.".startswith(_NOISY) else logging.DEBUG


class _Planting:
    """The module `secrets` with recognizable tokens."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Callable[..., Any]:
        make: Callable[..., Any] = getattr(self._module, name)
        return (lambda size: f"{PLANT}{make(size)}") if name.startswith("token_") else make


@contextmanager
def planting() -> Iterator[None]:
    """Makes every workspace create recognizable tokens, tickets and addresses."""
    import secrets  # noqa: PLC0415 - the one that is replaced

    with pytest.MonkeyPatch.context() as patch:
        for module in WORKSPACE_SECRETS:
            patch.setattr(f"bot.workspace.{module}.secrets", _Planting(secrets))
        yield


def encoded(secret: str) -> Iterator[bytes]:
    """Returns the encodings in which a secret may appear."""
    yield secret.encode()
    yield quote(secret, safe="").encode()
    yield base64.b64encode(secret.encode()).rstrip(b"=")[:-1]
    yield json.dumps(secret)[1:-1].encode()


def leaks(secrets: Iterable[str], places: Mapping[str, bytes]) -> list[str]:
    """Returns where a secret can be read."""
    forms = dict.fromkeys(form for secret in secrets for form in encoded(secret))
    return [f"{place} holds {form!r}" for place, content in places.items() for form in forms if form in content]


def faults_in_logs(logs: Iterable[Path], secrets: Iterable[str]) -> list[str]:
    """Returns faults in the output of processes: secrets and tracebacks. An empty log is a fault, too."""
    places = {log.name: log.read_bytes() for log in logs}
    if not any(places.values()):
        return ["nothing was logged"]
    return leaks(secrets, places) + [f"{place}: {words}" for place in places for words in tracebacks(places[place])]


def tracebacks(log: bytes) -> Iterator[str]:
    """Returns the first lines of each traceback, after the line that announces it; for JSON,
    the part that contains it.
    """
    lines = log.decode(errors="replace").splitlines()
    for number, line in enumerate(lines):
        if line.startswith("{") and '"exception": "' in line:
            yield str(json.loads(line)["exception"])
        if line.lstrip().startswith("Traceback "):  # Python prints one without indentation, our log within its record
            yield "\n".join(lines[max(number - 1, 0) : number + LINES_TOLD])
