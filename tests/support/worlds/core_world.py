"""The core in one process, driven step by step: due work is done until none is due."""

import math
from dataclasses import replace
from typing import Any

from support.fakes.ports import FakeChat, FakeClock, FakeJobApi, FakePeople, FakeRequesters
from support.fakes.slack_limits import ANY_NUMBER
from support.fakes.slack_reading import FakeSlackReading

from bot.domain.delivery import MAX_ATTEMPTS
from bot.domain.jobs.poll_pace import Polling
from bot.domain.permissions import PermissionRules
from bot.domain.projects import JobApiAbilities, PostMode, Project, Projects, ReplyMode
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import Action, Person, Reply, RequestKind, WayIn
from bot.domain.threads.thread import Thread
from bot.runtime.logging import log_context
from bot.runtime.secrets.masking import SecretMasker
from bot.scheduler.file_uploader import FileUploader
from bot.scheduler.gathering import FetchLimits
from bot.scheduler.job_poller import JobPoller
from bot.scheduler.outbox import Outbox
from bot.scheduler.request_preparer import PreparerSettings, RequestPreparer
from bot.scheduler.request_sender import RequestSender
from bot.scheduler.rereading import Rereader
from bot.scheduler.settings import SchedulerVariables
from bot.scheduler.worker import Worker, WorkerSettings
from bot.service import Service
from bot.store.store import Store

ANA = Person("UANA", "T1")
BEN = Person("UBEN", "T1")
EVA = Person("UEVA", "T2")
"""From another workspace."""


