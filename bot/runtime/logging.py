"""The log: one line per event on standard error. Known secrets are masked, in tracebacks, too."""

import logging
import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

NOISY = ("slack_bolt", "slack_sdk", "aiohttp.access", "aiosqlite", "httpx", "alembic", "asyncio")
"""Libraries that log payloads, people's messages, URLs with tickets, or every request. Only their warnings are kept."""


MIN_SECRET_LENGTH = 4
"""Characters; masking a shorter value would garble every line, and it would not be much of a password."""


_ONE_LINE = str.maketrans(
    {chr(code): ascii(chr(code))[1:-1] for code in (*range(32), *range(127, 160), 0x2028, 0x2029)}
)
"""Escapes characters that end a line or move a terminal's cursor."""
_TRACEBACK_INDENT = "    "
"""Starts each line of a traceback; no record starts with it."""


class SecretMaskingFormatter(logging.Formatter):
    """Formats a record as one line, and a traceback as lines that cannot be mistaken for records.

    Secrets are masked everywhere, including in the text of exceptions.
    """

    def __init__(self, secrets: Sequence[str]) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
        self._secrets = sorted(
            (secret for secret in secrets if len(secret) >= MIN_SECRET_LENGTH), key=len, reverse=True
        )

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        """Formats a record's own line."""
        return self._masked(super().formatMessage(record)).translate(_ONE_LINE)

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
            return super().format(record)
        finally:
            record.exc_text = cached

    def _further_lines(self, text: str) -> str:
        return "\n".join(_TRACEBACK_INDENT + line.translate(_ONE_LINE) for line in self._masked(text).split("\n"))

    def _masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


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


def configure_logging(level: str, secrets: Sequence[str]) -> None:
    """Sends records of `level` and above to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(SecretMaskingFormatter(secrets))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)
