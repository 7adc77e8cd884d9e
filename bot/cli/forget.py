"""`pagehand forget`."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Protocol

from bot.config import database_url, passwords_in
from bot.ports import HasChannelIds, HasRetention
from bot.runtime.logging import configure_logging
from bot.store.database.url import existing_file
from bot.store.store import open_store
from bot.upkeep_store_ports import Deleted

logger = logging.getLogger(__name__)

BATCH_SIZE = 200
"""Threads, and rows of each table, that are deleted in one transaction."""


class ForgettingTransaction(HasRetention, HasChannelIds, Protocol):
    """What forgetting touches."""


def existing_database(environ: Mapping[str, str]) -> str:
    """DATABASE_URL. Raises ConfigError where it names a file that is not there, or is malformed."""
    url = database_url(environ)
    existing_file(url)
    return url


def forget_all(url: str, *, person_id: str, channel_id: str) -> str:
    """Deletes what there is of a person or a channel; returns how much, in words. The log says how much, not whose."""
    configure_logging("INFO", passwords_in(url))
    return asyncio.run(_forget_in_batches(url, person_id, channel_id))


async def _forget_in_batches(url: str, person_id: str, channel_id: str) -> str:
    store, deleted = await open_store(url), Deleted()
    try:
        while batch := await store.transact(lambda tx: _forget_batch(tx, person_id, channel_id)):
            deleted += batch
        return in_words(deleted)
    finally:
        logger.info("forgotten: %s", in_words(deleted))
        await store.close()


async def _forget_batch(tx: ForgettingTransaction, person_id: str, channel_id: str) -> Deleted:
    if person_id:
        return await tx.retention.forget_person(person_id, limit=BATCH_SIZE)
    deleted = Deleted()
    for each in await tx.channel_ids.all_of(channel_id):
        deleted += await tx.retention.forget_channel(each, limit=BATCH_SIZE)
    return deleted


def in_words(deleted: Deleted) -> str:
    """How much of each kind, as in "1 job, 4 requests, 0 notices, 2 early replies, 3 other entries"."""
    counted = (
        (deleted.jobs, "job", "jobs"),
        (deleted.requests, "request", "requests"),
        (deleted.notices, "notice", "notices"),
        (deleted.early_replies, "early reply", "early replies"),
        (deleted.others, "other entry", "other entries"),
    )
    return ", ".join(f"{count} {one if count == 1 else many}" for count, one, many in counted)
