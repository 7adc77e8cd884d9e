"""Jobs executed on a real repository and a real store, with a scripted editor and a scripted host of pull requests."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from support.fakes.job_ports import FakePullRequests, ScriptedEditor, no_checks, no_leaks
from support.worlds.jobserver_world import KEY, git, jobs_in, make_bare, push_to, stored_log, until

from bot.jobapi.models import AgentJob, Changes, JobDetails, Mode, PullRequestDetails, Requester, Status
from bot.jobserver.leaks.own_secrets import OwnSecrets
from bot.jobserver.leaks.scan import ChangeScan
from bot.jobserver.pipeline.budget import Spending
from bot.jobserver.pipeline.job_folders import JobFolders
from bot.jobserver.pipeline.job_runner import JobRunner
from bot.jobserver.pipeline.pipeline import Pipeline
from bot.jobserver.pipeline.progress import Asking
from bot.jobserver.pipeline.retention import JobCleanup
from bot.jobserver.pipeline.tools import Check, Tools
from bot.jobserver.repository.allowed_paths import AllowedPaths
from bot.jobserver.repository.git import Git
from bot.jobserver.repository.git_repository import GitRepository
from bot.jobserver.repository.mirror import Mirror
from bot.jobserver.repository.working_copy import ChangeLimits
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.settings.server import TokenBudget
from bot.jobserver.store.claims import Worker
from bot.jobserver.store.database import Database
from bot.jobserver.store.files import FileStore
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.jobs import JobStore
from bot.jobserver.store.proposals import ProposalStore
from bot.jobserver.store.records import Choices, JobTemplate, PromptRequest
from bot.jobserver.store.uploads import UploadLimits, UploadStore

TEMPLATE = JobTemplate("docs", "main", "fake")


@dataclass(frozen=True)
class Secrets:
    """What the server knows, and whether it scans changes, in a real process."""

    known: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    time_limit: float = 60.0
    are_looked_for: bool = True


class MovedClock:
    """The time, `ahead` of the real one."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


