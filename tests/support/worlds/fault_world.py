"""An outside world that misbehaves when told to, and processes that die in it, for the state machine.

Time is virtual: nothing sleeps. A process reaches its database, the job API and Slack through `_Reach`, which springs
the traps laid for a call: an error, a crash, or a pause, before or after the call takes effect.
"""

import asyncio
import math
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from support.fakes.code_hosts import FakeCodeHosts
from support.fakes.ports import FakeChat, FakeClock, FakeJobApi, FakeRequesters, Posted, seen_unless
from support.fakes.slack_reading import FakeSlackReading
from support.fakes.virtual_loop import VirtualLoop
from support.oracles.promises import Poll, check, polled_twice
from support.worlds.core_world import CoreWorld

from bot.codehosts.pull_request import Found, NotModified, Reason, Unreadable
from bot.domain.jobs.job import ARCHIVED, NO_DETAILS
from bot.domain.people import Member
from bot.domain.permissions import PermissionRules
from bot.domain.projects import Project, Projects
from bot.domain.threads.thread import NO_FOLLOW_UPS, FollowUpCounts, Thread
from bot.errors import (
    ChatRejected,
    ChatUncertain,
    ChatUnreachable,
    JobApiBusy,
    JobApiRejected,
    JobApiUncertain,
    JobGone,
    StoreError,
)
from bot.jobapi.models import Job, JobDetails, PromptCall, Proposal, ProposalState, Requester, SeenJob
from bot.notices.notice import Notice
from bot.scheduler.pull_request_poller import AT_LEAST
from bot.scheduler.worker import Worker
from bot.slack.sending.user_directory import RIGHTS_KEPT
from bot.store.store import Store, Transaction

T = TypeVar("T")

JOB_LIMIT, CHAT_LIMIT, CODE_HOST_LIMIT = 20.0, 8.0, 20.0
"""Seconds that a call may take, as in core_world."""
MOST_ROUNDS = 60
"""Within which everything due at one moment is done."""


class Crash(BaseException):
    """The process is dead from here on."""


@dataclass
class Pause:
    """A call that hangs until it is resumed."""

    go: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True)
class Trap:
    """What happens to the next call of `edge` (job, chat, store) and `operation` ("": any) at `moment`."""

    edge: str
    operation: str
    moment: str
    does: Exception | type[Crash] | type[Pause]


@dataclass(frozen=True)
class Call:
    """What the job API took: a job to create, or a message to or cancel of one; `step`: when."""

    operation: str
    project: str
    job_id: str
    prompt: str
    key: str
    step: int


