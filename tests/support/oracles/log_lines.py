"""The log lines of some work, as programs read them."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bot.runtime.logging import JsonFormatter

Lines = list[dict[str, Any]]


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: Lines = []
        self.setFormatter(JsonFormatter([]))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(self.format(record)))


@contextmanager
def log_lines(level: int = logging.INFO) -> Iterator[Lines]:
    """Collects Pagehand's log records in this block, at this level and above."""
    logger, collector = logging.getLogger("bot"), _Collector()
    before = logger.level
    logger.addHandler(collector)
    logger.setLevel(level)
    try:
        yield collector.lines
    finally:
        logger.removeHandler(collector)
        logger.setLevel(before)
