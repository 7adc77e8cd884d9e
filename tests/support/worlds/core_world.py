"""The core in one process, driven step by step: due work is done until none is due."""

import math
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from support.fakes.code_hosts import FakeCodeHosts
from support.fakes.ports import FakeChat, FakeClock, FakeJobApi, FakePeople, FakeRequesters
from support.fakes.slack_limits import ANY_NUMBER
from support.fakes.slack_reading import FakeSlackReading
from support.scratch import IN_MEMORY

from bot.domain.delivery import MAX_ATTEMPTS
from bot.domain.jobs.poll_pace import Polling
from bot.domain.permissions import PermissionRules
from bot.domain.projects import ChannelSettings, JobApiAbilities, PostMode, Project, Projects, ReplyMode
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import Action, Person, Reply, RequestKind, WayIn
from bot.domain.threads.thread import Thread
from bot.jobapi.models import JobDetails
from bot.runtime.logging import log_context
from bot.runtime.secrets.masking import SecretMasker
from bot.scheduler.file_uploader import FileUploader
from bot.scheduler.gathering import ContextGatherer, FetchLimits
from bot.scheduler.job_poller import JobPoller
from bot.scheduler.outbox import Outbox
from bot.scheduler.pictures import PATIENCE
from bot.scheduler.pull_request_poller import PullRequestPoller
from bot.scheduler.request_preparer import RequestPreparer
from bot.scheduler.request_sender import RequestSender
from bot.scheduler.rereading import Rereader
from bot.scheduler.settings import SchedulerVariables
from bot.scheduler.worker import Worker, WorkerSettings
from bot.service import Service
from bot.store.store import Store, open_store

ANA = Person("UANA", "T1")
BEN = Person("UBEN", "T1")
EVA = Person("UEVA", "T2")
"""From another workspace."""


_ROWS: dict[type, str] = {
    RequestPreparer: "requests WHERE state IN ('received', 'preparing')",
    Outbox: "notices WHERE true",
    FileUploader: "request_files WHERE true",
    RequestSender: "requests WHERE state IN ('waiting', 'sending')",
    JobPoller: "polls WHERE true",
    PullRequestPoller: "pull_requests WHERE true",
}


@dataclass
class Claim:
    """Work that a worker has claimed, and not carried out yet."""

    world: "CoreWorld"
    worker: Worker[Any]
    item: Any
    at: float

    async def process(self, *, wait: float | None = None) -> None:
        """Carries it out, however late that is."""
        await self.worker.process(self.item, self.at)
        await self.world.wait(wait)


@dataclass(frozen=True)
class ProjectsOfToday(Projects):
    """Projects whose job API can do what it is made to be able to do at any time."""

    today: Callable[[], JobApiAbilities] = JobApiAbilities

    def abilities(self, name: str) -> JobApiAbilities:
        return self.today()