class JobApiOutside(FakeJobApi):
    """The job API, with its records by Idempotency-Key: a repeated key gets the first
    answer. `hidden` jobs are 404.

    `calls` are all that took effect; `slow`: a job that gets a message looks as it did before, as if it worked on it
    later, or was at once done.
    """

    def __init__(self, step: Callable[[], int]) -> None:
        super().__init__()
        self._step = step
        self.calls: list[Call] = []
        self.at_work: dict[str, list[tuple[int, bool]]] = defaultdict(list)
        """By job: from which step on it is active, or not."""
        self.project_of: dict[str, str] = {}
        self.slow = False
        self.honours_keys = False
        self.effects: list[str] = []
        self.words: dict[str, str] = {}
        self.bodies: dict[str, tuple[object, ...]] = {}
        self.hidden: set[str] = set()
        self._answers: dict[str, Job] = {}
        self.plans: dict[str, Proposal] = {}
        """The newest plan of each job."""
        self.started: list[tuple[str, str]] = []
        """The plans that were accepted, by which key."""
        self._made: list[Proposal] = []

    async def create(self, project: str, call: PromptCall) -> Job:
        self._same_body(call.idempotency_key, call.prompt, call.requester, tuple(call.files), call.mode, call.model)
        if self.honours_keys and call.idempotency_key in self._answers:
            return self._answers[call.idempotency_key]
        job = await super().create(project, call)
        self.project_of[job.id] = project
        self.at_work[job.id].append((self._step(), True))
        return self._took(job, Call("create", project, job.id, call.prompt, call.idempotency_key, self._step()))

    def _same_body(self, key: str, *body: object) -> None:
        """A server that honours keys may refuse a repeated one with another body."""
        assert self.bodies.setdefault(key, body) == body, f"{key} comes with another body than the one that arrived"

    async def send_message(self, project: str, job_id: str, call: PromptCall) -> Job:
        self._find(project, job_id)
        same = self.words.get(call.idempotency_key) in {None, call.prompt}
        assert same, f"{call.idempotency_key} comes with other words than those that arrived"
        if self.honours_keys and call.idempotency_key in self._answers:
            return self._answers[call.idempotency_key]
        if self.jobs[job_id].status == ARCHIVED:
            raise JobApiRejected("400", words="archived")
        self.words[call.idempotency_key] = call.prompt
        self._same_body(call.idempotency_key, call.prompt, call.requester, tuple(call.files), call.mode, call.model)
        self._decide_on_plan(job_id, call)
        before = self.jobs[job_id]
        job = await super().send_message(project, job_id, call)
        if self.slow:
            self.show(job_id, before.status, before.pr_link, before.details)
            job = self.jobs[job_id]
        self.at_work[job_id].append((self._step(), True))
        return self._took(job, Call("message", project, job_id, call.prompt, call.idempotency_key, self._step()))

    def propose(self, job_id: str) -> None:
        """The agent makes another plan."""
        number = sum(plan.id.startswith(job_id) for plan in self._made) + 1
        self.plans[job_id] = Proposal(id=f"{job_id}/{number}", state=ProposalState.PROPOSED, text="A plan.")
        self._made.append(self.plans[job_id])
        self.show(job_id, "completed")

    def _decide_on_plan(self, job_id: str, call: PromptCall) -> None:
        """A message with the newest plan's id accepts it, and any other asks for another one."""
        plan = self.plans.get(job_id)
        waits = plan is not None and plan.state is ProposalState.PROPOSED
        if call.proposal and not (waits and plan and plan.id == call.proposal and self.jobs[job_id].ended):
            raise JobApiBusy("409", status=409, words="This plan is not the newest, or was accepted.")
        if plan is not None and waits:
            state = ProposalState.ACCEPTED if call.proposal else ProposalState.SUPERSEDED
            self.plans[job_id] = plan.model_copy(update={"state": state})
        if call.proposal:
            self.started.append((call.proposal, call.idempotency_key))

    async def get(self, project: str, job_id: str) -> Job:
        self._find(project, job_id)
        return await super().get(project, job_id)

    async def cancel(
        self, project: str, job_id: str, *, idempotency_key: str, requester: Requester | None = None
    ) -> Job:
        self._find(project, job_id)
        job = await super().cancel(project, job_id, idempotency_key=idempotency_key, requester=requester)
        return self._took(job, Call("cancel", project, job_id, "", idempotency_key, self._step()))

    async def discard(self, project: str, job_id: str, *, idempotency_key: str) -> Job:
        self._find(project, job_id)
        job = await super().discard(project, job_id, idempotency_key=idempotency_key)
        return self._took(job, Call("discard", project, job_id, "", idempotency_key, self._step()))

    def show(self, job_id: str, status: str, link: str | None = None, details: JobDetails | None = None) -> None:
        if job_id in self.plans:
            details = (details or NO_DETAILS).model_copy(update={"proposal": self.plans[job_id]})
        super().show(job_id, status, link, details)
        self.at_work[job_id].append((self._step(), not self.jobs[job_id].ended))

    def _find(self, project: str, job_id: str) -> None:
        """A job is known by its id only within its project."""
        assert self.project_of.get(job_id, project) == project, f"{job_id} was looked for in {project}"
        if job_id in self.hidden:
            raise JobGone("404")

    def _took(self, job: Job, call: Call) -> Job:
        self.calls.append(call)
        self.effects.append(call.key)
        self._answers[call.key] = job
        return job


