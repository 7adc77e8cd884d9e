"""The log: one line an event on standard error, with every known secret masked, tracebacks included."""

import logging
import math
import sys
import time
from collections.abc import Callable, Sequence

NOISY = ("slack_bolt", "slack_sdk", "aiohttp.access", "aiosqlite", "httpx", "alembic", "asyncio")
"""Libraries that log payloads, people's words, addresses with tickets, or every request; their warnings are enough."""


MIN_SECRET_LENGTH = 4
"""Characters; a shorter password is none, and hiding it would garble every line of the log."""


class SecretMaskingFormatter(logging.Formatter):
    """Replaces secrets in whole records, so that an exception's text cannot carry one out either."""

    def __init__(self, secrets: Sequence[str]) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
        self._secrets = sorted(
            (secret for secret in secrets if len(secret) >= MIN_SECRET_LENGTH), key=len, reverse=True
        )

    def format(self, record: logging.LogRecord) -> str:
        """Formats a record without its secrets, and on one line unless it has a traceback."""
        text = super().format(record)
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