class CoreWorld:
    """The service and the workers, wired as in the application.

    Where something is done, `wait` is how many seconds pass afterwards; 0 means until nothing is due.
    """

    store: Store

    def __init__(self, owner: str = "one") -> None:
        self.clock = FakeClock()
        self.job_api = FakeJobApi()
        self.code_hosts = FakeCodeHosts()
        self.chat = FakeChat()
        self.people = FakePeople()
        self.owner = owner
        self.idempotent = False
        self.tells_pull_requests = False
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
        self.upload_patience = PATIENCE
        self.rows: sqlite3.Connection | None = None
        """Reads the store's file, beside it."""

    def assemble(self, *, max_attempts: int = MAX_ATTEMPTS, **polling_options: Any) -> "CoreWorld":
        """Builds the parts; called again for a restarted process. `max_attempts`: of a notice;
        `polling_options`: those of the job poller.
        """
        variables = self.variables = SchedulerVariables(PAGEHAND_MERGE_SECONDS=self.merge_seconds)
        calls = WorkerSettings(self.owner, self.clock, 30.0, 20.0, on_commit=lambda _: None, variables=variables)
        chat, polling = replace(calls, call_timeout=8.0), Polling(hold_back=self.hold_back)
        given = self.projects
        projects = ProjectsOfToday(given.all, given.channels, given.any_channel, today=self.abilities)
        self.service = Service(self.store, on_commit=lambda: None, modes=self.reply_mode)
        self.rereader = Rereader(
            self.reading, self.service.revise, self.clock, lambda: self.clock.time - self.heard_since
        )
        self.request_preparer = RequestPreparer(
            self.store,
            chat,
            self.rereader,
            ContextGatherer(self.reading.ports, projects.abilities, self.people, self.masker, self.fetch_limits),
            rules=self.rules,
            projects=projects,
            polling=polling,
        )
        self.file_uploader = FileUploader(
            self.store,
            self.reading.ports.files,
            self.job_api,
            replace(calls, lease=60.0),
            polling=polling,
            abilities=projects.abilities,
        )
        self.request_sender = RequestSender(
            self.store,
            self.job_api,
            calls,
            self.rereader,
            polling=polling,
            projects=projects,
            people=self.people,
            masker=self.masker,
            requesters=self.requesters,
        )
        polling_options = {"batch_window": 0.0, "posts": self.post_mode, **polling_options}
        self.job_poller = JobPoller(self.store, self.job_api, calls, polling=polling, **polling_options)
        self.pull_request_poller = PullRequestPoller(self.store, self.code_hosts, calls, posts=self.post_mode)
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
            upload_patience=self.upload_patience,
        )
        return self

    def on(self, store: Store, clock: FakeClock, beside: "CoreWorld | None" = None) -> "CoreWorld":
        """Puts it on a store with its clock, and on the services of a process `beside` it."""
        self.store, self.clock = store, clock
        if beside is not None:
            self.job_api, self.chat, self.reading = beside.job_api, beside.chat, beside.reading
            self.code_hosts = beside.code_hosts
        return self.assemble()

    def configure(self, **settings: object) -> None:
        """Restarts with other values of these attributes."""
        for name, value in settings.items():
            assert hasattr(self, name), name
            setattr(self, name, value)
        self.assemble()

    def count_replies(self, mode: ReplyMode) -> None:
        """Sets whose replies count in all channels."""
        self.configure(projects=Projects(self.projects.all, any_channel=ChannelSettings(replies=mode)))

    def reply_mode(self, channel_id: str) -> ReplyMode:
        """Sets whose replies count in a channel."""
        return self.projects.channel(channel_id).replies

    def post_mode(self, channel_id: str) -> PostMode:
        """Sets what of a job is posted in a channel."""
        return self.projects.posts(channel_id)

    def abilities(self) -> JobApiAbilities:
        """Sets what the job API can do beyond its specification."""
        return JobApiAbilities(
            idempotent=self.idempotent,
            requester=self.requesters is not None,
            cancel=self.job_api.cancels,
            files=self.job_api.files_taken,
            pull_request=self.tells_pull_requests,
            modes=self.job_api.modes,
        )

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
        while sum([await self.step(loop) for loop in self.loops if self.is_due(loop)]):
            pass

    def is_due(self, loop: Worker[Any]) -> bool:
        """Returns whether a worker may find something, in a tenth of the time in which it finds nothing."""
        rows = _ROWS.get(type(loop))
        if self.rows is None or rows is None:
            return True
        one = f"SELECT 1 FROM {rows} AND due_at <= ?"  # noqa: S608 - our own names
        return self.rows.execute(one, [self.clock.time]).fetchone() is not None

    @property
    def loops(self) -> tuple[Worker[Any], ...]:
        """Returns the workers in the order of a round."""
        first = (self.request_preparer, self.outbox, self.file_uploader, self.request_sender)
        return (*first, self.job_poller, self.pull_request_poller)

    async def claim(self, worker: Worker[Any]) -> Claim:
        """Has a worker claim the one thing that is due."""
        at = self.clock.monotonic()
        (item,) = await worker.claim(10)
        return Claim(self, worker, item, at)

    async def start(
        self,
        prompt: str = "Do it",
        *,
        person: Person = ANA,
        channel: str = "C1",
        key: str = "k1",
        wait: float | None = None,
    ) -> None:
        """Runs the slash command; recorded and prepared."""
        await self.ask(NewJob(person, channel, prompt, key, WayIn.COMMAND))
        await self.prepare()
        await self.wait(wait)

    async def ask(self, job: NewJob, *, wait: float | None = None) -> None:
        """Asks for a job; recorded."""
        await self.service.start(job)
        await self.wait(wait)

    async def prepare(self) -> None:
        """Prepares what was received."""
        while self.is_due(self.request_preparer) and await self.step(self.request_preparer):
            pass

    async def wait(self, seconds: float | None) -> None:
        """Lets this much time pass, or works until nothing is due now (0)."""
        if seconds:
            await self.pass_time(seconds)
        elif seconds is not None:
            await self.settle()

    async def pass_time(self, seconds: float) -> None:
        """Advances the time, working whenever something falls due."""
        until, every = self.clock.time + seconds, max(seconds / 20, 1.0)
        while self.clock.time < until:
            self.clock.advance(min(every, until - self.clock.time))
            await self.settle()

    async def started(self, prompt: str = "Do it", *, channel: str = "C1", key: str = "k1") -> str:
        """Starts a job whose card is posted and whose id is known; returns the thread's ts."""
        await self.start(prompt, channel=channel, key=key, wait=0)
        return next(message.ts for message in reversed(self.chat.messages) if message.kind == "card_changed")

    async def show(
        self, status: str, link: str | None = None, details: JobDetails | None = None, *, wait: float | None = None
    ) -> None:
        """The first job has this status, link and details from now on."""
        self.job_api.show("job-1", status, link, details)
        await self.wait(wait)

    async def reply(
        self,
        thread_ts: str,
        text: str,
        at: str,
        person: Person = ANA,
        channel: str = "C1",
        *,
        wait: float | None = None,
    ) -> None:
        """Replies; recorded and prepared."""
        await self.receive(Reply(person, channel, thread_ts, at, text))
        await self.prepare()
        await self.wait(wait)

    async def receive(self, message: Reply, *, wait: float | None = None) -> bool:
        """Has a message recorded; returns whether it is one for Pagehand."""
        is_ours = await self.service.receive(message)
        await self.wait(wait)
        return is_ours

    async def revise(self, edit: Reply, *, wait: float | None = None) -> bool:
        """Has an edit or a deletion recorded; returns whether it is of a message for Pagehand."""
        is_ours = await self.service.revise(edit)
        await self.wait(wait)
        return is_ours

    async def press(
        self,
        kind: RequestKind,
        person: Person,
        argument: str,
        *,
        key: str,
        thread_id: str = "",
        wait: float | None = None,
    ) -> None:
        """Presses a button about a request, or about the job of a thread; recorded and prepared."""
        await self.service.act(Action(person, kind, key, argument=argument, thread_id=thread_id))
        await self.prepare()
        await self.wait(wait)

    async def press_card(
        self,
        kind: RequestKind,
        thread_ts: str,
        person: Person = ANA,
        argument: str = "",
        *,
        key: str,
        wait: float | None = None,
    ) -> None:
        """Presses a button of the card of a job."""
        thread = await self.thread(thread_ts)
        await self.press(kind, person, argument, key=key, thread_id=thread.id, wait=wait)

    async def press_send_again(self, person: Person, request_id: str, *, key: str, wait: float | None = None) -> None:
        """Has a request in doubt sent again."""
        await self.press(RequestKind.SEND_AGAIN, person, request_id, key=key, wait=wait)

    async def press_send_new_words(
        self, person: Person, request_id: str, *, key: str, wait: float | None = None
    ) -> None:
        """Has the edited words of a reply sent."""
        await self.press(RequestKind.SEND_NEW_WORDS, person, request_id, key=key, wait=wait)

    async def thread(self, ts: str, channel: str = "C1") -> Thread:
        """Returns the thread as stored."""
        thread = await self.store.transact(lambda tx: tx.threads.find_by_card(channel, ts))
        assert thread is not None
        return thread

    async def newest(self, ts: str, channel: str = "C1") -> Thread:
        """Returns the newest thread of a job in a Slack thread."""
        thread = await self.store.transact(lambda tx: tx.threads.find_newest(channel, ts))
        assert thread is not None
        return thread


AnyWorld = TypeVar("AnyWorld", bound=CoreWorld)


@asynccontextmanager
async def stored(world: AnyWorld, template: Path) -> AsyncIterator[AnyWorld]:
    """Gives a world its own copy of a SQLite database, and assembles it."""
    with TemporaryDirectory(dir=IN_MEMORY) as directory:
        file = shutil.copy(template, directory)
        world.store = await open_store(f"sqlite:///{file}", clock=world.clock)
        with closing(sqlite3.connect(file)) as world.rows:
            world.assemble()
            yield world
        await world.store.close()
