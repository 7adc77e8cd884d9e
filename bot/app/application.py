"""The composition root: builds everything from the settings, starts it, and drains it."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial

from aiohttp import web

from bot.app.checks.watch import SetupWatch, WatchTimings
from bot.app.checks.whole import checks_of
from bot.app.code_hosts import webhook_routes
from bot.app.edges import Edges, open_edges, token_refused
from bot.app.metrics import Readings, free_bytes
from bot.app.settings.config import Config
from bot.domain.findings import LastTime
from bot.domain.jobs.poll_pace import Polling
from bot.domain.permissions import PermissionRules
from bot.domain.projects import with_aliases
from bot.errors import ChatError, StoreError
from bot.queue.claims import owner_name
from bot.runtime.clock import SteadyClock
from bot.runtime.health import (
    GRACE_SECONDS,
    LOG_EVERY,
    RECORDING_RECOVERY_SECONDS,
    RECOVERY_SECONDS,
    ComponentStatus,
    Health,
    RecordingHealth,
)
from bot.runtime.http.health_pages import HealthPage, early_health, health_routes, metrics_route
from bot.runtime.process_signals import freeze_startup_objects, run_until_signal
from bot.runtime.rotating_secrets import RotatingSecret
from bot.runtime.secrets.masking import SecretMasker
from bot.runtime.tasks import Supervisor
from bot.scheduler.database_check import PROBE_EVERY, PROBE_RETRY, DatabaseProbe
from bot.scheduler.history_reader import Heartbeat
from bot.scheduler.scheduler import Scheduler, SchedulerEdges, SchedulerSettings
from bot.service import Service
from bot.slack.receiving.history import SlackMissedEvents
from bot.slack.receiving.http_receiver import HttpReceiver
from bot.slack.receiving.modal_opener import Admission
from bot.slack.receiving.slack_app import SlackApp
from bot.slack.receiving.socket_mode_receiver import SocketReceiver
from bot.slack.sending.authorization import APP_TOKEN
from bot.slack.sending.web_api import SlackClient

logger = logging.getLogger(__name__)


class Role(Enum):
    """What a process does. Any number of web and worker processes can share one PostgreSQL database."""

    RUN = "run"
    """Everything."""
    WEB = "web"
    """Receives Slack's signed HTTP requests, records and acknowledges them. With Socket Mode, it only serves the health
    checks."""
    WORKER = "worker"
    """Processes recorded work. With Socket Mode, it also holds the connections to Slack."""

    def receives(self, *, over_socket_mode: bool) -> bool:
        """Whether this process receives Slack's requests."""
        return self is Role.RUN or (self is Role.WORKER) == over_socket_mode


STOP_TIMEOUT = 7.5
"""Seconds that work in progress has to finish when the process is asked to stop."""

_ACKNOWLEDGED_WITHIN = 0.01
"""Seconds after a commit in which Slack gets its acknowledgement. The senders wait for it, or they would delay it."""

Receiver = SocketReceiver | HttpReceiver


@dataclass(frozen=True)
class HealthTimings:
    """How soon an outage is reported, and how soon it counts as over, in seconds.

    `recording_recovery` is for writing people's requests to the database, `recovery` for everything else.
    """

    grace: float = GRACE_SECONDS
    log_every: float = LOG_EVERY
    recovery: float = RECOVERY_SECONDS
    recording_recovery: float = RECORDING_RECOVERY_SECONDS
    probe_every: float = PROBE_EVERY
    probe_retry: float = PROBE_RETRY
    watch: WatchTimings = field(default_factory=WatchTimings)


