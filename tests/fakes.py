"""Fakes at the ports: they keep the ports' promises, and remember what they were asked."""

from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from bot.domain.models import Job, Mark, Notice, Thread
from bot.errors import ChatNotInChannel, JobApiError, JobGone


class FakeClock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.time = 1_700_000_000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += seconds


class FakeJobApi:
    """A job API in memory. `faults` are raised first, in turn; those in `after` once the call was carried out."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.created: list[str] = []
        self.messages: dict[str, list[str]] = defaultdict(list)
        self.faults: list[JobApiError] = []
        self.after: list[JobApiError] = []
        self.polls = 0

    async def create(self, project_id: str, prompt: str, *, idempotency_key: str) -> Job:
        self._fail(self.faults)
        job = Job(f"job-{len(self.jobs) + 1}", "active", repository="acme/docs", ref="main", model="m1")
        self.jobs[job.id] = job
        self.created.append(prompt)
        self._fail(self.after)
        return job

    async def send_message(self, project_id: str, job_id: str, prompt: str, *, idempotency_key: str) -> Job:
        self._fail(self.faults)
        if job_id not in self.jobs:
            raise JobGone("no such job")
        self.messages[job_id].append(prompt)
        self.show(job_id, "active")
        self._fail(self.after)
        return self.jobs[job_id]

    async def get(self, project_id: str, job_id: str) -> Job:
        self.polls += 1
        self._fail(self.faults)
        if job_id not in self.jobs:
            raise JobGone("no such job")
        return self.jobs[job_id]

    def show(self, job_id: str, status: str, link: str | None = None) -> None:
        """From now on the job has this status and link."""
        self.jobs[job_id] = replace(self.jobs[job_id], status=status, pr_link=link)

    @staticmethod
    def _fail(faults: list[JobApiError]) -> None:
        if faults:
            raise faults.pop(0)


@dataclass
class Posted:
    """A message as Slack keeps it."""

    channel_id: str
    ts: str
    thread_ts: str | None
    key: str
    what: str
    facts: dict[str, str] = field(default_factory=dict)


class FakeChat:
    """Slack in memory. `fault` may raise before a call takes effect, `after` once it has."""

    def __init__(self) -> None:
        self.messages: list[Posted] = []
        self.cards: dict[str, Thread] = {}
        self.marks: dict[str, Mark] = {}
        self.told: list[tuple[str, str, dict[str, str]]] = []
        self.joined = {"C1"}
        self.public = {"C1", "C2"}
        self.calls: list[str] = []
        self.fault: Callable[[str, Thread | None], None] = lambda call, thread: None
        self.after: Callable[[str, Thread | None], None] = lambda call, thread: None

    async def post_card(self, thread: Thread, key: str, *, plain: bool = False) -> str:
        return self._post("post_card", thread, Posted(thread.channel_id, "", None, key, "card"))

    async def update_card(self, thread: Thread, *, plain: bool = False) -> None:
        self._begin("update_card", thread)
        self.cards[thread.id] = thread
        self.after("update_card", thread)

    async def post(self, thread: Thread, notice: Notice) -> str:
        posted = Posted(thread.channel_id, "", thread.ts, notice.key, notice.what.value, dict(notice.facts))
        return self._post("post", thread, posted)

    async def find(self, thread: Thread, key: str) -> str | None:
        self._begin("find", thread)
        return next((message.ts for message in self.messages if message.key == key), None)

    async def mark(self, thread: Thread, message_ts: str, mark: Mark, *, instead_of: Collection[Mark]) -> None:
        self._begin("mark", thread)
        before = self.marks.get(message_ts)
        assert before in {None, mark, *instead_of}, f"{before} stays beside {mark}"
        self.marks[message_ts] = mark
        self.after("mark", thread)

    async def tell(self, thread: Thread, notice: Notice) -> None:
        self.calls.append("tell")
        self.fault("tell", thread)
        self.told.append((notice.facts["person"], notice.what.value, dict(notice.facts)))
        self.after("tell", thread)

    async def join(self, channel_id: str) -> None:
        self.calls.append("join")
        if channel_id not in self.public:
            raise ChatNotInChannel("channel_not_found")
        self.joined.add(channel_id)

    def said(self, thread_ts: str | None = None) -> list[str]:
        """What was posted in threads, in order."""
        posts = [message for message in self.messages if message.thread_ts is not None]
        return [message.what for message in posts if thread_ts in {None, message.thread_ts}]

    def _post(self, call: str, thread: Thread, posted: Posted) -> str:
        self._begin(call, thread)
        ts = f"{1_700_000_000 + len(self.messages)}.000100"
        self.messages.append(replace(posted, ts=ts))
        if call == "post_card":
            self.cards[thread.id] = thread
        self.after(call, thread)
        return ts

    def _begin(self, call: str, thread: Thread) -> None:
        self.calls.append(call)
        self.fault(call, thread)
        if thread.channel_id not in self.joined:
            raise ChatNotInChannel("not_in_channel")
