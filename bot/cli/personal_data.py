"""What the database has about people: `pagehand export` prints the audit trail, `pagehand forget` deletes."""

import asyncio
import json
import logging
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TextIO

import click

from bot.app.settings.config import database_url, passwords_in
from bot.domain.requests.audit import RecordedEntry
from bot.runtime.logging import configure_logging
from bot.store.database.engine import existing_file
from bot.store.database.files import clear_traces
from bot.store.retention import Deleted, Step
from bot.store.store import Store, Transaction, UpkeepTransaction, open_store

logger = logging.getLogger(__name__)

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


def export_audit_trail(environ: Mapping[str, str], wanted: Period) -> None:
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


BATCH_SIZE = 200
"""Threads, and rows of each table, that one transaction deletes."""


def existing_database(environ: Mapping[str, str]) -> str:
    """Returns DATABASE_URL. Raises ConfigError if it is malformed or names a file that does not exist."""
    url = database_url(environ)
    existing_file(url)
    return url


@dataclass(frozen=True)
class Forgotten:
    """What was deleted, and what could not be: `left` counts unfinished rows of other people, and `traces_left` means
    that SQLite's files still contain deleted data.
    """

    deleted: Deleted = field(default_factory=Deleted)
    left: int = 0
    traces_left: bool = False


def forget_all(url: str, *, person_id: str, channel_id: str) -> str:
    """Deletes what the database has about a person or a channel, and returns a summary for the operator.

    The log records how much was deleted, but not about whom.
    """
    configure_logging("INFO", passwords_in(url))
    return summary(asyncio.run(_forget(url, person_id, channel_id)), on_sqlite=existing_file(url) is not None)


async def _forget(url: str, person_id: str, channel_id: str) -> Forgotten:
    store, forgotten = await open_store(url), Forgotten()
    try:
        while batch := await store.transact(lambda tx: _forget_batch(tx, person_id, channel_id)):
            forgotten = replace(forgotten, deleted=forgotten.deleted + batch)
        quoted = await _walk(store, lambda tx, after: tx.retention.forget_quoted(after=after, limit=BATCH_SIZE))
        repeated = await _walk(store, lambda tx, after: tx.retention.forget_repeated(after=after, limit=BATCH_SIZE))
        forgotten = _with(forgotten, Deleted(quotations=quoted.changed, notices=repeated.changed), quoted.left)
        if person_id:
            part = await _walk(
                store, lambda tx, after: tx.retention.forget_taking_part(person_id, after=after, limit=BATCH_SIZE)
            )
            forgotten = _with(forgotten, Deleted(others=part.changed), part.left)
    finally:
        if forgotten.deleted:
            logger.info("forgotten: %s", in_words(forgotten.deleted))
        await store.close()
    return replace(forgotten, traces_left=not await clear_traces(url))


def _with(forgotten: Forgotten, deleted: Deleted, left: int) -> Forgotten:
    return replace(forgotten, deleted=forgotten.deleted + deleted, left=forgotten.left + left)


async def _walk(store: Store, step: Callable[[Transaction, str], Awaitable[Step | None]]) -> Step:
    walked = Step("", 0, 0)
    while taken := await store.transact(partial(lambda after, tx: step(tx, after), walked.last)):
        walked = Step(taken.last, walked.changed + taken.changed, walked.left + taken.left)
    return walked


async def _forget_batch(tx: UpkeepTransaction, person_id: str, channel_id: str) -> Deleted:
    if person_id:
        return await tx.retention.forget_person(person_id, limit=BATCH_SIZE)
    deleted = Deleted()
    for each in await tx.channel_ids.all_of(channel_id):
        deleted += await tx.retention.forget_channel(each, limit=BATCH_SIZE)
    return deleted


def in_words(deleted: Deleted) -> str:
    """Returns the counts that are not zero, such as "1 job, 4 requests, 2 early replies"."""
    counted = (
        (deleted.jobs, "job", "jobs"),
        (deleted.requests, "request", "requests"),
        (deleted.notices, "notice", "notices"),
        (deleted.early_replies, "early reply", "early replies"),
        (deleted.quotations, "request's quotations", "requests' quotations"),
        (deleted.others, "other entry", "other entries"),
    )
    return ", ".join(f"{count} {one if count == 1 else many}" for count, one, many in counted if count)


def summary(forgotten: Forgotten, *, on_sqlite: bool) -> str:
    """Returns what was deleted, what is left, and what Pagehand cannot delete, as text for the operator."""
    sentences = [f"Deleted: {in_words(forgotten.deleted)}." if forgotten.deleted else "There is nothing to delete."]
    if forgotten.left:
        entries = "entry" if forgotten.left == 1 else "entries"
        sentences.append(
            f"Left: {forgotten.left} unfinished {entries} of other people, which may quote or name them. Run this "
            "again when the work is finished."
        )
    if forgotten.traces_left:
        sentences.append("The database's files still contain traces, because they are in use. Run this again.")
    files = "" if on_sqlite else "PostgreSQL's files and logs until their space is reused, "
    sentences.append(f"Out of reach: backups, {files}the job API, its pull requests, and Slack itself.")
    return "\n".join(sentences)