class App:
    """The bot: call `start`, then `stop`. `owner` identifies this run of the process in the database."""

    def __init__(
        self, config: Config, edges: Edges, role: Role = Role.RUN, *, timings: HealthTimings | None = None
    ) -> None:
        self._edges = edges
        self._role = role
        self._timings = timings or HealthTimings()
        self.owner = owner_name()
        self._supervisor = Supervisor(recovery=self._timings.recovery)
        self._recording_health = RecordingHealth(SteadyClock().monotonic, recovery=self._timings.recording_recovery)
        self._happened: set[LastTime] = set()
        self._began = SteadyClock().monotonic()
        self._projects = config.known_projects.with_channel_aliases(edges.channel_aliases)
        self.service = Service(edges.store, on_commit=self._wake_senders, modes=self._projects.replies)
        self._slack = self._build_slack(config)
        self._scheduler = self._build_scheduler(config) if role is not Role.WEB else None
        self._check = DatabaseProbe(
            edges.store,
            self._recording_health,
            happened=self._happened,
            probe_every=self._timings.probe_every,
            probe_retry=self._timings.probe_retry,
        )
        self._watch = SetupWatch(
            checks_of(config, edges.session),
            secrets=config.secrets,
            token_refused=edges.token_refused,
            monotonic=SteadyClock().monotonic,
            timings=self._timings.watch,
        )
        self.health = self._build_health(config)
        self._metrics = self._build_metrics(config)
        self._metrics_at_port = self._metrics if config.metrics_token is not None else ()
        """Anybody may reach PORT, so they need a token there."""
        socket_mode = config.slack_app_token is not None
        self.receiver = self._build_receiver(config) if role.receives(over_socket_mode=socket_mode) else None
        self._heartbeat = (
            Heartbeat(edges.store, self.owner, self.receiver.listening, on_gap=self.wake) if self.receiver else None
        )
        self._page = self._build_page(config)

    async def start(self) -> None:
        """Connects to Slack and starts to work. Raises CannotStart; call `stop` even then."""
        try:
            if self.receiver is not None:
                await self.receiver.start()
            if self._page is not None:
                await self._page.start()
        except ChatError as error:
            raise token_refused(error, APP_TOKEN) from None
        if self._heartbeat is not None:
            await self._heartbeat.beat()
            self._supervisor.start(type(self._heartbeat).__name__, self._heartbeat.run)
        if self._scheduler is not None:
            self._scheduler.start(self._supervisor)
        for part in (self.health, self._check, self._watch):
            self._supervisor.start(type(part).__name__, part.run)
        if self._role is Role.WEB and self.receiver is None:
            logger.info("SLACK_APP_TOKEN is set: workers receive from Slack, this process only serves health checks")
        logger.info("Pagehand is at work as %s (%s)", self.owner, self._role.value)

    async def stop(self) -> None:
        """Accepts nothing new, finishes or releases work in progress, and closes everything, within 10 s."""
        logger.info("stopping")
        deadline = asyncio.get_running_loop().time() + STOP_TIMEOUT
        self._supervisor.stop_restarting()
        if self.receiver is not None:
            await self.receiver.stop(STOP_TIMEOUT / 3)
        if self._scheduler is not None:
            await self._scheduler.stop(deadline - asyncio.get_running_loop().time())
        await self._supervisor.stop(max(deadline - asyncio.get_running_loop().time(), 0.5))
        await self._release()
        if self._page is not None:
            await self._page.stop()
        await self._edges.closing.aclose()
        logger.info("stopped")

    def wake(self) -> None:
        """Makes every worker of this process look for due rows now."""
        if self._scheduler is not None:
            self._scheduler.wake()

    def _wake_senders(self) -> None:
        if self._scheduler is not None:
            asyncio.get_running_loop().call_later(_ACKNOWLEDGED_WITHIN, self._scheduler.wake_senders)

    async def _release(self) -> None:
        """Releases rows that were claimed but not started, and notes that this process listens no more."""
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(1.0):
                if self._scheduler is not None:
                    await self._edges.store.transact(lambda tx: tx.claims.release(self.owner))
                if self._heartbeat is not None:
                    await self._heartbeat.end()

    def _build_scheduler(self, config: Config) -> Scheduler:
        edges = self._edges
        settings = SchedulerSettings(
            owner=self.owner,
            job_api_timeout=max(each.job_api.timeout for each in config.projects),
            projects=self._projects,
            rules=_permission_rules(config, edges),
            polling=Polling(
                fastest=config.poll_fastest,
                slowest=config.poll_slowest,
                hold_back=edges.timings.hold_back,
                keep_for=config.keep_days * 24 * 3600.0,
            ),
            variables=config,
            recovery=self._timings.recovery,
            masker=SecretMasker(config.secrets),
            slack_limits=edges.timings.slack_limits,
            bot_user_id=edges.identity.bot_user_id,
        )
        scheduler_edges = SchedulerEdges(
            edges.store,
            edges.job_api,
            edges.code_hosts,
            edges.chat,
            edges.people,
            edges.reading,
            edges.modals.views,
            self._heard_for,
            edges.history,
            SlackMissedEvents(self._slack, edges.identity),
            edges.requesters,
            edges.counts.delivered,
        )
        return Scheduler(settings, scheduler_edges)

    def _heard_for(self) -> float:
        """Returns for how many seconds this process has been told of everything without interruption; one that does not
        receive, since it started.
        """
        # Not from the rows of ports.Gaps: they show a gap only afterwards, when a request may have gone out.
        if isinstance(self.receiver, SocketReceiver):
            return self.receiver.health().up_seconds
        return SteadyClock().monotonic() - self._began

    def _build_health(self, config: Config) -> Health:
        warnings = [self._watch.warning, *(secret.warning for secret in config.rotating_secrets)]
        warnings += [self._scheduler.history_reader.warning] if self._scheduler is not None else []
        return Health(self._statuses, warnings, grace=self._timings.grace, log_every=self._timings.log_every)

    def _build_slack(self, config: Config) -> SlackApp:
        edges = self._edges
        admission = Admission(_permission_rules(config, edges), edges.reading, edges.message_context)
        return SlackApp(
            self.service,
            identity=edges.identity,
            message_context=edges.message_context,
            ephemeral_sender=edges.ephemeral_sender,
            members=edges.reading.members,
            modal_edges=replace(edges.modals, admission=admission),
            recording_health=self._recording_health,
            note=self._happened.add,
            acknowledged=edges.counts.acknowledged,
        )

    def _build_receiver(self, config: Config) -> Receiver:
        edges, slack = self._edges, self._slack
        if config.slack_app_token is not None:
            client = SlackClient(
                config.slack_app_token,
                edges.session,
                base_url=f"{config.slack_api_url}/",
                call_seconds=edges.timings.slack_call,
            )
            return SocketReceiver(
                slack,
                client,
                config.slack_app_token,
                supervisor=self._supervisor,
                ping_interval=edges.timings.slack_ping,
            )
        secret = config.slack_signing_secret or RotatingSecret("")
        webhooks = webhook_routes(config.webhook_senders, edges.store)
        pages, note = [*health_routes(self.health), *self._metrics_at_port, *webhooks], self._happened.add
        at = partial(edges.listen, config.host, config.port)
        return HttpReceiver(slack, secret, listen=at, pages=pages, note=note)

    def _build_page(self, config: Config) -> HealthPage | None:
        """Builds a separate health page. A `web` process that receives nothing serves it at PORT, where a hosting
        platform checks that the process is up.
        """
        if self._role is Role.WEB and self.receiver is None:
            address, more = (config.host, config.port), self._metrics_at_port
        elif config.health_port is not None:
            address, more = (config.health_host, config.health_port), self._metrics
        else:
            return None
        return HealthPage(self.health, partial(self._edges.listen, *address), more)

    def _build_metrics(self, config: Config) -> Sequence[web.RouteDef]:
        store, methods = self._edges.store, list(self._edges.timings.slack_limits.methods)
        readings = partial(self._readings, config.database_url.get_secret_value())
        render = self._edges.counts.page(readings, lambda: store.transact(lambda tx: tx.condition.backlog(methods)))
        return [metrics_route(render, config.metrics_token)]

    def _readings(self, database_url: str) -> Readings:
        socket_health = self.receiver.health() if isinstance(self.receiver, SocketReceiver) else None
        is_ready = bool(self.health.readiness()["ok"])
        free = free_bytes(database_url)
        return Readings(is_ready, list(self._statuses()), socket_health, free, self._watch.counts())

    def _statuses(self) -> Iterator[ComponentStatus]:
        if self._scheduler is not None:
            yield from self._scheduler.statuses()
        if isinstance(self.receiver, SocketReceiver):
            down = self.receiver.health().down_seconds
            yield ComponentStatus("slack connection", down, "no connection is open", critical=True)
        yield self._recording_health.status()
        yield self._watch.status()
        yield from self._supervisor.statuses()