class SlackOutside(FakeChat):
    """Slack, whose timestamps follow the clock. `archived` channels accept no message."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self._clock = clock
        self._written = 0
        self.archived: set[str] = set()
        self.told_keys: Counter[str] = Counter()
        self.public = {"C1", "C2"}

    def next_ts(self) -> str:
        """Returns a unique timestamp."""
        self._written += 1
        return f"{int(self._clock.time)}.{self._written:06d}"

    async def tell(self, thread: Thread, notice: Notice, *, follow_ups: FollowUpCounts = NO_FOLLOW_UPS) -> None:
        await super().tell(thread, notice, follow_ups=follow_ups)
        self.told_keys[notice.key] += 1

    def _begin(self, call: str, thread: Thread) -> None:
        if thread.channel_id in self.archived and call not in {"find", "tell"}:
            raise ChatRejected("is_archived")
        super()._begin(call, thread)

    def _post(self, call: str, thread: Thread, posted: Posted) -> str:
        super()._post(call, thread, posted)
        self.messages[-1] = replace(self.messages[-1], ts=self.next_ts())
        return self.messages[-1].ts


class SlackReadOutside(FakeSlackReading):
    """Slack for reading, whose processes share what they know of people. `away`: it does not answer."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self._clock = clock
        self._looked_up: dict[str, tuple[float, Member]] = {}
        self.away = False

    async def member(self, person_id: str) -> Member:
        member = await super().member(person_id)
        self._looked_up[person_id] = self._clock.time, member
        return member

    def known_member(self, person_id: str) -> Member | None:
        at, member = self._looked_up.get(person_id, (0.0, None))
        return member if self._clock.time - at < RIGHTS_KEPT else None

    def _ask(self, what: str) -> None:
        if self.away:
            raise ChatUnreachable("no connection")
        super()._ask(what)


class Outside:
    """Everything that outlives a process."""

    def __init__(self, store: Store, clock: FakeClock, loop: VirtualLoop) -> None:
        self.clock = clock
        self.store = store
        self.loop = loop
        self.job_api = JobApiOutside(lambda: self.step)
        self.code_hosts = FakeCodeHosts()
        self.chat = SlackOutside(clock)
        self.reading = SlackReadOutside(clock)
        """None where it stays as it is."""
        self.rules = PermissionRules(team_id="T1")
        self.projects = Projects((Project("docs"),))
        self.hold_back = 0.0
        self.links = True
        """Whether the job API accepts requesters, with a link to the thread."""
        self.traps: list[Trap] = []
        self.polls: dict[str, Poll] = {}
        """The newest poll of each job; while in progress it ends when its time is up."""
        self.claimed: dict[str, int] = {}
        self.sent: dict[str, int] = {}
        """By request: the step in which it was claimed when it first took effect."""
        self.reads: dict[tuple[str, int], float] = {}
        """When each thread's pull request was last read, by the revision, which another link makes a new one."""
        self.in_doubt: set[str] = set()
        """The requests for which a process cannot know whether its call took effect."""
        self.step = 0

    def cards(self) -> list[Posted]:
        """Returns the visible cards, recorded or not."""
        return [message for message in self.chat.messages if message.kind == "card_changed"]

    def trap_for(self, edge: str, operation: str, moment: str) -> Trap | None:
        """Takes the first trap that a call springs."""
        for trap in self.traps:
            if (trap.edge, trap.moment) == (edge, moment) and trap.operation in {"", operation}:
                self.traps.remove(trap)
                return trap
        return None


