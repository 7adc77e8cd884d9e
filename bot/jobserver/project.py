"""One project of a server: what its jobs, its API and its pages work with, and what goes on beside them."""

import asyncio
import contextlib
import logging
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import assert_never
from urllib.parse import quote

from bot.jobapi.models import Mode
from bot.jobserver.agents.named import NAMED, agent_for
from bot.jobserver.api import ProjectApi
from bot.jobserver.checks.checkers import CheckProgram
from bot.jobserver.checks.documentation_checks import DocumentationChecks
from bot.jobserver.editors.builtin import AGENT, BuiltinEditor
from bot.jobserver.editors.command import CommandEditor, passed_variables
from bot.jobserver.editors.interface import Editor
from bot.jobserver.egress.model_relay import check_budget, relayed_login
from bot.jobserver.egress.proxy import Egress, egress_for
from bot.jobserver.errors import GitError, JobServerError
from bot.jobserver.findings import installed
from bot.jobserver.leaks.own_secrets import KnownValues
from bot.jobserver.leaks.scan import ChangeScan
from bot.jobserver.metrics import RunCounts
from bot.jobserver.pages.handlers import PullRequestPages
from bot.jobserver.pages.reviewers import Gate
from bot.jobserver.pipeline.budget import Spending
from bot.jobserver.pipeline.handover import Handover
from bot.jobserver.pipeline.job_folders import JobFolders
from bot.jobserver.pipeline.pipeline import Pipeline
from bot.jobserver.pipeline.progress import Asking
from bot.jobserver.pipeline.propose import PullRequestStates, retry_forever
from bot.jobserver.pipeline.retention import JobCleanup
from bot.jobserver.pipeline.tools import Tools
from bot.jobserver.pull_requests.github.github_pull_requests import GitHubPullRequests, connect
from bot.jobserver.pull_requests.interface import PullRequests
from bot.jobserver.pull_requests.local.local_pull_requests import LocalPullRequests, pages_of
from bot.jobserver.repository.allowed_paths import AllowedPaths
from bot.jobserver.repository.git import Git, short_name
from bot.jobserver.repository.git_repository import GitRepository
from bot.jobserver.repository.mirror import FirstFetch, Mirror, find_base
from bot.jobserver.repository.working_copy import ChangeLimits
from bot.jobserver.sandbox.choice import MissingSandbox, open_sandbox
from bot.jobserver.sandbox.interface import Sandbox
from bot.jobserver.sandbox.limits import RunLimits
from bot.jobserver.sealing import Sealing
from bot.jobserver.settings import JobServerSettings, repository_protocol
from bot.jobserver.store.database import Database
from bot.jobserver.store.files import FileStore
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.jobs import JobStore
from bot.jobserver.store.proposals import ProposalStore
from bot.jobserver.store.records import Choices, Instruction, JobTemplate, Outcome
from bot.jobserver.store.uploads import UploadLimits, UploadStore
from bot.runtime.tasks import BackgroundTasks

logger = logging.getLogger(__name__)

_CHECKER_S = 120.0
"""Time limit of the repository's own checkers, which look only at changed pages."""
Offers = Sequence[Mapping[str, str]]
"""What each worker offers, by project."""
_OUTAGE_S = 900.0
"""How long a run waits for a database that is away: longer than its restart or failover."""


@dataclass(frozen=True)
class Shared:
    """What the projects of a server share. `data` is its directory; `secrets` are all projects'; `everybody` may merge,
    if it is not empty. Where no agents run, neither they nor a sandbox need to be there.
    """

    data: Path
    database: Database
    counts: RunCounts
    public_url: str
    secrets: Collection[str]
    everybody: str = ""
    runs_agents: bool = True
    mirror_locks: defaultdict[Path, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))


def mirror_of(data: Path, project_id: str) -> Path:
    """Returns the directory of a project's mirror."""
    return data / "mirrors" / f"{quote(project_id, safe='')}.git"


def agent_of(settings: JobServerSettings) -> str:
    """Returns what metrics and health call the agent."""
    named = settings.agent[0] if settings.agent and settings.agent[0] in NAMED else "other"
    return named if settings.editor == "agent" else settings.editor


def needed_by(settings: JobServerSettings) -> str:
    """Returns what a worker has to offer for a project."""
    if not settings.runs_programs:
        return agent_of(settings)
    return f"{agent_of(settings)} {'without a sandbox' if settings.sandbox == 'none' else f'in {settings.sandbox}'}"


