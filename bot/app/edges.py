"""Opens the edges, Pagehand's connections to the outside: the database, the job APIs, and Slack."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from bot.app.checks.slack import scope_findings
from bot.app.code_hosts import ConfiguredCodeHosts, github_hosts
from bot.app.metrics import Counts, MeasuredJobApi
from bot.app.settings.config import Config
from bot.domain.findings import FindingStatus
from bot.domain.jobs.poll_pace import HOLD_BACK
from bot.domain.slack_limits import SLACK_LIMITS, Budget, Grant, SlackLimits
from bot.errors import CannotStart, ChatError, ChatUncertain, ChatUnreachable, SchemaMismatch
from bot.jobapi.client import HttpJobApi
from bot.jobapi.settings import DEFAULT_PAUSE
from bot.ports.code_hosts import CodeHosts
from bot.ports.job_api import JobApi, Requesters
from bot.ports.slack import Chat, DisplayNames, PastMessages, SlackReading
from bot.queue.migration import Schema, SchemaState
from bot.runtime.backoff import Backoff
from bot.runtime.http.health_pages import Listen, listen_on
from bot.runtime.secrets.masking import SecretMasker
from bot.slack.receiving.connection_keeper import PING_INTERVAL
from bot.slack.receiving.history import SlackCurrentMessages, SlackPastMessages
from bot.slack.receiving.modal_opener import ModalEdges
from bot.slack.rendering.message_context import MessageContext
from bot.slack.sending.authorization import BOT_TOKEN, HOW_TO_GRANT, TokenSetting, refusal
from bot.slack.sending.chat import SlackChat
from bot.slack.sending.conversations import Permalinks, SlackChannels, SlackConversations, SlackRequesters
from bot.slack.sending.ephemeral import EphemeralSender
from bot.slack.sending.files import SlackFiles
from bot.slack.sending.identity import Identity, identify
from bot.slack.sending.people import SlackGroups, SlackPeople
from bot.slack.sending.user_directory import SlackMembers, UserDirectory
from bot.slack.sending.views import SlackViews
from bot.slack.sending.web_api import CALL_SECONDS, CallGate, NewestChannelIds, SlackClient, new_session
from bot.store.schema.migration import SCHEMA
from bot.store.store import Committed, Store, open_store

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class EdgeTimings:
    """How the edges are timed, in seconds.

    Attributes:
        slack_call: Timeout of a call to Slack.
        slack_ping: Interval between pings of a Socket Mode connection.
        job_api_pause: Pause in calls for a project when the job API is too busy and sends no Retry-After.
        slack_limits: How often each Slack method may be called.
        hold_back: How long the line about a job's start is held back. If the job ends in that time, only its end is
            posted.
    """

    slack_call: float = CALL_SECONDS
    slack_ping: float = PING_INTERVAL
    job_api_pause: float = DEFAULT_PAUSE
    slack_limits: SlackLimits = SLACK_LIMITS
    hold_back: float = HOLD_BACK


@dataclass
class Edges:
    """The opened edges. A test or an experiment may replace any of them before it builds the application."""

    store: Store
    job_api: JobApi
    code_hosts: CodeHosts
    chat: Chat
    identity: Identity
    session: aiohttp.ClientSession
    ephemeral_sender: EphemeralSender
    message_context: MessageContext
    people: DisplayNames
    reading: SlackReading
    modals: ModalEdges
    history: PastMessages
    requesters: Requesters | None
    closing: contextlib.AsyncExitStack
    timings: EdgeTimings
    counts: Counts
    token_refused: asyncio.Event
    """Set when Slack refuses the bot token."""
    channel_aliases: Mapping[str, str]
    """For each channel in the settings whose id Slack has changed: the id under which the database knows it."""
    listen: Listen = listen_on
    """How the servers for Slack's requests and health checks get their sockets."""


