"""What can keep the bot from starting: a Slack that is away or refuses a token, a database with other tables."""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from slack_sdk.web.async_client import AsyncWebClient

from bot.domain.slack_limits import Grant, SlackLimits
from bot.errors import CannotStart, ChatError, ChatUncertain, ChatUnreachable, SchemaMismatch
from bot.ports.transaction import Store
from bot.runtime.backoff import Backoff
from bot.slack.sending.identity import Identity, identify
from bot.store.schema.migration import MIGRATIONS, SchemaState, migrate, schema_state
from bot.store.store import open_store

logger = logging.getLogger(__name__)

BACKOFF = Backoff(first=1.0, longest=30.0)


async def wait_for_identity(client: AsyncWebClient) -> Identity:
    """Asks Slack who we are, again and again while it cannot be reached. Raises CannotStart for a bad token."""
    failures = 0
    while True:
        try:
            return await identify(client)
        except (ChatUnreachable, ChatUncertain) as error:
            failures += 1
            if failures == 1:
                words = "Slack cannot be reached (%s), trying again. Check this machine's network and SLACK_API_URL."
                logger.warning(words, error.reason)
            await asyncio.sleep(BACKOFF.delay(failures))
        except ChatError as error:
            raise token_refused(error, "SLACK_BOT_TOKEN", "OAuth & Permissions") from None


def token_refused(error: ChatError, setting: str, page: str) -> CannotStart:
    """Returns what to do about a token that Slack does not accept. `page` is where the app's settings show it."""
    return CannotStart(
        f"Slack does not accept {setting} ({error.reason}). Check it, and its scopes, on your app's page at "
        f"api.slack.com/apps, under {page}."
    )


async def known_ids(store: Store, channel_ids: Collection[str]) -> Mapping[str, str]:
    """Returns by which ids those channels are known whose id Slack changed, and warns of those that are old."""
    known: dict[str, str] = {}
    for channel_id in sorted(channel_ids):
        ids = await _all_ids(store, channel_id)
        first, newest = ids[0], ids[-1]
        if first != channel_id:
            known[channel_id] = first
        if newest != channel_id:
            logger.warning("The channel %s has the id %s now: please write that into the settings.", channel_id, newest)
    return known


async def newest_id(store: Store, channel_id: str) -> str:
    """Returns the id by which Slack knows a channel now."""
    return (await _all_ids(store, channel_id))[-1]


class SharedBudget:
    """What all processes on one database may call of Slack: bot.slack.sending.web_api.CallBudget."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def take(self, method: str, wanted: int, limits: SlackLimits) -> Grant:
        """See CallBudget."""
        return await self._store.transact(lambda tx: tx.slack_calls.take(method, wanted, limits))

    async def refused(self, method: str, retry_after: float, limits: SlackLimits) -> None:
        """See CallBudget."""
        await self._store.transact(lambda tx: tx.slack_calls.refused(method, "", retry_after, limits))


async def _all_ids(store: Store, channel_id: str) -> Sequence[str]:
    return await store.transact(lambda tx: tx.channel_ids.all_of(channel_id))


async def open_current_store(url: str) -> Store:
    """Opens the database, with the current schema.

    Raises SchemaMismatch where bringing it there is left to `pagehand migrate`, StoreError where the database cannot be
    opened.
    """
    await migrate_at_start(url)
    return await open_store(url)


async def migrate_at_start(url: str, migrations: Path = MIGRATIONS) -> None:
    """Brings a new database, or a SQLite file of an older version, to the current schema.

    Raises SchemaMismatch for an older PostgreSQL database: other processes may be at work on it.
    """
    state = await schema_state(url, migrations)
    if state is SchemaState.EMPTY or (state is SchemaState.OLDER and url.startswith("sqlite")):
        await migrate(url, migrations)
    elif state is SchemaState.OLDER:
        raise SchemaMismatch("The database's tables are older than this Pagehand: run `pagehand migrate` first.")