def not_offered(offers: Offers, projects: Iterable[JobServerSettings]) -> Iterator[str]:
    """Yields, in words, what projects need and no worker offers."""
    for settings in projects:
        name, needed = settings.project_id, needed_by(settings)
        if not any(offer.get(name) == needed for offer in offers):
            yield f"No worker offers {needed} for project {name}: start pagehand jobworker where that works."


def choices_for(settings: JobServerSettings) -> Choices:
    """Returns what clients may choose. Only a sandbox keeps an agent from changing files."""
    if settings.editor != "agent":
        return Choices(tuple(Mode) if settings.editor == "builtin" else (Mode.EDIT,))
    modes = (Mode.EDIT,) if settings.sandbox == "none" else tuple(Mode)
    return Choices(modes, settings.models, settings.efforts)


@dataclass(eq=False)
class Project:
    """A project that is served. It executes instructions, and what it has open stays so until the last has ended."""

    settings: JobServerSettings
    api: ProjectApi
    pages: PullRequestPages
    tools: Tools
    first_fetch: FirstFetch
    cleanup: JobCleanup
    closing: contextlib.AsyncExitStack
    _background: BackgroundTasks = field(default_factory=BackgroundTasks, init=False)
    _running: set[int] = field(default_factory=set, init=False)
    _is_idle: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def start(self) -> None:
        """Starts what goes on beside the runs."""
        self._background.spawn(self.first_fetch.run(), name="the mirror's first fetch")
        self._background.spawn(self.cleanup.run(), name="retention")
        self._background.spawn(retry_forever(self.tools), name="proposal retries")

    async def stop(self) -> None:
        """Ends what goes on beside the runs."""
        await self._background.cancel()

    async def close(self) -> None:
        """Closes it when nothing runs any more."""
        if self._running:
            self._is_idle.clear()
            await self._is_idle.wait()
        await self.closing.aclose()

    async def execute(self, instruction: Instruction) -> Outcome:
        with self._runs(instruction):
            return await Pipeline(self.tools).execute(instruction)

    async def finish_pushed(self, instruction: Instruction) -> Outcome:
        with self._runs(instruction):
            return await Pipeline(self.tools).finish_pushed(instruction)

    @contextlib.contextmanager
    def _runs(self, instruction: Instruction) -> Iterator[None]:
        self._running.add(instruction.number)
        try:
            yield
        finally:
            self._running.discard(instruction.number)
            if not self._running:
                self._is_idle.set()


async def open_project(settings: JobServerSettings, shared: Shared) -> Project:
    """Opens a project, which then has to be started.

    Raises:
        JobServerError: the repository, the sandbox or the agent cannot be used.
    """
    async with contextlib.AsyncExitStack() as stack:
        return await _ProjectComposition(settings, shared, stack).project()


