"""What the database has about people: `pagehand export` prints the audit trail, `pagehand forget` deletes."""

import asyncio
import json
import logging
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial

import click

from bot.app.settings.config import database_url
from bot.domain.requests.audit import RecordedEntry
from bot.queue.engine import existing_file, passwords_in
from bot.runtime.logging import configure_logging
from bot.store.files import clear_traces
from bot.store.retention import Deleted, Step
from bot.store.store import Store, Transaction, UpkeepTransaction, open_store

logger = logging.getLogger(__name__)

PAGE_SIZE = 1_000
"""Entries that one transaction reads; no more are in memory at a time."""
_AGO = re.compile(r"(?P<number>[0-9]{1,6})(?P<unit>[hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def period(since: str, until: str, *, now: datetime) -> tuple[float, float]:
    """Returns the begin, and the end, which is not included, in seconds since the epoch. Raises click.UsageError if one
    is malformed, or the period is empty.
    """
    begin = _moment("--since", since, now).timestamp() if since else 0.0
    end = (_moment("--until", until, now) if until else now + timedelta(seconds=1)).timestamp()
    if begin >= end:
        raise click.UsageError("--since must be before --until.")
    return begin, end


def export_audit_trail(environ: Mapping[str, str], since: float, until: float) -> None:
    """Writes a period's entries to standard output, oldest first, a line each. Raises ConfigError, StoreError."""
    url = existing_database(environ)
    # The log goes to standard error, so standard output has only the entries.
    configure_logging("WARNING", passwords_in(url))
    try:
        asyncio.run(_export(url, since, until))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as `head`, has read enough. The interpreter's flush at exit must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _export(url: str, since: float, until: float) -> None:
    store = await open_store(url)
    try:
        async for recorded in entries(store, since, until):
            sys.stdout.write(line(recorded))
    finally:
        await store.close()


async def entries(
    store: Store, since: float, until: float, *, page_size: int = PAGE_SIZE
) -> AsyncIterator[RecordedEntry]:
    """Yields the entries of a period. Each page has its own transaction, so that other work never waits long."""
    after = 0
    while True:
        page = await store.transact(
            lambda tx, since=since, after=after: tx.audit.read(  # type: ignore[misc]  # binds the current values
                since=since, until=until, after=after, limit=page_size
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


def forget_all(url: str, *, person_id: str, channel_id: str) -> str:
    """Deletes what the database has about a person or a channel. Returns what was deleted, what is left, and what
    Pagehand cannot delete, as text for the operator.

    The log records how much was deleted, but not about whom.
    """
    configure_logging("INFO", passwords_in(url))
    deleted, left = asyncio.run(_forget(url, person_id, channel_id))
    sentences = [f"Deleted: {in_words(deleted)}." if deleted else "There is nothing to delete."]
    if left:
        sentences.append(
            f"Left: {left} unfinished {'entry' if left == 1 else 'entries'} of other people, which may quote or name "
            "them. Run this again when the work is finished."
        )
    if not asyncio.run(clear_traces(url)):
        sentences.append("The database's files still contain traces, because they are in use. Run this again.")
    files = "" if existing_file(url) else "PostgreSQL's files and logs until their space is reused, "
    sentences.append(f"Out of reach: backups, {files}the job API, its pull requests, and Slack itself.")
    return "\n".join(sentences)


async def _forget(url: str, person_id: str, channel_id: str) -> tuple[Deleted, int]:
    """Returns what was deleted, and how many unfinished rows of other people could not be."""
    store, deleted = await open_store(url), Deleted()
    try:
        while batch := await store.transact(lambda tx: _forget_batch(tx, person_id, channel_id)):
            deleted += batch
        quoted = await _walk(store, lambda tx, after: tx.retention.forget_quoted(after=after, limit=BATCH_SIZE))
        repeated = await _walk(store, lambda tx, after: tx.retention.forget_repeated(after=after, limit=BATCH_SIZE))
        deleted += Deleted(quotations=quoted.changed, notices=repeated.changed)
        if not person_id:
            return deleted, quoted.left
        part = await _walk(
            store, lambda tx, after: tx.retention.forget_taking_part(person_id, after=after, limit=BATCH_SIZE)
        )
        deleted += Deleted(others=part.changed)
        return deleted, quoted.left + part.left
    finally:
        if deleted:
            logger.info("forgotten: %s", in_words(deleted))
        await store.close()


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
    """Returns the counts that are not zero, such as "jobs: 1, requests: 4, early replies: 2"."""
    counts = {
        "jobs": deleted.jobs,
        "requests": deleted.requests,
        "notices": deleted.notices,
        "early replies": deleted.early_replies,
        "quotations": deleted.quotations,
        "other entries": deleted.others,
    }
    return ", ".join(f"{name}: {count}" for name, count in counts.items() if count)
