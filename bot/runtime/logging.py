"""The log: one line an event on standard error, with every known secret masked, tracebacks included."""

import logging
import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

NOISY = ("slack_bolt", "slack_sdk", "aiohttp.access", "aiosqlite", "httpx", "alembic", "asyncio")
"""Libraries that log payloads, people's words, addresses with tickets, or every request; their warnings are enough."""


MIN_SECRET_LENGTH = 4
"""Characters; a shorter password is none, and hiding it would garble every line of the log."""


_ONE_LINE = str.maketrans(
    {chr(code): ascii(chr(code))[1:-1] for code in (*range(32), *range(127, 160), 0x2028, 0x2029)}
)
"""What ends a line, or moves a terminal's cursor, as Python writes it in a string."""
_FURTHER = "    "
"""Begins each line of a traceback: no record begins so."""


class SecretMaskingFormatter(logging.Formatter):
    """One line a record, whatever is in it, and a traceback in lines that cannot be taken for records. Secrets are
    replaced in all of it, so that an exception's text cannot carry one out either.
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
        """Formats where a record was made."""
        return self._further_lines(stack_info)

    def format(self, record: logging.LogRecord) -> str:
        """Formats a record. What another formatter made of its traceback does not count."""
        cached, record.exc_text = record.exc_text, None
        try:
            return super().format(record)
        finally:
            record.exc_text = cached

    def _further_lines(self, text: str) -> str:
        return "\n".join(_FURTHER + line.translate(_ONE_LINE) for line in self._masked(text).split("\n"))

    def _masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


class ThrottledLogger:
    """Logs the same line once in `every` seconds at most, and then how often it was left out: for what any stranger
    can bring about as often as they like.
    """

    def __init__(
        self, target: logging.Logger, *, every: float = 60.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._target = target
        self._every = every
        self._monotonic = monotonic
        self._said: dict[str, tuple[float, int]] = {}

    def warning(self, message: str, *values: object) -> None:
        """Logs a warning; `message` tells what counts as the same line."""
        self._log(logging.WARNING, message, values)

    def error(self, message: str, *values: object, exc_info: BaseException | None = None) -> None:
        """Logs an error, with a traceback where there is an exception."""
        self._log(logging.ERROR, message, values, exc_info)

    def _log(self, level: int, message: str, values: tuple[object, ...], fault: BaseException | None = None) -> None:
        now = self._monotonic()
        at, left_out = self._said.get(message, (-math.inf, 0))
        if now - at < self._every:
            self._said[message] = (at, left_out + 1)
            return
        self._said[message] = (now, 0)
        again = f" ({left_out} more times since)" if left_out else ""
        self._target.log(level, f"{message}%s", *values, again, exc_info=fault)


def configure_logging(level: str, secrets: Sequence[str]) -> None:
    """Sends the log to standard error, from `level` on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(SecretMaskingFormatter(secrets))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)
