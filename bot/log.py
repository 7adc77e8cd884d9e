"""The log: one line an event on standard error, with every known secret masked, tracebacks included."""

import logging
import sys
from collections.abc import Sequence

NOISY = ("slack_bolt", "slack_sdk", "aiohttp.access", "aiosqlite", "httpx", "alembic", "asyncio")
"""Libraries that log payloads, people's words, addresses with tickets, or every request; their warnings are enough."""


class Masked(logging.Formatter):
    """Replaces secrets in whole records, so that an exception's text can't carry one out either."""

    def __init__(self, secrets: Sequence[str]) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
        self._secrets = sorted((secret for secret in secrets if secret), key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        """Formats a record without its secrets, and on one line unless it has a traceback."""
        text = super().format(record)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def set_up(level: str, secrets: Sequence[str]) -> None:
    """Sends the log to standard error, from `level` on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Masked(secrets))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)
