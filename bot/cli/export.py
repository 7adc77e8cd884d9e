"""`pagehand export` prints the audit trail as JSON lines."""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TextIO

import click

from bot.app.settings.config import passwords_in
from bot.cli.forget import existing_database
from bot.domain.requests.audit import RecordedEntry
from bot.runtime.logging import configure_logging
from bot.store.store import Store, open_store

PAGE_SIZE = 1_000
"""Entries that one transaction reads; no more are in memory at a time."""
_AGO = re.compile(r"(?P<number>[0-9]{1,6})(?P<unit>[hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


@dataclass(frozen=True)
class Period:
    """From `since`, up to but not including `until`; in seconds since the epoch."""

    since: float
    until: float


def period(since: str, until: str, *, now: datetime) -> Period:
    """Parses the two options. Raises click.UsageError if one is malformed, or the period is empty."""
    begin = _moment("--since", since, now).timestamp() if since else 0.0
    end = (_moment("--until", until, now) if until else now + timedelta(seconds=1)).timestamp()
    if begin >= end:
        raise click.UsageError("--since must be before --until.")
    return Period(begin, end)


def export(environ: Mapping[str, str], wanted: Period) -> None:
    """Writes the entries to standard output, oldest first, a line each. Raises ConfigError, StoreError."""
    url = existing_database(environ)
    # The log goes to standard error, so standard output has only the entries.
    configure_logging("WARNING", passwords_in(url))
    try:
        asyncio.run(_export(url, wanted, sys.stdout))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as `head`, has read enough. The interpreter's flush at exit must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _export(url: str, wanted: Period, out: TextIO) -> None:
    store = await open_store(url)
    try:
        async for recorded in entries(store, wanted):
            out.write(line(recorded))
    finally:
        await store.close()


async def entries(store: Store, wanted: Period, *, page_size: int = PAGE_SIZE) -> AsyncIterator[RecordedEntry]:
    """Yields the entries of a period. Each page has its own transaction, so that other work never waits long."""
    since, after = wanted.since, 0
    while True:
        page = await store.transact(
            lambda tx, since=since, after=after: tx.audit.read(  # type: ignore[misc]  # binds the current values
                since=since, until=wanted.until, after=after, limit=page_size
            )
        )
        for recorded in page:
            yield recorded
        if len(page) < page_size:
            return
        since, after = page[-1].at, page[-1].number


def line(recorded: RecordedEntry) -> str:
    """Returns an entry as a line of JSON. Unknown values are null."""
    entry = recorded.entry
    fields = {
        "at": datetime.fromtimestamp(recorded.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "action": str(entry.action),
        **entry.details,
    }
    return json.dumps({name: value or None for name, value in fields.items()}) + "\n"


def _moment(option: str, text: str, now: datetime) -> datetime:
    """Parses `24h`, `7d`, `2w`, a date, or a date and time; in UTC unless it names another time zone."""
    if ago := _AGO.fullmatch(text.strip()):
        try:
            return now - int(ago["number"]) * _UNITS[ago["unit"]]
        except OverflowError:
            return datetime.fromtimestamp(0, UTC)
    try:
        read = datetime.fromisoformat(text.strip())
    except ValueError:
        raise click.UsageError(
            f"{option} {text!r} is not a time: write a date (2026-11-01), a date and time in UTC (2026-11-01T12:30), "
            "or how long ago (24h, 7d, 2w)."
        ) from None
    return read if read.tzinfo else read.replace(tzinfo=UTC)
