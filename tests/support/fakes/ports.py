"""Fakes at the ports: they keep the ports' promises and record their calls."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import repeat
from typing import TypeVar

from bot.domain.delivery import PrivatePlace, ReactionCall, private_place
from bot.domain.permissions import Refusal
from bot.domain.threads.thread import NO_FOLLOW_UPS, FollowUpCounts, Thread
from bot.errors import ChatNotInChannel, ChatRejected, JobApiError, JobGone
from bot.jobapi.models import Job, JobDetails, PromptCall, PromptFile, Requester, SeenJob
from bot.notices.answers import ActionAnswered, Introduction
from bot.notices.notice import CardChanged, Notice, NoticeContent, Reaction
from bot.notices.questions import RequestRefused

M = TypeVar("M")


def seen_unless(job: Job, unless: bytes) -> SeenJob | None:
    """What a poll returns: only a job's fingerprint matters."""
    fingerprint = repr(job).encode()
    return None if fingerprint == unless else SeenJob(job, fingerprint)


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
    """A job API in memory. `faults` are raised first, in order; those in `after` once the call was carried out.
    `faults_of` are those of one operation alone.

    `prompt_calls` are all creates and messages, `requesters` came with them, `files` with each prompt.
    `outdated_answers` are returned for the next messages instead of the current job. `pictures` are those of all jobs,
    by id. `cancels`, `files_taken` and `modes` are what this job API can do beyond its specification; `uploads` are the
    uploaded files, by id.
    """

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.prompt_calls: list[PromptCall] = []
        self.modes = False
        self.created: list[str] = []
        self.messages: dict[str, list[str]] = defaultdict(list)
        """The messages to each job."""
        self.faults: list[JobApiError] = []
        self.after: list[JobApiError] = []
        self.faults_of: dict[str, list[JobApiError]] = defaultdict(list)
        self.outdated_answers: list[Job] = []
        self.polls = 0
        self.requesters: list[Requester | None] = []
        self.files: dict[str, tuple[PromptFile, ...]] = {}
        self.projects: list[str] = []
        self.cancels = False
        self.cancelled: list[str] = []
        self.discarded: list[str] = []
        self.files_taken = False
        self.uploads: dict[str, bytes] = {}
        self.pictures: dict[str, bytes] = {}
        self.uploaded_to: list[str] = []

    async def create(self, project: str, call: PromptCall) -> Job:
        self.prompt_calls.append(call)
        self.requesters.append(call.requester)
        self._fail(self.faults_of["create"] or self.faults)
        self.files[call.prompt] = tuple(call.files)
        self.projects.append(project)
        job = Job(f"job-{len(self.jobs) + 1}", "active", repository="acme/docs", ref="main", model="m1")
        self.jobs[job.id] = job
        self.created.append(call.prompt)
        self._fail(self.after)
        return job

    async def send_message(self, project: str, job_id: str, call: PromptCall) -> Job:
        self.prompt_calls.append(call)
        self.requesters.append(call.requester)
        self._fail(self.faults_of["send_message"] or self.faults)
        self.files[call.prompt] = tuple(call.files)
        if job_id not in self.jobs:
            raise JobGone("no such job")
        self.messages[job_id].append(call.prompt)
        self.show(job_id, "active")
        self._fail(self.after)
        return self.outdated_answers.pop(0) if self.outdated_answers else self.jobs[job_id]

    async def get(self, project: str, job_id: str) -> Job:
        self.polls += 1
        self._fail(self.faults_of["get"] or self.faults)
        if job_id not in self.jobs:
            raise JobGone("no such job")
        return self.jobs[job_id]

    async def look(self, project: str, job_id: str, *, unless: bytes = b"") -> SeenJob | None:
        return seen_unless(await self.get(project, job_id), unless)

    async def cancel(
        self, project: str, job_id: str, *, idempotency_key: str, requester: Requester | None = None
    ) -> Job:
        self._fail(self.faults)
        if job_id not in self.jobs:
            raise JobGone("no such job")
        self.cancelled.append(job_id)
        if not self.jobs[job_id].ended:
            self.show(job_id, "completed", self.jobs[job_id].pr_link)
        self._fail(self.after)
        return self.jobs[job_id]

    async def discard(self, project: str, job_id: str, *, idempotency_key: str) -> Job:
        self._fail(self.faults)
        if job_id not in self.jobs:
            raise JobGone("no such job")
        self.discarded.append(job_id)
        job = self.jobs[job_id]
        if job.ended and job.details is not None:
            self.jobs[job_id] = replace(job, details=job.details.model_copy(update={"partial_work": None}))
        self._fail(self.after)
        return self.jobs[job_id]

    async def picture(self, project: str, job_id: str, picture_id: str) -> bytes:
        self._fail(self.faults_of["picture"])
        if picture_id not in self.pictures:
            raise JobGone("no such picture")
        return self.pictures[picture_id]

    async def upload(self, project: str, content: bytes, *, name: str, mimetype: str) -> PromptFile:
        self._fail(self.faults)
        file = PromptFile(sha256(content).hexdigest(), name, mimetype)
        self.uploads[file.id] = content
        self.uploaded_to.append(project)
        return file

    def show(self, job_id: str, status: str, link: str | None = None, details: JobDetails | None = None) -> None:
        """From now on the job has this status, link and details."""
        self.jobs[job_id] = replace(self.jobs[job_id], status=status, pr_link=link, details=details)

    @staticmethod
    def _fail(faults: list[JobApiError]) -> None:
        if faults:
            raise faults.pop(0)