async def run(config: Config, role: Role = Role.RUN, *, decorate: Callable[[Edges], None] = lambda _: None) -> None:
    """Runs the bot, or the part that `role` selects, until SIGTERM or Ctrl-C.

    `decorate` may replace edges before the application is built on them.
    """
    await run_until_signal(partial(_start_app, config, role, decorate))


async def _start_app(config: Config, role: Role, decorate: Callable[[Edges], None]) -> App:
    async with early_health(_addresses(config, role)) as listen:
        edges = await open_edges(config)
        edges.listen = listen
        decorate(edges)
        app = App(config, edges, role)
        freeze_startup_objects()
        try:
            await app.start()
        except BaseException:
            await app.stop()
            raise
    return app


def _addresses(config: Config, role: Role) -> Iterator[tuple[str, int]]:
    """Yields the hosts and ports where the process will serve its health checks."""
    if role is Role.WEB or (role is Role.RUN and config.slack_app_token is None):
        yield config.host, config.port
    if config.health_port is not None:
        yield config.health_host, config.health_port


def _permission_rules(config: Config, edges: Edges) -> PermissionRules:
    return PermissionRules(
        edges.identity.team_id,
        allow_guests=config.allow_guests,
        allow_shared_channels=config.allow_shared_channels,
        people=config.allowed_people,
        groups=config.allowed_groups,
        channels=with_aliases(config.allowed_channels, edges.channel_aliases),
        hourly_limit=config.hourly_limit,
    )
