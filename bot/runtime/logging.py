"""The log: its formats, and the context that each line carries."""

import json
import logging
import math
import re
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TextIO

REQUEST_ID_HEADER = "X-Request-Id"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
REQUEST_ID_FORM = _REQUEST_ID.pattern


@dataclass(frozen=True, slots=True)
class LogContext:
    """What log lines are about; empty: nothing known. `request` is an opaque id, which is nowhere a key."""

    request: str = ""
    job: str = ""
    thread: str = ""

    @property
    def fields(self) -> Mapping[str, str]:
        """What is known, by its name in the log."""
        named = {"request": self.request, "job": self.job, "thread": self.thread}
        return {name: value for name, value in named.items() if value}


NO_CONTEXT = LogContext()
_current: ContextVar[LogContext] = ContextVar("log_context", default=NO_CONTEXT)


def current_log_context() -> LogContext:
    """Returns what log lines of the current task are about."""
    return _current.get()


@contextmanager
def log_context(context: LogContext) -> Iterator[None]:
    """Has the log lines in this block, and of tasks that begin in it, be about this."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


def is_request_id(value: str) -> bool:
    """Whether a header's value can be a request's id in the log."""
    return _REQUEST_ID.fullmatch(value) is not None


NOISY = ("slack_bolt", "slack_sdk", "aiohttp.access", "httpx", "alembic", "asyncio")
"""Libraries that log payloads, people's messages, URLs with tickets, or every request. Only their warnings are kept."""


MIN_SECRET_LENGTH = 4
"""Characters; masking a shorter value would garble every line, and it would not be much of a password."""
MAX_MESSAGE = 4_000
MAX_FIELD = 300
MAX_TRACEBACK = 16_000
"""Characters that are logged of a message, a field and a traceback."""


class LogFormat(StrEnum):
    """How lines of the log are written."""

    TEXT = "text"
    """For people. A traceback follows on lines of its own."""
    JSON = "json"
    """For programs: each record is one JSON object on one line."""


def format_for(stream: TextIO) -> LogFormat:
    """Returns the format for a stream: people read a terminal, programs anything else."""
    return LogFormat.TEXT if stream.isatty() else LogFormat.JSON


def fields_of(record: logging.LogRecord) -> Mapping[str, str]:
    """Returns the fields of a record: those given as `extra={"fields": ...}`, and what the current task is about."""
    given: Mapping[str, str] = getattr(record, "fields", {})
    return {name: value for name, value in given.items() if value} | {
        name: value for name, value in current_log_context().fields.items() if not given.get(name)
    }


_ONE_LINE = str.maketrans(
    {chr(code): ascii(chr(code))[1:-1] for code in (*range(32), *range(127, 160), 0x2028, 0x2029)}
)
"""Escapes characters that end a line or move a terminal's cursor."""
_TRACEBACK_INDENT = "    "
"""Starts each line of a traceback; no record starts with it."""
_PLAIN = re.compile(r"[\w.:/@+-]{1,200}")


class MaskingFormatter(logging.Formatter):
    """Formats records with `secrets`, which may grow, masked everywhere, including in the text of exceptions, and each
    part bounded.
    """

    def __init__(self, secrets: Collection[str]) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
        self._secrets = secrets
        self._known = 0
        self._longest_first: list[str] = []

    def _safe(self, text: str, most: int) -> str:
        """Returns a text without secrets, which are masked before it is cut: half a secret is one, too."""
        if len(self._secrets) != self._known:
            self._known = len(self._secrets)
            counted = (secret for secret in self._secrets if len(secret) >= MIN_SECRET_LENGTH)
            self._longest_first = sorted(counted, key=len, reverse=True)
        for secret in self._longest_first:
            text = text.replace(secret, "***")
        if len(text) <= most:
            return text
        half = most // 2
        return f"{text[:half]} [{len(text) - 2 * half} characters left out] {text[-half:]}"


class TextFormatter(MaskingFormatter):
    """Formats a record as one line for people, and a traceback as lines that cannot be mistaken for records."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        """Formats a record's own line."""
        line = self._safe(super().formatMessage(record), MAX_MESSAGE).translate(_ONE_LINE)
        return " ".join((line, *(f"{name}={self._word(value)}" for name, value in fields_of(record).items())))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the name is logging's
        """Formats a traceback."""
        return self._further_lines(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:  # noqa: N802 - the name is logging's
        """Formats the stack of the logging call."""
        return self._further_lines(stack_info)

    def format(self, record: logging.LogRecord) -> str:
        """Formats a record. A traceback that another formatter has cached is not used, because it is not masked."""
        cached, record.exc_text = record.exc_text, None
        try:
            return logging.Formatter.format(self, record)
        finally:
            record.exc_text = cached

    def _further_lines(self, text: str) -> str:
        lines = self._safe(text, MAX_TRACEBACK).split("\n")
        return "\n".join(_TRACEBACK_INDENT + line.translate(_ONE_LINE) for line in lines)

    def _word(self, value: str) -> str:
        """A plain word, or a quoted string if it could be taken for several words or another field."""
        value = self._safe(value, MAX_FIELD)
        return value if _PLAIN.fullmatch(value) else json.dumps(value)


class JsonFormatter(MaskingFormatter):
    """Formats a record, with its traceback, as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Formats a record."""
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": self._safe(record.name, MAX_FIELD),
            "message": self._safe(record.getMessage(), MAX_MESSAGE),
        }
        entry |= {name: self._safe(value, MAX_FIELD) for name, value in fields_of(record).items() if name not in entry}
        if record.exc_info:
            entry["exception"] = self._safe(self.formatException(record.exc_info), MAX_TRACEBACK)
        if record.stack_info:
            entry["stack"] = self._safe(record.stack_info, MAX_TRACEBACK)
        return json.dumps(entry).replace("\x7f", r"\u007f")


def formatter(log_format: LogFormat, secrets: Collection[str]) -> MaskingFormatter:
    """Returns the formatter of a format."""
    return TextFormatter(secrets) if log_format is LogFormat.TEXT else JsonFormatter(secrets)


class ThrottledLogger:
    """Logs the same message at most once in `every` seconds, with how often it was suppressed in between.

    For events that a stranger can cause as often as they like.
    """

    def __init__(
        self, target: logging.Logger, *, every: float = 60.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._target = target
        self._every = every
        self._monotonic = monotonic
        self._logged: dict[str, tuple[float, int]] = {}

    def warning(self, message: str, *values: object) -> None:
        """Logs a warning. Calls with the same `message`, before its values are filled in, count as the same."""
        self._log(logging.WARNING, message, values)

    def error(self, message: str, *values: object, exc_info: BaseException | None = None) -> None:
        """Logs an error, with the traceback of an exception if one is given."""
        self._log(logging.ERROR, message, values, exc_info)

    def _log(self, level: int, message: str, values: tuple[object, ...], fault: BaseException | None = None) -> None:
        now = self._monotonic()
        logged_at, suppressed = self._logged.get(message, (-math.inf, 0))
        if now - logged_at < self._every:
            self._logged[message] = (logged_at, suppressed + 1)
            return
        self._logged[message] = (now, 0)
        again = f" ({suppressed} more times since)" if suppressed else ""
        self._target.log(level, f"{message}%s", *values, again, exc_info=fault)


def configure_logging(level: str, secrets: Collection[str], log_format: LogFormat | None = LogFormat.TEXT) -> None:
    """Sends records of `level` and above to standard error; with no format, in the one for where that leads."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(log_format or format_for(sys.stderr), secrets))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)
