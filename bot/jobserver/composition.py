"""Composes the job server from its parts according to the settings."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import assert_never

from aiohttp import web
from sqlalchemy import URL

from bot.jobserver.agents.choice import agent_editor
from bot.jobserver.agents.launch import files_below
from bot.jobserver.agents.named import NAMED, agent_for
from bot.jobserver.api import JobApiHandlers
from bot.jobserver.checks.checkers import CheckProgram
from bot.jobserver.checks.documentation_checks import DocumentationChecks
from bot.jobserver.editors.builtin import AGENT, BuiltinEditor
from bot.jobserver.editors.command import CommandEditor, passed_variables
from bot.jobserver.editors.interface import Editor
from bot.jobserver.egress.model_relay import check_budget, relayed_login
from bot.jobserver.egress.proxy import Egress, egress_for
from bot.jobserver.errors import GitError, JobServerError
from bot.jobserver.leaks.own_secrets import KnownValues
from bot.jobserver.leaks.scan import ChangeScan
from bot.jobserver.metrics import RunCounts
from bot.jobserver.pages.handlers import PullRequestPages
from bot.jobserver.pages.reviewers import Gate
from bot.jobserver.pipeline.budget import Spending
from bot.jobserver.pipeline.handover import Handover
from bot.jobserver.pipeline.job_folders import JobFolders
from bot.jobserver.pipeline.job_runner import JobRunner
from bot.jobserver.pipeline.pipeline import Pipeline
from bot.jobserver.pipeline.progress import Asking
from bot.jobserver.pipeline.propose import PullRequestStates, retry_forever
from bot.jobserver.pipeline.retention import JobCleanup
from bot.jobserver.pipeline.tools import Tools
from bot.jobserver.pull_requests.github.github_pull_requests import GitHubPullRequests, connect
from bot.jobserver.pull_requests.interface import PullRequests
from bot.jobserver.pull_requests.local.local_pull_requests import LocalPullRequests
from bot.jobserver.repository.allowed_paths import AllowedPaths
from bot.jobserver.repository.git import Git, short_name
from bot.jobserver.repository.git_repository import GitRepository
from bot.jobserver.repository.mirror import BaseBranch, FirstFetch, Mirror, find_base
from bot.jobserver.repository.working_copy import ChangeLimits
from bot.jobserver.sandbox.choice import MissingSandbox, open_sandbox
from bot.jobserver.sandbox.interface import Sandbox
from bot.jobserver.sandbox.limits import RunLimits
from bot.jobserver.sealing import Sealing
from bot.jobserver.settings import PREFIX, JobServerSettings, repository_protocol
from bot.jobserver.store.database import Database
from bot.jobserver.store.files import FileStore
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.jobs import JobStore
from bot.jobserver.store.proposals import ProposalStore
from bot.jobserver.store.records import JobTemplate
from bot.jobserver.store.uploads import UploadLimits, UploadStore
from bot.runtime.http.health_pages import metrics_route
from bot.runtime.tasks import BackgroundTasks

logger = logging.getLogger(__name__)

_CHECKER_S = 120.0
"""Time limit of the repository's own checkers, which look only at changed pages."""
_OUTAGE_S = 900.0
"""How long a run waits for a database that is away: longer than its restart or failover."""


@dataclass(frozen=True)
class Parts:
    """The request handlers, and the name of the branch that jobs start from."""

    api: JobApiHandlers
    pages: PullRequestPages
    base: str
    metrics: Sequence[web.RouteDef] = ()


