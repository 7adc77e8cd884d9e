"""The checks at start-up: Slack is reachable and accepts the token, and the database has the current schema."""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from slack_sdk.web.async_client import AsyncWebClient

from bot.app.checks.slack import SCOPES, scope_findings
from bot.domain.findings import FindingStatus
from bot.errors import CannotStart, ChatError, ChatUncertain, ChatUnreachable, SchemaMismatch
from bot.runtime.backoff import Backoff
from bot.slack.sending.identity import Identity, identify
from bot.slack.sending.scopes import HOW_TO_GRANT, MissingScopes
from bot.slack.sending.tokens import BOT_TOKEN, TokenSetting, refusal
from bot.store.schema.migration import MIGRATIONS, SchemaState, migrate, schema_state
from bot.store.store import Committed, Store, open_store

logger = logging.getLogger(__name__)

BACKOFF = Backoff(first=1.0, longest=30.0)


async def wait_for_identity(client: AsyncWebClient) -> Identity:
    """Asks Slack for the bot's identity, and retries while Slack is unreachable. Raises CannotStart for a bad token."""
    failures = 0
    while True:
        try:
            return await identify(client)
        except (ChatUnreachable, ChatUncertain) as error:
            failures += 1
            if failures == 1:
                message = "Slack cannot be reached (%s); retrying. Check this machine's network and SLACK_API_URL."
                logger.warning(message, error.reason)
            await asyncio.sleep(BACKOFF.delay(failures))
        except ChatError as error:
            raise token_refused(error, BOT_TOKEN) from None


def token_refused(error: ChatError, setting: TokenSetting) -> CannotStart:
    """Returns the error for a token that Slack rejects."""
    return CannotStart(f"{refusal(setting, error.reason)} {setting.where}")


def check_scopes(granted: Collection[str] | None, missing_scopes: MissingScopes, left_out: Collection[str]) -> None:
    """Checks the granted scopes as `pagehand doctor` does, and records those that are missing.

    Raises CannotStart if a required one is missing.
    """
    findings = scope_findings(granted, left_out)
    if granted is None:
        logger.info("%s", " ".join(finding.words for finding in findings))
    faults = [finding for finding in findings if finding.is_fault]
    if any(fault.status is FindingStatus.ERROR for fault in faults):
        named = "\n".join(f"  {fault.found} {fault.why}" for fault in faults)
        raise CannotStart(f"Slack has not granted the app of SLACK_BOT_TOKEN all scopes.\n{named}\n{HOW_TO_GRANT}")
    missing_scopes.add(fault.check.removeprefix(f"{SCOPES}.") for fault in faults)


async def channel_aliases(store: Store, channel_ids: Collection[str]) -> Mapping[str, str]:
    """Maps channel ids that Slack has changed to the ids under which the database knows the channels.

    Logs a warning about each of `channel_ids` that is no longer current.
    """
    aliases: dict[str, str] = {}
    for channel_id in sorted(channel_ids):
        ids = await _all_ids(store, channel_id)
        first, newest = ids[0], ids[-1]
        if first != channel_id:
            aliases[channel_id] = first
        if newest != channel_id:
            logger.warning("The id of channel %s is now %s: please update the settings.", channel_id, newest)
    return aliases


async def newest_id(store: Store, channel_id: str) -> str:
    """Returns a channel's current id in Slack."""
    return (await _all_ids(store, channel_id))[-1]


async def _all_ids(store: Store, channel_id: str) -> Sequence[str]:
    return await store.transact(lambda tx: tx.channel_ids.all_of(channel_id))


async def open_current_store(url: str, *, committed: Committed = lambda _, __: None) -> Store:
    """Opens the database and makes sure that it has the current schema.

    Raises SchemaMismatch if `pagehand migrate` has to run first, StoreError if the database cannot be opened.
    """
    await migrate_at_start(url)
    return await open_store(url, committed=committed)


async def migrate_at_start(url: str, migrations: Path = MIGRATIONS) -> None:
    """Migrates a new database, or a SQLite file of an older version, to the current schema.

    Raises SchemaMismatch for an older PostgreSQL database, because other processes may be using it.
    """
    state = await schema_state(url, migrations)
    if state is SchemaState.EMPTY or (state is SchemaState.OLDER and url.startswith("sqlite")):
        await migrate(url, migrations)
    elif state is SchemaState.OLDER:
        raise SchemaMismatch("The database's tables are older than this version of Pagehand: run `pagehand migrate`.")