class CoreWorld:
    """The service and the workers, wired as in the application."""

    store: Store

    def __init__(self, owner: str = "one") -> None:
        self.clock = FakeClock()
        self.job_api = FakeJobApi()
        self.chat = FakeChat()
        self.people = FakePeople()
        self.owner = owner
        self.idempotent = False
        self.merge_seconds = 0.0
        self.reading = FakeSlackReading()
        self.rules = PermissionRules(team_id="T1")
        self.projects = Projects((Project("docs"),))
        self.requesters: FakeRequesters | None = None
        self.masker = SecretMasker()
        self.fetch_limits = FetchLimits()
        self.slack_limits = ANY_NUMBER
        self.hold_back = 0.0
        self.heard_since = -math.inf

    def assemble(self, *, max_attempts: int = MAX_ATTEMPTS, **polling_options: Any) -> "CoreWorld":
        """Builds the parts; called again for a restarted process. `max_attempts`: of a notice;
        `polling_options`: those of the job poller.
        """
        variables = SchedulerVariables(PAGEHAND_MERGE_SECONDS=self.merge_seconds)
        calls = WorkerSettings(self.owner, self.clock, 30.0, 20.0, on_commit=lambda _: None, variables=variables)
        chat, polling = replace(calls, call_timeout=8.0), Polling(hold_back=self.hold_back)
        self.service = Service(self.store, on_commit=lambda: None, modes=self.reply_mode)
        self.rereader = Rereader(
            self.reading, self.service.revise, self.clock, lambda: self.clock.time - self.heard_since
        )
        self.request_preparer = RequestPreparer(
            self.store,
            chat,
            PreparerSettings(self.rules, self.projects, polling, self.fetch_limits, self.masker),
            reading=self.reading.ports,
            rereader=self.rereader,
            job_api=self.job_api,
            people=self.people,
        )
        self.file_uploader = FileUploader(
            self.store, self.reading.ports.files, self.job_api, replace(calls, lease=60.0), polling=polling
        )
        self.request_sender = RequestSender(
            self.store,
            self.job_api,
            calls,
            self.rereader,
            polling=polling,
            abilities=lambda _: self.abilities(),
            people=self.people,
            masker=self.masker,
            requesters=self.requesters,
            posts=self.post_mode,
            projects=self.projects.names,
        )
        polling_options = {"batch_window": 0.0, "posts": self.post_mode, **polling_options}
        self.job_poller = JobPoller(self.store, self.job_api, calls, polling=polling, **polling_options)
        self.outbox = Outbox(
            self.store,
            self.chat,
            chat,
            job_api=self.job_api,
            rules=self.rules,
            channels=self.reading,
            max_attempts=max_attempts,
            modes=self.reply_mode,
            limits=self.slack_limits,
        )
        return self

    def on(self, store: Store, clock: FakeClock, beside: "CoreWorld | None" = None) -> "CoreWorld":
        """Puts it on a store with its clock, and on the job API and the Slack of a process `beside` it."""
        self.store, self.clock = store, clock
        if beside is not None:
            self.job_api, self.chat, self.reading = beside.job_api, beside.chat, beside.reading
        return self.assemble()

    def reply_mode(self, channel_id: str) -> ReplyMode:
        """Sets whose replies count in a channel."""
        return self.projects.channel(channel_id).replies

    def post_mode(self, channel_id: str) -> PostMode:
        """Sets what of a job is posted in a channel."""
        return self.projects.posts(channel_id)

    def abilities(self) -> JobApiAbilities:
        """Sets what the job API can do beyond its specification."""
        return JobApiAbilities(idempotent=self.idempotent, requester=self.requesters is not None)

    def restart(self, owner: str) -> None:
        """Starts a new process on the same database."""
        self.owner = owner
        self.assemble()

    async def step(self, loop: Worker[Any]) -> int:
        """Runs one round of one loop."""
        claimed_at = self.clock.monotonic()
        items = await loop.claim(100)
        for item in items:
            with log_context(loop.subject(item)):
                await loop.process(item, claimed_at)
        return len(items)

    async def settle(self) -> None:
        """Works until nothing is due now."""
        while sum([await self.step(loop) for loop in self.loops]):
            pass

    @property
    def loops(self) -> tuple[Worker[Any], ...]:
        """Returns the workers in the order of a round."""
        return (self.request_preparer, self.outbox, self.file_uploader, self.request_sender, self.job_poller)

    async def start(self, prompt: str = "Do it", *, person: Person = ANA, channel: str = "C1", key: str = "k1") -> None:
        """Runs the slash command; recorded and prepared."""
        await self.service.start(NewJob(person, channel, prompt, key, WayIn.COMMAND))
        await self.prepare()

    async def prepare(self) -> None:
        """Prepares what was received."""
        while await self.step(self.request_preparer):
            pass

    async def pass_time(self, seconds: float) -> None:
        """Advances the time, working whenever something falls due."""
        until, every = self.clock.time + seconds, max(seconds / 20, 1.0)
        while self.clock.time < until:
            self.clock.advance(min(every, until - self.clock.time))
            await self.settle()

    async def started(self, prompt: str = "Do it", *, channel: str = "C1", key: str = "k1") -> str:
        """Starts a job whose card is posted and whose id is known; returns the thread's ts."""
        await self.start(prompt, channel=channel, key=key)
        await self.settle()
        return next(message.ts for message in reversed(self.chat.messages) if message.kind == "card_changed")

    async def reply(self, thread_ts: str, text: str, at: str, person: Person = ANA, channel: str = "C1") -> None:
        """Replies; recorded and prepared."""
        await self.service.receive(Reply(person, channel, thread_ts, at, text))
        await self.prepare()

    async def press(self, kind: RequestKind, person: Person, argument: str, *, key: str, thread_id: str = "") -> None:
        """Presses a button about a request, or about the job of a thread; recorded and prepared."""
        await self.service.act(Action(person, kind, key, argument=argument, thread_id=thread_id))
        await self.prepare()

    async def press_send_again(self, person: Person, request_id: str, *, key: str) -> None:
        """Has a request in doubt sent again."""
        await self.press(RequestKind.SEND_AGAIN, person, request_id, key=key)

    async def press_send_new_words(self, person: Person, request_id: str, *, key: str) -> None:
        """Has the edited words of a reply sent."""
        await self.press(RequestKind.SEND_NEW_WORDS, person, request_id, key=key)

    async def thread(self, ts: str, channel: str = "C1") -> Thread:
        """Returns the thread as stored."""
        thread = await self.store.transact(lambda tx: tx.threads.find_by_card(channel, ts))
        assert thread is not None
        return thread