class _ProjectComposition:
    """Builds a project; `stack` closes its parts, unless the project is complete and takes it over."""

    def __init__(self, settings: JobServerSettings, shared: Shared, stack: contextlib.AsyncExitStack) -> None:
        self._settings = settings
        self._shared = shared
        self._stack = stack
        self._limits = RunLimits.for_settings(settings)

    async def project(self) -> Project:
        settings, database, public_url = self._settings, self._shared.database, self._shared.public_url
        github = await self._stack.enter_async_context(connect(settings))
        git = Git.for_settings(settings, github.credentials if github else None)
        try:
            base = await find_base(git, settings.base_branch, self._shared.data)
        except GitError as error:
            raise JobServerError(f"the repository {settings.repository} cannot be used: {error}") from error
        directory = mirror_of(self._shared.data, settings.project_id)
        mirror = Mirror(git, directory, self._shared.mirror_locks[directory])
        local = LocalPullRequests(database, settings.project_id, mirror, base=base, public_url=public_url)
        space = UploadLimits(int(settings.max_upload_megabytes * 1e6), int(settings.upload_space_megabytes * 1e6))
        uploads = UploadStore(FileStore(database), settings.project_id, space)
        at_github = github is not None and settings.pull_requests == "github"
        keeper: GitHubPullRequests | LocalPullRequests = github.pull_requests(base) if github and at_github else local
        jobs = JobStore(database, settings.project_id, rate_limit=settings.rate_limit, choices=choices_for(settings))
        tools = await self._tools(mirror, base, keeper)
        states = PullRequestStates(keeper, ProposalStore(database, settings.project_id))
        self._stack.push_async_callback(states.stop)
        name = short_name(settings.repository)
        shown = name if repository_protocol(settings.repository) == "file" else settings.repository

        template = JobTemplate(shown, base, settings.shown_model)
        gate = Gate(settings, public_url=public_url, everybody=self._shared.everybody)
        return Project(
            settings,
            ProjectApi(
                settings.api_key, jobs, uploads, template, states.as_of_now, keeper, tools.repository.file_of_job
            ),
            PullRequestPages(local, gate, root=pages_of(settings.project_id), repository=name),
            tools,
            FirstFetch(mirror, base),
            JobCleanup(tools, jobs, uploads, local.delete_ended, settings.archive_after, settings.keep_for),
            self._stack.pop_all(),
        )

    async def _tools(self, mirror: Mirror, base: str, pull_requests: PullRequests) -> Tools:
        settings, of_runs = self._settings, self._shared.database.waiting(_OUTAGE_S)
        queue, proposals = InstructionQueue(of_runs), ProposalStore(of_runs, settings.project_id)
        sandbox = await self._sandbox()
        known = await asyncio.to_thread(KnownValues, settings, os.environ, self._shared.secrets)
        folders = JobFolders(self._shared.data, agent_for(settings.agent).caches if settings.editor == "agent" else ())
        largest, allowed = int(settings.max_file_megabytes * 1_000_000), AllowedPaths(settings.paths)
        limits = ChangeLimits(settings.max_changed_files, largest, allowed)
        repository, files, handover = GitRepository(mirror, base, limits), FileStore(of_runs), None
        if settings.database_url is not None and settings.session_key is not None:
            sealing = Sealing(settings.session_key)
            handover = Handover(queue, files, folders, repository, sealing, self._not_handed_over)
        return Tools(
            repository,
            queue,
            folders,
            files,
            self._editor(sandbox, lambda text: known().known(text)),
            self._checks(sandbox).run,
            ChangeScan(mirror, known, settings.allowed_secrets).leaks,
            known,
            pull_requests,
            proposals,
            Spending(settings.budget, took=partial(self._shared.counts.took, settings.project_id)),
            Asking(queue, lambda text: known().known(text), time_limit=settings.question_time_limit.total_seconds()),
            takes_faults=settings.editor != "builtin",
            handover=handover,
        )

    def _not_handed_over(self) -> set[PurePosixPath]:
        from bot.jobserver.agents.launch import files_below  # noqa: PLC0415 - as of the editor

        home = self._settings.agent_home
        return set(files_below(home)) if home else set()

    async def _sandbox(self) -> Sandbox:
        """Opens the sandbox. It may be missing if only the repository's own checkers would use it."""
        if not self._shared.runs_agents:
            return MissingSandbox("agents run in other processes")
        try:
            return await open_sandbox(self._settings, self._shared.data)
        except JobServerError as error:
            if self._settings.editor == "builtin" and not self._settings.checks:
                return MissingSandbox(str(error))
            raise

    def _editor(self, sandbox: Sandbox, mask: Callable[[str], str]) -> Editor:
        settings = self._settings
        if not self._shared.runs_agents:
            return BuiltinEditor()
        match settings.editor:
            case "builtin":
                logger.info("the demo's editor does the work, and knows four things; for an agent: %s", AGENT)
                return BuiltinEditor()
            case "agent":
                # Only where agents run: their protocol's models take half as long as all the rest.
                from bot.jobserver.agents.choice import agent_editor  # noqa: PLC0415 - as said above

                editor = agent_editor(settings, sandbox, os.environ, self._egress(), mask=mask)
                self._require_installed(editor.launch.agent.command, editor.launch.agent.install)
                return editor
            case "command":
                self._require_installed(settings.command)
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

    def _require_installed(self, command: Sequence[str], install: str = "") -> None:
        """Raises JobServerError where another machine may have the program, and gets the jobs."""
        found = installed(command, install)
        if found.is_ok:
            return
        words = f"project {self._settings.project_id}: {found.message}"
        if self._settings.database_url is not None:
            raise JobServerError(words)
        logger.warning("%s; without it, jobs fail", words)

    def _egress(self) -> Egress:
        return egress_for(self._settings, partial(self._shared.counts.refused, self._settings.project_id))

    def _checks(self, sandbox: Sandbox) -> DocumentationChecks:
        settings = self._settings
        environment = passed_variables(settings.checks_pass_environment, os.environ, never=settings.api_key.values)
        time_limit = settings.time_limit.total_seconds()
        program = CheckProgram(sandbox, self._limits, self._egress(), time_limit, environment)
        checkers = CheckProgram(sandbox, self._limits, Egress(), min(time_limit, _CHECKER_S))
        return DocumentationChecks(program, checkers, settings.checks)