async def open_edges(
    config: Config, timings: EdgeTimings | None = None, *, new_client: Callable[..., SlackClient] = SlackClient
) -> Edges:
    """Opens the database, asks Slack for the bot's identity, and creates the clients; those of Slack by `new_client`.

    Raises StoreError, SchemaMismatch, CannotStart. Their messages say what to do.
    """
    timings = timings or EdgeTimings()
    for warning in (*config.warnings, *config.without_effect):
        logger.warning(warning)
    async with contextlib.AsyncExitStack() as stack:
        counts = Counts(timings.slack_limits)
        store = await open_current_store(config.database_url.get_secret_value(), committed=counts.committed)
        stack.push_async_callback(store.close)
        session, refused = new_session(), asyncio.Event()
        stack.push_async_callback(session.close)
        client, yielding_client = (
            new_client(
                config.slack_bot_token,
                session,
                base_url=f"{config.slack_api_url}/",
                channel_ids=NewestChannelIds(lambda channel_id: newest_id(store, channel_id)),
                gate=CallGate(partial(_use_budget, store, timings.slack_limits), timings.slack_limits, yields=yields),
                call_seconds=timings.slack_call,
                token_refused=refused,
                called=counts.slack_called,
            )
            for yields in (False, True)
        )
        identity = await wait_for_identity(client)
        logger.info("this is %s in the workspace %s", identity.bot_user_id, identity.team)
        check_scopes(identity.granted_scopes, config.left_out)
        pause = {"default_pause": timings.job_api_pause}
        job_apis = {each.project.name: (each.id, each.job_api.model_copy(update=pause)) for each in config.projects}
        job_api = HttpJobApi(job_apis)
        stack.push_async_callback(job_api.aclose)
        aliases = await channel_aliases(store, config.known_projects.channel_ids | config.allowed_channels)
        projects = config.known_projects.with_channel_aliases(aliases)
        names = projects.names
        message_context = MessageContext(
            config.command, config.admin, identity.bot_user_id, len(names) > 1, identity.team
        )
        ephemeral_sender = EphemeralSender(client)
        directory, channels, permalinks = UserDirectory(client), SlackChannels(client), Permalinks(client)
        people = SlackPeople(client, directory=directory, channels=channels)
        reading = SlackReading(
            SlackMembers(directory, identity),
            SlackGroups(client),
            channels,
            SlackConversations(client, identity, people),
            SlackCurrentMessages(client, identity, channels),
            SlackFiles(client, session),
        )
        views = SlackViews(client, people, message_context, permalinks, projects=names)
        chat = SlackChat(
            client,
            identity,
            message_context,
            ephemeral_sender,
            people=people,
            settings=projects.channel,
            permalinks=permalinks,
        )
        masker = SecretMasker(config.secrets)
        code_hosts = ConfiguredCodeHosts(
            github_hosts(config.code_hosts, session, masker.hide),
            job_api.pull_request,
            lambda project: projects.abilities(project).pull_request,
            masker.hide,
        )
        return Edges(
            store,
            MeasuredJobApi(job_api, counts),
            code_hosts,
            chat,
            identity,
            session,
            ephemeral_sender,
            message_context,
            people,
            reading,
            ModalEdges(views, reading.conversations, people, projects, masker),
            SlackPastMessages(yielding_client, identity),
            requesters=SlackRequesters(permalinks, people) if projects.any_accepts_requester else None,
            closing=stack.pop_all(),
            timings=timings,
            counts=counts,
            token_refused=refused,
            channel_aliases=aliases,
        )


async def _use_budget(store: Store, limits: SlackLimits, method: str, use: Callable[[Budget], Grant]) -> Grant:
    return await store.transact(lambda tx: tx.slack_calls.with_budget([method], limits, use))


BACKOFF = Backoff(first=1.0, longest=30.0)


async def wait_for_identity(client: AsyncWebClient) -> Identity:
    """Asks Slack for the bot's identity, and retries while Slack is unreachable. Raises CannotStart for a bad token."""
    failures = 0
    while True:
        try:
            return await identify(client)
        except (ChatUnreachable, ChatUncertain) as error:
            failures += error.is_failure
            if failures == 1 and error.is_failure:
                message = "Slack cannot be reached (%s); retrying. Check this machine's network and SLACK_API_URL."
                logger.warning(message, error.reason)
            await asyncio.sleep(max(BACKOFF.delay(failures), error.retry_after or 0.0))
        except ChatError as error:
            raise token_refused(error, BOT_TOKEN) from None


def token_refused(error: ChatError, setting: TokenSetting) -> CannotStart:
    """Returns the error for a token that Slack rejects."""
    return CannotStart(f"{refusal(setting, error.reason)} {setting.where}")


def check_scopes(granted: Collection[str] | None, left_out: Collection[str]) -> None:
    """Checks the granted scopes as `pagehand doctor` does. Raises CannotStart if a required one is missing; the others
    are told by the checks of the running bot.
    """
    findings = scope_findings(granted, left_out)
    if granted is None:
        logger.info("%s", " ".join(finding.words for finding in findings))
    faults = [finding for finding in findings if finding.is_fault]
    if any(fault.status is FindingStatus.ERROR for fault in faults):
        named = "\n".join(f"  {fault.found} {fault.why}" for fault in faults)
        raise CannotStart(f"Slack has not granted the app of SLACK_BOT_TOKEN all scopes.\n{named}\n{HOW_TO_GRANT}")


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
    with contextlib.suppress(SchemaMismatch):  # nearly every start is on the current schema
        return await open_store(url, committed=committed)
    await migrate_at_start(url)
    return await open_store(url, committed=committed)


async def migrate_at_start(url: str, schema: Schema = SCHEMA) -> None:
    """Migrates a new database, or a SQLite file of an older version, to the current schema.

    Raises SchemaMismatch for an older PostgreSQL database, because other processes may be using it.
    """
    state = await schema.state(url)
    if state is SchemaState.EMPTY or (state is SchemaState.OLDER and url.startswith("sqlite")):
        await schema.migrate(url)
    elif state is SchemaState.OLDER:
        raise SchemaMismatch("The database's tables are older than this version of Pagehand: run `pagehand migrate`.")