class Process(CoreWorld):
    """One instance of Pagehand, from its start to its death. Its loops are driven step by step."""

    def __init__(self, outside: Outside, owner: str, *, idempotent: bool, merge_seconds: float = 0.0) -> None:
        super().__init__(owner)
        self.merge_seconds = merge_seconds
        self.outside = outside
        self.clock = outside.clock
        self.idempotent = idempotent
        self.requesters = FakeRequesters() if outside.links else None
        self.hold_back = outside.hold_back
        self.reading, self.rules, self.projects = outside.reading, outside.rules, outside.projects
        self.alive = True
        self.also: tuple[Worker[Any], ...] = ()
        """Other workers of this process."""
        self.in_hand: list[tuple[Worker[Any], Any, float]] = []
        self.under_way: list[asyncio.Task[None]] = []
        self.pauses: list[Pause] = []
        self._paused = asyncio.Event()
        self.store = _StoreReach(self)
        self.job_api = _JobApiReach(self)  # type: ignore[assignment]  # the same interface, for another fake
        self.code_hosts = _CodeHostsReach(self)  # type: ignore[assignment]  # the same
        self.chat = _ChatReach(self)  # type: ignore[assignment]  # the same
        self.assemble()

    @property
    def loops(self) -> tuple[Worker[Any], ...]:
        """See CoreWorld."""
        return (*super().loops, *self.also)

    async def spring(self, edge: str, operation: str, moment: str) -> None:
        """Applies a trap to a call here; nothing happens any more in a dead process."""
        if not self.alive:
            raise Crash
        trap = self.outside.trap_for(edge, operation, moment)
        if trap is None:
            return
        if isinstance(trap.does, Exception):
            trap.does.__context__ = None  # it is raised repeatedly and must not keep old frames alive
            raise trap.does.with_traceback(None)
        if trap.does is Crash:
            self.alive = False
            raise Crash
        pause = Pause()
        self.pauses.append(pause)
        self._paused.set()
        try:
            await pause.go.wait()
        finally:
            if pause in self.pauses:
                self.pauses.remove(pause)
        if not self.alive:
            raise Crash

    async def take(self, loop: Worker[Any], limit: int = 100) -> int:
        """Claims work and keeps it."""
        claimed_at = self.clock.monotonic()
        items = await loop.claim(limit)
        self.in_hand += [(loop, item, claimed_at) for item in items]
        if loop is self.request_sender:
            self.outside.claimed |= {item.request.id: self.outside.step for item in items}
        return len(items)

    async def work(self, index: int) -> None:
        """Starts a piece of claimed work; returns when it ended or hangs."""
        loop, item, claimed_at = self.in_hand.pop(index % len(self.in_hand))
        self._begin(loop, item, claimed_at)
        await self._until_still()

    async def work_side_by_side(self) -> None:
        """Starts all claimed work."""
        in_hand, self.in_hand = self.in_hand, []
        for loop, item, claimed_at in in_hand:
            self._begin(loop, item, claimed_at)
        await self._until_still()

    async def resume(self, index: int) -> None:
        """Resumes a hanging call."""
        self.pauses.pop(index % len(self.pauses)).go.set()
        await self._until_still()

    async def settle(self) -> None:
        """Works until nothing is due now, or it is dead."""
        found: list[object] = []
        for _ in range(MOST_ROUNDS):
            found.clear()
            for loop in self.loops:
                await self.take(loop)
                found += [item for _, item, _ in self.in_hand]
                await self.work_side_by_side()
            if not (found and self.alive):
                return
        raise AssertionError(f"the same is due again and again: {found}")

    async def kill(self) -> None:
        """Kills it at once, wherever it is."""
        self.alive = False
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        mine = {task for task in tasks if task.get_name() == self.owner} | set(self.job_poller._saves)
        for task in mine:
            task.cancel()
        await asyncio.gather(*mine, return_exceptions=True)

    def _begin(self, loop: Worker[Any], item: Any, claimed_at: float) -> None:
        self.under_way.append(asyncio.create_task(self._worked(loop, item, claimed_at), name=self.owner))

    @staticmethod
    async def _worked(loop: Worker[Any], item: Any, claimed_at: float) -> None:
        try:
            await loop.process(item, claimed_at)
        except (StoreError, Crash):
            return

    async def _until_still(self) -> None:
        """Waits until everything in progress has ended or hangs."""
        while len(running := [task for task in self.under_way if not task.done()]) > len(self.pauses):
            self._paused.clear()
            paused = asyncio.create_task(self._paused.wait())
            await asyncio.wait({*running, paused}, return_when=asyncio.FIRST_COMPLETED)
            paused.cancel()
        ended, self.under_way = [task for task in self.under_way if task.done()], running
        for task in ended:
            task.result()


