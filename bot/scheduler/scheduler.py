"""The scheduler: all workers, and retention."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from bot.domain.jobs.poll_pace import Polling
from bot.domain.permissions import PermissionRules
from bot.domain.projects import Projects
from bot.domain.slack_limits import SLACK_LIMITS, SlackLimits
from bot.jobapi.settings import MOST_CONNECTIONS
from bot.ports.code_hosts import CodeHosts
from bot.ports.job_api import JobApi, Requesters
from bot.ports.slack import Chat, DisplayNames, HomeViews, MissedEvents, PastMessages, SlackReading
from bot.runtime.clock import SteadyClock
from bot.runtime.health import RECOVERY_SECONDS, ComponentStatus
from bot.runtime.secrets.masking import SecretMasker
from bot.runtime.tasks import Supervisor
from bot.scheduler.file_uploader import READ_SECONDS, FileUploader
from bot.scheduler.gathering import ContextGatherer
from bot.scheduler.history_reader import HistoryReader
from bot.scheduler.home_publisher import HomePublisher
from bot.scheduler.job_poller import JobPoller
from bot.scheduler.outbox import Delivered, Outbox
from bot.scheduler.pull_request_poller import PullRequestPoller
from bot.scheduler.request_preparer import RequestPreparer
from bot.scheduler.request_sender import RequestSender
from bot.scheduler.rereading import HeardFor, Rereader
from bot.scheduler.retention import RetentionSweeper
from bot.scheduler.settings import SchedulerVariables
from bot.scheduler.worker import DueWork, Worker, WorkerSettings
from bot.service import Service
from bot.store.store import Store

LEASE_MARGIN = 10.0
"""Seconds that a claim outlives the longest call made under it."""
CHAT_CALL_TIMEOUT = 14.0
"""Seconds for one call, including the look-up of people whom its text mentions."""
CHAT_LEASE = 30.0
READ_TIMEOUT = 20.0
"""Seconds in which a pull request has to be read, which takes several calls."""


@dataclass(frozen=True)
class SchedulerSettings:
    """The scheduler's settings. Times are in seconds.

    Attributes:
        owner: This process's name in the database, different after each start.
        job_api_timeout: The longest that a call of any job API takes.
        projects: All projects, with the abilities of their job APIs.
        rules: Who may ask for what where.
        polling: How often jobs are polled.
        variables: What the environment says.
        recovery: How long calls have to succeed before an outage is over.
        masker: Masks secrets in the context of requests.
        slack_limits: Slack's rate limits.
        bot_user_id: Our own id in Slack.
    """

    owner: str
    job_api_timeout: float
    projects: Projects
    rules: PermissionRules
    polling: Polling
    variables: SchedulerVariables
    recovery: float = RECOVERY_SECONDS
    masker: SecretMasker = field(default_factory=SecretMasker)
    slack_limits: SlackLimits = SLACK_LIMITS
    bot_user_id: str = ""


@dataclass(frozen=True)
class SchedulerEdges:
    """The ports that the workers use. `heard_for`: for how long Slack's events have come without a gap; `missed`
    handles what is found in Slack's history; `requesters`: for job APIs that accept requesters; `delivered`: see
    Outbox.
    """

    store: Store
    job_api: JobApi
    code_hosts: CodeHosts
    chat: Chat
    people: DisplayNames
    reading: SlackReading
    views: HomeViews
    heard_for: HeardFor
    history: PastMessages
    missed: MissedEvents
    requesters: Requesters | None = None
    delivered: Delivered = lambda _, __: None


class Scheduler:
    """The workers of one process; any number of processes can share one PostgreSQL.

    Each worker claims twice a second even if nothing wakes it. So it finds what other processes record without a LISTEN
    on the database, which connection poolers do not support.
    """

    def __init__(self, settings: SchedulerSettings, edges: SchedulerEdges) -> None:
        clock, store, job_api, timeout = SteadyClock(), edges.store, edges.job_api, settings.job_api_timeout
        chat = WorkerSettings(
            settings.owner,
            clock,
            CHAT_LEASE,
            CHAT_CALL_TIMEOUT,
            self._wake,
            variables=settings.variables,
            recovery=settings.recovery,
        )
        calls = replace(chat, lease=timeout + LEASE_MARGIN, call_timeout=timeout + 1)
        upload = replace(calls, lease=calls.lease + READ_SECONDS, call_timeout=calls.call_timeout + READ_SECONDS)
        polling, projects = settings.polling, settings.projects
        modes, posts = projects.replies, projects.posts
        service = Service(store, on_commit=self.wake, modes=modes)
        rereader = Rereader(edges.reading.versions, service.revise, clock, edges.heard_for)
        sender = RequestSender(
            store,
            job_api,
            calls,
            rereader,
            polling=polling,
            projects=projects,
            people=edges.people,
            masker=settings.masker,
            requesters=edges.requesters,
        )
        gatherer = ContextGatherer(edges.reading, projects.abilities, edges.people, settings.masker)
        preparer = RequestPreparer(
            store, chat, rereader, gatherer, rules=settings.rules, projects=projects, polling=polling
        )
        uploader = FileUploader(
            store, edges.reading.files, job_api, upload, polling=polling, abilities=projects.abilities
        )
        poller = JobPoller(store, job_api, calls, polling=polling, concurrency=MOST_CONNECTIONS, posts=posts)
        outbox = Outbox(
            store,
            edges.chat,
            chat,
            job_api=job_api,
            rules=settings.rules,
            channels=edges.reading.channels,
            modes=modes,
            limits=settings.slack_limits,
            delivered=edges.delivered,
        )
        reader = replace(chat, lease=READ_TIMEOUT + LEASE_MARGIN, call_timeout=READ_TIMEOUT)
        pull_requests = PullRequestPoller(store, edges.code_hosts, reader, posts=posts)
        homes = self._homes = HomePublisher(store, edges.views, chat)
        self.history_reader = HistoryReader(
            store, edges.history, edges.missed, edges.reading.channels, chat, bot_user_id=settings.bot_user_id
        )
        woken: tuple[Worker[Any], ...] = (preparer, uploader, sender, outbox)
        self.workers: tuple[Worker[Any], ...] = (*woken, poller, pull_requests, homes, self.history_reader)
        self._workers_for = dict(zip(DueWork, woken, strict=True))
        self._sender = sender
        self._projects = projects
        self._retention = RetentionSweeper(store, settings.variables)

    def start(self, supervisor: Supervisor) -> None:
        """Starts every worker."""
        for worker in self.workers:
            supervisor.start(type(worker).__name__, worker.run)
        supervisor.start(type(self._retention).__name__, self._retention.run)

    async def stop(self, timeout: float) -> None:  # noqa: ASYNC109 - what is late is cancelled, not the caller
        """Claims nothing more, and gives running work `timeout` seconds to end."""
        await asyncio.gather(*(worker.stop(timeout) for worker in self.workers))

    def wake(self) -> None:
        """Wakes every worker: anything may be due."""
        for worker in self.workers:
            worker.wake()

    def wake_senders(self) -> None:
        """Wakes the workers that handle new requests: a request is prepared or answered before anything is sent, and a
        job is never due at once, so polls wait.
        """
        self._wake(frozenset({DueWork.PREPARE, DueWork.DELIVER}))
        self._homes.wake()

    def _wake(self, works: frozenset[DueWork]) -> None:
        """Wakes the workers that have work now: an empty claim is a transaction, too. Homes, which change with
        everything, follow within the claim interval, as does anything unexpected.
        """
        for work in works:
            self._workers_for[work].wake()

    def statuses(self) -> Iterator[ComponentStatus]:
        """Yields the state of the workers, and of each project's job API."""
        for worker in self.workers:
            yield worker.status()
        for project in self._projects.names:
            yield self._sender.job_api_status(project)