class FakePeople:
    """People's names in memory, with a record of the look-ups."""

    def __init__(self) -> None:
        self.state: dict[str, str] = {}
        self.asked: list[str] = []

    async def names(self, ids: Sequence[str]) -> Mapping[str, str]:
        self.asked.extend(ids)
        return {user_id: self.state[user_id] for user_id in ids if user_id in self.state}


class FakeRequesters:
    """Requesters in memory, with a new permalink each time, so that a body that is not kept is noticed."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def requester(self, person_id: str, channel_id: str, thread_ts: str) -> Requester:
        self.asked.append(person_id)
        return Requester(f"The one called {person_id}", person_id, f"https://slack.example/{len(self.asked)}")


@dataclass
class Posted:
    """A message as Slack keeps it."""

    channel_id: str
    ts: str
    thread_ts: str | None
    key: str
    message: NoticeContent

    @property
    def kind(self) -> str:
        """The kind of the message."""
        return self.message.kind


def _works(call: str, thread: Thread | None) -> None:
    """Raises nothing."""


class _Failing:
    """Raises errors by the kind of the call: the next ones in order, or one each time."""

    def __init__(self, every: Exception | None, calls: Mapping[str, Exception | Iterable[Exception]]) -> None:
        self._every = every
        self._calls = {
            call: repeat(errors) if isinstance(errors, Exception) else iter(errors) for call, errors in calls.items()
        }

    def __call__(self, call: str, thread: Thread | None) -> None:
        error = next(self._calls.get(call, iter(())), self._every)
        if error is not None:
            raise error


class FakeChat:
    """Slack in memory. `fault` may raise before a call takes effect, `after` once it has: see `fail` and `lose`."""

    def __init__(self) -> None:
        self.messages: list[Posted] = []
        self.cards: dict[str, Thread] = {}
        self.shown_by_key: dict[str, Thread] = {}
        """By its key, the job as a post shows it."""
        self.follow_ups: dict[str, FollowUpCounts] = {}
        """As shown on each card."""
        self.as_text: set[str] = set()
        """The threads whose card was sent without blocks."""
        self.all_reactions: dict[str, list[Reaction]] = {}
        """The reactions on each message, the newest last."""
        self.uploaded: list[tuple[str, bytes, str]] = []
        """The name of each file, its bytes, and the words for it."""
        self.private: list[NoticeContent] = []
        self.private_places: list[PrivatePlace] = []
        """Where each of these was posted."""
        self.joined = {"C1"}
        self.public = {"C1", "C2"}
        self.calls: list[str] = []
        self.fault: Callable[[str, Thread | None], None] = _works
        self.after: Callable[[str, Thread | None], None] = _works

    def fail(self, every: Exception | None = None, /, **calls: Exception | Iterable[Exception]) -> None:
        """From now on every call fails, or those of these kinds do: always, or the next ones."""
        self.fault = _Failing(every, calls)

    def lose(self, every: Exception | None = None, /, **calls: Exception | Iterable[Exception]) -> None:
        """Likewise, once the call has taken effect."""
        self.after = _Failing(every, calls)

    def recover(self) -> None:
        """From now on all calls work."""
        self.fault = self.after = _works

    async def post_card(
        self, thread: Thread, key: str, *, follow_ups: FollowUpCounts = NO_FOLLOW_UPS, without_blocks: bool = False
    ) -> str:
        self.follow_ups[thread.id] = follow_ups
        self.as_text |= {thread.id} if without_blocks else set()
        return self._post("post_card", thread, Posted(thread.channel_id, "", thread.ts, key, CardChanged()))

    async def update_card(
        self, thread: Thread, *, follow_ups: FollowUpCounts = NO_FOLLOW_UPS, without_blocks: bool = False
    ) -> None:
        self._begin("update_card", thread)
        self.as_text |= {thread.id} if without_blocks else set()
        self.cards[thread.id], self.follow_ups[thread.id] = thread, follow_ups
        self.after("update_card", thread)

    async def post(self, thread: Thread, notice: Notice) -> str:
        if not isinstance(notice.message, Introduction) and (thread.card_ts is None or thread.ts is None):
            raise ChatRejected("card_not_posted")
        posted = Posted(thread.channel_id, "", thread.ts, notice.key, notice.message)
        return self._post("post", thread, posted)

    async def update(self, thread: Thread, notice: Notice, ts: str) -> None:
        self._begin("update", thread)
        self.shown_by_key[notice.key] = thread
        self.after("update", thread)

    async def upload(self, name: str, content: bytes, *, words: str) -> str:
        self.calls.append("upload")
        self.fault("upload", None)
        self.uploaded.append((name, content, words))
        self.after("upload", None)
        return f"F{len(self.uploaded)}"

    async def find(self, thread: Thread, key: str) -> str | None:
        self._begin("find", thread)
        return next((message.ts for message in self.messages if message.key == key), None)

    async def react(self, thread: Thread, message_ts: str, call: ReactionCall) -> None:
        name = "unmark" if call.removes else "mark"
        self._begin(name, thread)
        there = [other for other in self.all_reactions.get(message_ts, []) if other is not call.reaction]
        self.all_reactions[message_ts] = [*there, call.reaction] if name == "mark" else there
        self.after(name, thread)

    @property
    def reactions(self) -> dict[str, Reaction]:
        """Returns the newest reaction on each message."""
        return {message_ts: there[-1] for message_ts, there in self.all_reactions.items() if there}

    async def tell(self, thread: Thread, notice: Notice, *, follow_ups: FollowUpCounts = NO_FOLLOW_UPS) -> None:
        self.calls.append("tell")
        self.fault("tell", thread)
        self.private.append(notice.message)
        self.private_places.append(private_place(thread, notice.message))
        self.after("tell", thread)

    async def join(self, channel_id: str) -> None:
        self.calls.append("join")
        if channel_id not in self.public:
            raise ChatNotInChannel("channel_not_found")
        self.joined.add(channel_id)

    def private_kinds(self) -> list[tuple[str, str]]:
        """Returns the private messages and their recipients, in order."""
        return [(message.about, message.kind) for message in self.private]

    def private_as(self, kind: type[M]) -> list[M]:
        """Returns the private messages of this kind, in order."""
        return [message for message in self.private if isinstance(message, kind)]

    def refusals(self) -> list[tuple[str, Refusal]]:
        """Returns who was refused something, and why, in order."""
        return [(message.person_id, message.refusal) for message in self.private_as(RequestRefused)]

    def answers(self) -> list[str]:
        """Returns the answers to clicks and to replies that are not sent, in order."""
        return [message.answer.stored for message in self.private_as(ActionAnswered)]

    def posted_as(self, kind: type[M]) -> list[M]:
        """Returns the posts of this kind, in order."""
        return [posted.message for posted in self.messages if isinstance(posted.message, kind)]

    def said(self, thread_ts: str | None = None) -> list[str]:
        """Returns the posts in threads, in order."""
        posts = [message for message in self.messages if not isinstance(message.message, CardChanged)]
        return [message.kind for message in posts if thread_ts in {None, message.thread_ts}]

    def _post(self, call: str, thread: Thread, posted: Posted) -> str:
        self._begin(call, thread)
        ts = f"{1_700_000_000 + len(self.messages)}.000100"
        self.messages.append(replace(posted, ts=ts))
        self.shown_by_key[posted.key] = thread
        if call == "post_card":
            self.cards[thread.id] = thread
        self.after(call, thread)
        return ts

    def _begin(self, call: str, thread: Thread) -> None:
        self.calls.append(call)
        self.fault(call, thread)
        if thread.channel_id not in self.joined:
            raise ChatNotInChannel("not_in_channel")