class _StoreReach:
    def __init__(self, process: Process) -> None:
        self._process = process

    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, urgent: bool = False) -> T:
        await self._process.spring("store", "", "before")
        outside = self._process.outside
        result = await outside.loop.in_real_time(outside.store.transact(work, urgent=urgent))
        await self._process.spring("store", "", "after")
        return result

    async def close(self) -> None:
        """The store outlives its processes."""


class _Reach:
    """A process's way to an edge, whose calls spring the traps that are laid for them."""

    def __init__(self, process: Process, edge: str, limit: float, too_late: type[Exception]) -> None:
        self._process = process
        self._edge = edge
        self._limit = limit
        self._too_late = too_late

    async def _call(self, operation: str, effect: Callable[[], Awaitable[T]]) -> T:
        """Makes a call within its limit; one that hung before it took effect is cut off, as a real one would be."""
        clock = self._process.clock
        end = clock.monotonic() + self._limit
        await self._process.spring(self._edge, operation, "before")
        self._check_time(end)
        answer = await effect()
        await self._process.spring(self._edge, operation, "after")
        self._check_time(end)
        return answer

    def _check_time(self, end: float) -> None:
        if self._process.clock.monotonic() >= end:
            raise self._too_late("timeout")


_OPERATIONS = {"create": "create", "send_message": "message", "cancel": "cancel", "discard": "discard"}


class _JobApiReach(_Reach):
    def __init__(self, process: Process) -> None:
        super().__init__(process, "job", JOB_LIMIT, JobApiUncertain)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        outside = self._process.outside
        method: Callable[..., Any] = getattr(outside.job_api, name)
        if name not in _OPERATIONS:
            return method

        async def ask(*arguments: Any, **options: Any) -> Job:
            # Each try of a cancel has its own key, which begins with the request's id.
            key = options.get("idempotency_key")
            request = key.rpartition(".")[0] if key else arguments[-1].idempotency_key

            async def noted() -> Job:
                job: Job = await method(*arguments, **options)
                outside.sent.setdefault(request, outside.claimed[request])
                return job

            try:
                return await self._call(_OPERATIONS[name], noted)
            except JobApiUncertain:
                outside.in_doubt.add(request)
                raise

        return ask

    async def get(self, project: str, job_id: str) -> Job:
        outside = self._process.outside
        now = outside.clock.time
        before, poll = outside.polls.get(job_id), Poll(job_id, now, now + JOB_LIMIT)
        check(polled_twice([*([before] if before else []), poll]))
        outside.polls[job_id] = poll
        try:
            return await self._call("get", lambda: outside.job_api.get(project, job_id))
        finally:
            poll.ended = min(outside.clock.time, now + JOB_LIMIT)

    async def look(self, project: str, job_id: str, *, unless: bytes = b"") -> SeenJob | None:
        return seen_unless(await self.get(project, job_id), unless)


class _CodeHostsReach(_Reach):
    def __init__(self, process: Process) -> None:
        super().__init__(process, "host", CODE_HOST_LIMIT, TimeoutError)

    async def read(self, thread: Thread, link: str, known: Found | None) -> Found | NotModified | Unreadable:
        outside, of = self._process.outside, (thread.id, thread.revision)
        since = outside.clock.time - outside.reads.get(of, -math.inf)
        assert since >= AT_LEAST, f"{link} is read again after {since} s"
        outside.reads[of] = outside.clock.time
        try:
            return await self._call("read", lambda: outside.code_hosts.read(thread, link, known))
        except TimeoutError:
            return Unreadable(Reason.OUT_OF_REACH)


class _ChatReach(_Reach):
    def __init__(self, process: Process) -> None:
        super().__init__(process, "chat", CHAT_LIMIT, ChatUncertain)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Awaitable[Any]] = getattr(self._process.outside.chat, name)

        async def call(*arguments: Any, **options: Any) -> Any:
            operation = name
            if name == "react":
                operation = "unmark" if arguments[-1].removes else "mark"
            return await self._call(operation, lambda: method(*arguments, **options))

        return call
