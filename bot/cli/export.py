"""`pagehand export`: the audit trail as JSON lines."""

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
from bot.ports.transaction import Store
from bot.runtime.logging import configure_logging
from bot.store.store import open_store

PAGE_SIZE = 1_000
"""Entries that are read in one transaction, and in memory at a time."""
_AGO = re.compile(r"(?P<number>[0-9]{1,6})(?P<unit>[hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


@dataclass(frozen=True)
class Period:
    """From `since` on, and before `until`; in seconds since the epoch."""

    since: float
    until: float


def period(since: str, until: str, *, now: datetime) -> Period:
    """Reads both ends as people write them. Raises click.UsageError where one cannot be read."""
    begin = _moment("--since", since, now).timestamp() if since else 0.0
    end = (_moment("--until", until, now) if until else now + timedelta(seconds=1)).timestamp()
    if begin >= end:
        raise click.UsageError("--since has to be before --until.")
    return Period(begin, end)


def export(environ: Mapping[str, str], wanted: Period) -> None:
    """Writes a line for each entry to standard output, oldest first. Raises ConfigError, StoreError."""
    url = existing_database(environ)
    # The log goes to standard error: standard output has the entries alone.
    configure_logging("WARNING", passwords_in(url))
    try:
        asyncio.run(_export(url, wanted, sys.stdout))
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads, `head` say, has read enough. What is still to be written must not fail at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _export(url: str, wanted: Period, out: TextIO) -> None:
    store = await open_store(url)
    try:
        async for recorded in entries(store, wanted):
            out.write(line(recorded))
    finally:
        await store.close()


async def entries(store: Store, wanted: Period, *, page_size: int = PAGE_SIZE) -> AsyncIterator[RecordedEntry]:
    """Reads the entries of a time, a page in each transaction, so that nothing waits long for the database."""
    since, after = wanted.since, 0
    while True:
        page = await store.transact(
            lambda tx, since=since, after=after: tx.audit.read(  # type: ignore[misc]  # as they are now
                since=since, until=wanted.until, after=after, limit=page_size
            )
        )
        for recorded in page:
            yield recorded
        if len(page) < page_size:
            return
        since, after = page[-1].at, page[-1].number


def line(recorded: RecordedEntry) -> str:
    """Returns an entry as a line of JSON; what is not known of it is null."""
    entry = recorded.entry
    fields = {
        "at": datetime.fromtimestamp(recorded.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "action": str(entry.action),
        **entry.details,
    }
    return json.dumps({name: value or None for name, value in fields.items()}) + "\n"


def _moment(option: str, text: str, now: datetime) -> datetime:
    """Reads `24h`, `7d`, `2w`, a date, or a date with a time; in UTC unless it says otherwise."""
    if ago := _AGO.fullmatch(text.strip()):
        try:
            return now - int(ago["number"]) * _UNITS[ago["unit"]]
        except OverflowError:
            return datetime.fromtimestamp(0, UTC)
    try:
        read = datetime.fromisoformat(text.strip())
    except ValueError:
        raise click.UsageError(
            f"{option} {text!r} is no time: write a date (2026-11-01), a date and a time in UTC (2026-11-01T12:30), or "
            "how long ago (24h, 7d, 2w)."
        ) from None
    return read if read.tzinfo else read.replace(tzinfo=UTC)