class ExecutorWorld:
    """`bare` is the repository; `now` can be moved."""

    def __init__(
        self,
        tmp_path: Path,
        database: Database,
        now: MovedClock,
        editor: ScriptedEditor,
        check: Check,
        *,
        allowed: AllowedPaths,
        secrets: Secrets,
        budget: TokenBudget,
        question_time_limit: float,
        like: "ExecutorWorld | None",
    ) -> None:
        self.now = now
        self.database = database
        self.bare: Path = like.bare if like else make_bare(tmp_path / "docs.git", {"docs/start.md": "# Start\n"})
        self.data = tmp_path / "data"
        self.data.mkdir()
        self.editor = editor
        self.pull_requests: FakePullRequests = like.pull_requests if like else FakePullRequests()
        git_of = Git.for_settings(JobServerSettings(repository=str(self.bare), api_key=KEY))
        mirror = Mirror(git_of, self.data / "mirror.git")
        limits = ChangeLimits(max_files=100, max_file_bytes=10_000, allowed=allowed)
        self.repository = GitRepository(mirror, "main", limits)
        masking = OwnSecrets(secrets.known)
        scan = ChangeScan(mirror, lambda: masking, secrets.allowed, secrets.time_limit)
        self.folders = JobFolders(self.data)
        self.folders.prepare()
        self.store = JobStore(database, "docs", rate_limit=1_000_000, choices=Choices(tuple(Mode)))
        self.queue = InstructionQueue(database)
        space = UploadLimits(file=1_000_000, space=10_000_000)
        self.files = FileStore(database)
        self.uploads = UploadStore(self.files, "docs", space)
        self.proposals = ProposalStore(database, "docs")
        self.tools = Tools(
            self.repository,
            self.queue,
            self.folders,
            self.files,
            editor,
            check,
            scan.leaks if secrets.are_looked_for else no_leaks,
            lambda: masking,
            self.pull_requests,
            self.proposals,
            Spending(budget, now=self.now),
            Asking(self.queue, masking.known, time_limit=question_time_limit),
        )
        self.runner = self._new_runner()

    def _new_runner(self) -> JobRunner:
        return JobRunner(
            self.queue,
            lambda _: Pipeline(self.tools),
            lambda: {"docs": "fake"},
            max_concurrent_jobs=2,
            arrived=self.tools.asking.arrived,
            retry_pause=0.01,
            worker=Worker(place=str(self.data)),
        )

    async def restarted(self) -> None:
        """Restarts from the tables, as the server does."""
        await self.runner.stop()
        self.runner = self._new_runner()
        await self.runner.start()

    def retention(self, *, archive_after: timedelta, keep_for: timedelta) -> JobCleanup:
        return JobCleanup(self.tools, self.store, self.uploads, _delete_none, archive_after, keep_for)

    async def submit(self, prompt: str, job_id: str | None = None, requester: Requester | None = None) -> AgentJob:
        return await self.submitted(PromptRequest(prompt, job_id, requester=requester))

    async def submitted(self, request: PromptRequest) -> AgentJob:
        job = await self.store.submit(request, TEMPLATE)
        self.runner.wake(job.id)
        return job

    async def ended(self, job_id: str) -> AgentJob:
        async def check() -> AgentJob | None:
            job = await self.store.get(job_id)
            return None if job.status is Status.ACTIVE else job

        return await until(check)

    async def done(self, prompt: str, job_id: str | None = None, requester: Requester | None = None) -> AgentJob:
        """Sends a prompt, and waits for the job's end."""
        return await self.ended((await self.submit(prompt, job_id, requester)).id)

    def log(self, job_id: str) -> str:
        return stored_log(self.data.with_name("jobs.sqlite3"), job_id)

    def subjects(self, branch: str) -> list[str]:
        return git(self.bare, "log", "--format=%s", "--no-merges", f"main..{branch}").splitlines()

    def notes(self, branch: str) -> str:
        return git(self.bare, "show", f"{branch}:notes.md")

    def branches(self) -> set[str]:
        return set(git(self.bare, "for-each-ref", "--format=%(refname:short)", "refs/heads").split())

    def push_files(self, files: Mapping[str, bytes]) -> None:
        """Pushes files to the base branch."""
        push_to(self.bare, "main", files)

    def push_as_somebody(self, branch: str, name: str, text: str) -> None:
        """Pushes a commit of another person to a branch."""
        push_to(self.bare, branch, {name: text.encode()})


def details(job: AgentJob) -> JobDetails:
    assert job.details is not None
    return job.details


def pull_request_of(job: AgentJob) -> PullRequestDetails:
    pull_request = details(job).pull_request
    assert pull_request is not None
    return pull_request


def changes_of(job: AgentJob) -> Changes:
    changes = details(job).changes
    assert changes is not None
    return changes


def partial_files(job: AgentJob) -> int | None:
    """Returns how many files an unfinished instruction left."""
    return job.details.partial_work.files if job.details and job.details.partial_work else None


@asynccontextmanager
async def executing(
    tmp_path: Path,
    editor: ScriptedEditor | None = None,
    check: Check = no_checks,
    allowed: AllowedPaths | None = None,
    secrets: Secrets | None = None,
    *,
    budget: TokenBudget | None = None,
    question_time_limit: float = 60.0,
    url: str = "",
    like: ExecutorWorld | None = None,
) -> AsyncIterator[ExecutorWorld]:
    """`url`: of a database that several share; then the runner is still to be started. `like`: the world whose
    repository, pull requests and clock this one has.
    """
    now = like.now if like else MovedClock()
    async with Database(url or jobs_in(tmp_path), now=now) as database:
        world = ExecutorWorld(
            tmp_path,
            database,
            now,
            editor or ScriptedEditor(),
            check,
            allowed=allowed or AllowedPaths(),
            secrets=secrets or Secrets(are_looked_for=False),
            budget=budget or TokenBudget(),
            question_time_limit=question_time_limit,
            like=like,
        )
        if not url:
            await world.runner.start()
        try:
            yield world
        finally:
            await world.runner.stop()


async def _delete_none(_: timedelta) -> int:
    return 0