class Composition:
    """Builds the parts; `stack` closes them."""

    def __init__(self, settings: JobServerSettings, data: Path, stack: contextlib.AsyncExitStack) -> None:
        self._settings = settings
        self._limits = RunLimits.for_settings(settings)
        self._data = data
        self._stack = stack
        named = settings.agent[0] if settings.agent and settings.agent[0] in NAMED else "other"
        self._counts = RunCounts(named if settings.editor == "agent" else settings.editor)

    async def start(self, public_url: str, *, everybody: str) -> Parts:
        """Starts the background work and returns the request handlers.

        Raises:
            JobServerError: the repository, the sandbox, the agent or a database cannot be used.
        """
        settings = self._settings
        github = await self._stack.enter_async_context(connect(settings))
        git = Git.for_settings(settings, github.credentials if github else None)
        try:
            base = await find_base(git, settings.base_branch, self._data)
        except GitError as error:
            raise JobServerError(f"the repository {settings.repository} cannot be used: {error}") from error
        mirror = Mirror(git, self._data / "mirror.git")
        first_fetch, background = FirstFetch(mirror, base), BackgroundTasks()
        database = await self._stack.enter_async_context(Database(await asyncio.to_thread(self._database_url)))
        local = LocalPullRequests(database, mirror, base=base, public_url=public_url)
        space = UploadLimits(int(settings.max_upload_megabytes * 1e6), int(settings.upload_space_megabytes * 1e6))
        uploads = UploadStore(FileStore(database), space)
        await uploads.take_over(self._data / "uploads")
        at_github = github is not None and settings.pull_requests == "github"
        keeper: GitHubPullRequests | LocalPullRequests = github.pull_requests(base) if github and at_github else local
        jobs = JobStore(database, rate_limit=settings.rate_limit)
        tools = await self._tools(mirror, base, keeper, database.waiting(_OUTAGE_S))
        pipeline = Pipeline(tools)
        runner = JobRunner(
            InstructionQueue(database),
            lambda _: pipeline,
            lambda: [settings.project_id],
            settings.max_concurrent_jobs,
            tools.asking.arrived,
            counts=self._counts,
        )
        self._stack.push_async_callback(runner.stop)
        await runner.start()
        self._stack.push_async_callback(background.cancel)
        background.spawn(first_fetch.run(), name="the mirror's first fetch")
        cleanup = JobCleanup(tools, jobs, uploads, local.delete_ended, settings.archive_after, settings.keep_for)
        background.spawn(cleanup.run(), name="retention")
        background.spawn(retry_forever(tools), name="proposal retries")
        name = short_name(settings.repository)
        shown = name if repository_protocol(settings.repository) == "file" else settings.repository
        states = PullRequestStates(keeper, ProposalStore(database))
        self._stack.push_async_callback(states.stop)
        api = JobApiHandlers(
            settings, jobs, uploads,
            template=lambda: JobTemplate(shown, base.name, settings.shown_model),
            wake=runner.wake, interrupt=runner.interrupt, as_of_now=states.as_of_now,
            pull_requests=keeper, mirror_state=lambda: first_fetch.state,
        )  # fmt: skip
        gate = Gate(settings, public_url=public_url, everybody=everybody)
        pages = PullRequestPages(local, gate, repository=name)

        async def metrics() -> bytes:
            return self._counts.render(await InstructionQueue(database).backlog())

        token = settings.metrics_token
        return Parts(api, pages, base.name, [metrics_route(metrics, token)] if token else ())

    def _database_url(self) -> str:
        """Returns the URL of the database: a file in the data directory unless the settings name another."""
        file, given = self._data / "jobs.sqlite3", self._settings.database_url
        if given is None:
            if any((self._data / "jobs").glob("*")) and not file.exists():
                words = f"restore it, or set {PREFIX}DATABASE_URL if it named their database"
                raise JobServerError(f"{file}, with the jobs of this directory, is missing: {words}")
            return URL.create("sqlite", database=str(file)).render_as_string()
        if file.exists():
            raise JobServerError(f"{file} has jobs that {PREFIX}DATABASE_URL would leave behind: use another directory")
        return given.get_secret_value()

    async def _tools(self, mirror: Mirror, base: BaseBranch, pull_requests: PullRequests, database: Database) -> Tools:
        settings, queue = self._settings, InstructionQueue(database)
        sandbox = await self._sandbox()
        known = await asyncio.to_thread(KnownValues, settings, os.environ)
        folders = JobFolders(self._data, agent_for(settings.agent).caches if settings.editor == "agent" else ())
        await asyncio.to_thread(folders.prepare)
        largest, allowed = int(settings.max_file_megabytes * 1_000_000), AllowedPaths(settings.paths)
        limits = ChangeLimits(settings.max_changed_files, largest, allowed)
        repository, files, handover = GitRepository(mirror, base, limits), FileStore(database), None
        if settings.database_url is not None and settings.session_key is not None:
            sealing = Sealing(settings.session_key)
            handover = Handover(queue, files, folders, repository, sealing, self._not_handed_over)
        return Tools(
            repository,
            queue,
            folders,
            files,
            self._editor(sandbox, lambda text: known().known(text)),
            self._checks(sandbox),
            ChangeScan(mirror, known, settings.allowed_secrets),
            known,
            pull_requests,
            ProposalStore(database),
            Spending(settings.budget, now=_now, today=await queue.tokens_today(), took=self._counts.took),
            Asking(queue, lambda text: known().known(text), time_limit=settings.question_time_limit.total_seconds()),
            takes_faults=settings.editor != "builtin",
            handover=handover,
        )

    def _not_handed_over(self) -> set[PurePosixPath]:
        home = self._settings.agent_home
        return set(files_below(home)) if home else set()

    async def _sandbox(self) -> Sandbox:
        """Opens the sandbox. It may be missing if only the repository's own checkers would use it."""
        try:
            return await open_sandbox(self._settings, self._data)
        except JobServerError as error:
            if self._settings.editor == "builtin" and not self._settings.checks:
                return MissingSandbox(str(error))
            raise

    def _editor(self, sandbox: Sandbox, mask: Callable[[str], str]) -> Editor:
        settings = self._settings
        match settings.editor:
            case "builtin":
                logger.info("the demo's editor does the work, and knows four things; for an agent: %s", AGENT)
                return BuiltinEditor()
            case "agent":
                egress = self._egress()
                return agent_editor(settings, sandbox, os.environ, egress, mask=mask)
            case "command":
                login = relayed_login(settings)
                check_budget(settings, login)
                return CommandEditor(
                    settings.command,
                    sandbox,
                    self._limits,
                    self._egress(),
                    time_limit=settings.time_limit.total_seconds(),
                    passed=passed_variables(settings.pass_environment, os.environ, never=settings.api_key.values),
                    login=login,
                    mask=mask,
                )
            case _:
                assert_never(settings.editor)

    def _egress(self) -> Egress:
        return egress_for(self._settings, self._counts.refused)

    def _checks(self, sandbox: Sandbox) -> DocumentationChecks:
        settings = self._settings
        environment = passed_variables(settings.checks_pass_environment, os.environ, never=settings.api_key.values)
        time_limit = settings.time_limit.total_seconds()
        program = CheckProgram(sandbox, self._limits, self._egress(), time_limit, environment)
        checkers = CheckProgram(sandbox, self._limits, Egress(), min(time_limit, _CHECKER_S))
        return DocumentationChecks(program, checkers, settings.checks)


def _now() -> datetime:
    return datetime.now(UTC)
