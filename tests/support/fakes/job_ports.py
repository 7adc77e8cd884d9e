"""Fakes that an instruction's execution uses: an editor, its progress, files, checks, and a host of pull requests."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from bot.codehosts.pull_request import PullRequest
from bot.jobapi.models import CheckResult, CheckStatus, PlanStep, PullRequestState, Requester
from bot.jobserver.editors.interface import EditProgress, EditResult, EditTask
from bot.jobserver.errors import JobServerError
from bot.jobserver.leaks.scan import Suspicion
from bot.jobserver.pull_requests.interface import NewPullRequest, OpenedPullRequest
from bot.jobserver.repository.git_repository import StartingPoint
from bot.jobserver.repository.listings import Snapshot
from bot.jobserver.store.records import Question
from bot.jobserver.usage import Spent

Edit = Callable[[EditTask, EditProgress], Awaitable[EditResult | None]]


class ScriptedEditor:
    """Does what a test says, and keeps its tasks."""

    def __init__(self, edit: Edit | None = None) -> None:
        self.script = edit or append_prompt
        self.tasks: list[EditTask] = []

    async def edit(self, task: EditTask, progress: EditProgress) -> EditResult:
        self.tasks.append(task)
        return await self.script(task, progress) or EditResult(f"Did: {task.prompt}")


async def append_prompt(task: EditTask, _: EditProgress) -> None:
    with (task.workspace.copy / "notes.md").open("a") as stream:
        stream.write(f"{task.prompt}\n")


async def no_checks(
    _before: Snapshot, _after: Snapshot, _changed: Collection[PurePosixPath], _copy: Path
) -> tuple[CheckResult, ...]:
    """Finds no faults."""
    return ()


async def no_leaks(_start: StartingPoint, _commit: str) -> list[Suspicion]:
    """Finds no secrets, without looking."""
    return []


async def word_check(
    _before: Snapshot, after: Snapshot, changed: Collection[PurePosixPath], _copy: Path
) -> tuple[CheckResult, ...]:
    """Finds the word `wrong` in changed pages."""
    problems = tuple(f"{path}: says wrong" for path in changed if b"wrong" in (after.read(path) or b""))
    return (CheckResult(name="words", status=_status(problems), problems=problems),)


def _status(problems: tuple[str, ...]) -> CheckStatus:
    return CheckStatus.FAILED if problems else CheckStatus.PASSED


@dataclass
class FakePullRequests:
    """Keeps pull requests in memory, the newest last."""

    kept: list[OpenedPullRequest] = field(default_factory=list)
    opened: list[NewPullRequest] = field(default_factory=list)
    additions: list[str] = field(default_factory=list)
    outage: JobServerError | None = None
    looks: int = 0
    looking: asyncio.Event = field(default_factory=asyncio.Event)
    """A reading waits for it."""
    refused_extras: tuple[str, ...] = ()
    asked_for_extras: int = 0

    async def find(self, branch: str) -> OpenedPullRequest | None:
        return next((kept for kept in reversed(self.kept) if kept.branch == branch), None)

    async def open(self, new: NewPullRequest) -> OpenedPullRequest:
        if self.outage:
            raise self.outage
        self.opened.append(new)
        number = len(self.opened)
        self.kept.append(OpenedPullRequest(number, f"https://host/pulls/{number}", new.branch, PullRequestState.OPEN))
        return self.kept[-1]

    def picture_link(self, link: str, commit: str, path: str) -> str:
        return f"{link}/{commit}/{path}"

    async def update(self, pull_request: OpenedPullRequest, addition: str) -> None:
        self.additions.append(addition)

    async def read(self, number: int) -> PullRequest:
        self.looks += 1
        await self.looking.wait()
        if self.outage:
            raise self.outage
        found = next(kept for kept in self.kept if kept.number == number)
        return PullRequest(number=number, link=found.link, state=found.state, head="0" * 40)

    async def add_extras(self, pull_request: OpenedPullRequest, requester: Requester | None) -> tuple[str, ...]:
        self.asked_for_extras += 1
        return self.refused_extras

    def end(self, state: PullRequestState) -> None:
        """Merges or closes the newest one."""
        self.kept[-1] = replace(self.kept[-1], state=state)


class FakeProgress:
    """Keeps the progress reported by an editor, in order."""

    def __init__(self) -> None:
        self.plans: list[tuple[PlanStep, ...]] = []
        self.activities: list[str] = []
        self.sessions: list[str] = []
        self.total = Spent()
        self.questions: list[Question] = []
        self.has_asked = asyncio.Event()
        self.reply: str | None = ""
        """The answer; empty: none in time, None: never."""

    def plan(self, steps: Sequence[PlanStep]) -> None:
        self.plans.append(tuple(steps))

    def activity(self, title: str) -> None:
        self.activities.append(title)

    def session(self, session_id: str) -> None:
        self.sessions.append(session_id)

    def spent(self, spent: Spent) -> None:
        self.total += spent

    async def ask(self, question: Question, is_answer: Callable[[str], bool]) -> str | None:
        self.questions.append(question)
        self.has_asked.set()
        if self.reply is None:
            await asyncio.get_running_loop().create_future()
        return self.reply if self.reply and is_answer(self.reply) else None


@dataclass(frozen=True)
class FakeSnapshot:
    """Implements `Snapshot`."""

    files: Mapping[str, str | bytes]

    def paths(self) -> tuple[PurePosixPath, ...]:
        return tuple(sorted(map(PurePosixPath, self.files)))

    def may_hold(self, path: PurePosixPath) -> bool:
        return any(path in {file, *file.parents} for file in map(PurePosixPath, self.files))

    def read(self, path: PurePosixPath) -> bytes | None:
        content = self.files.get(str(path))
        return content.encode() if isinstance(content, str) else content

    def read_all(self, paths: Iterable[PurePosixPath]) -> Iterator[tuple[PurePosixPath, bytes]]:
        yield from ((path, data) for path in paths if (data := self.read(path)) is not None)

    def write_files(self, folder: Path) -> None:
        for name, text in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
