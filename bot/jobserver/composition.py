"""Composes the job server from its parts: what the process has once, and the projects, which come and go."""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path

from aiohttp import web

from bot.errors import StoreError
from bot.jobserver.agents.named import NAMED
from bot.jobserver.api import JobApiHandlers
from bot.jobserver.data_directory import OF_1_0_0, find_database, owner_of_1_0_0
from bot.jobserver.errors import JobServerError
from bot.jobserver.metrics import RunCounts
from bot.jobserver.pages.handlers import PageRoutes
from bot.jobserver.pipeline.job_folders import JobFolders
from bot.jobserver.pipeline.job_runner import JobRunner
from bot.jobserver.project import (
    Offers,
    Project,
    Shared,
    agent_of,
    mirror_of,
    needed_by,
    not_offered,
    open_project,
)
from bot.jobserver.pull_requests.local.local_pull_requests import project_of
from bot.jobserver.repository.foreign_files import remove
from bot.jobserver.settings import PREFIX, JobServerSettings, repository_protocol
from bot.jobserver.settings.process import ProcessSettings
from bot.jobserver.settings.projects import Projects
from bot.jobserver.store.claims import Worker
from bot.jobserver.store.database import Database
from bot.jobserver.store.files import FileStore
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.records import InstructionBacklog
from bot.jobserver.store.uploads import UploadLimits, UploadStore
from bot.runtime.http.health_pages import metrics_route
from bot.runtime.tasks import BackgroundTasks

logger = logging.getLogger(__name__)
LOOK_S = 3.0
"""Between looks at the file of the projects, unless told otherwise."""
_RETRY_S = 60.0
"""Between attempts to open a project that could not be opened."""
_OPENING_S = 45.0
"""How long opening a project may take; most of that is its repository's host."""
_MIRROR_STATES = ("made", "being made", "out of reach")


class Role(Enum):
    """What a process does: everything, or on a database that several share, one of the two."""

    BOTH = "both"
    API = "api"
    WORKER = "worker"

    @property
    def runs_agents(self) -> bool:
        return self is not Role.API


def require_shareable(settings: JobServerSettings, process: ProcessSettings, role: Role) -> None:
    """Checks that other processes can do the other part of a project's work. Raises JobServerError."""
    if role is Role.BOTH:
        return
    if process.database_url is None:
        raise JobServerError(f"agents run in processes of their own only with a database: set {PREFIX}DATABASE_URL")
    name = settings.project_id
    if "://" not in settings.repository and repository_protocol(settings.repository) == "file":
        words = "a directory, which other machines lack: give its address (https, ssh, or file:// on a common mount)"
        raise JobServerError(f"the repository of project {name} is {words}")
    if role is Role.WORKER and settings.pull_requests == "local" and process.public_url is None:
        raise JobServerError(f"a worker cannot link to the pull requests of project {name}: set {PREFIX}PUBLIC_URL")


@dataclass(eq=False)
class Composition:
    """Builds the parts; `_stack` closes them. `_look_pause`: seconds between looks at the file of the projects."""

    _config: Projects
    _data: Path
    _stack: contextlib.AsyncExitStack
    _role: Role
    _look_pause: float
    _counts: RunCounts = field(default_factory=RunCounts, init=False)
    _projects: dict[str, Project] = field(default_factory=dict, init=False)
    _closing: set[Project] = field(default_factory=set, init=False)
    _faults: dict[str, str] = field(default_factory=dict, init=False)
    _tried_at: float = field(default=0.0, init=False)
    _background: BackgroundTasks = field(default_factory=BackgroundTasks, init=False)
    _opening: BackgroundTasks = field(default_factory=BackgroundTasks, init=False)

    async def start(self, public_url: str, *, everybody: str) -> Iterable[web.RouteDef]:
        """Starts the background work and returns what is served; a worker has no API.

        Raises:
            JobServerError: a database cannot be used, or none of the projects.
        """
        process = self._config.process
        url, _ = await asyncio.to_thread(find_database, process, self._data)
        earlier = await owner_of_1_0_0(self._data, url, self._config.current)
        database = await self._stack.enter_async_context(Database(url))
        queue = InstructionQueue(database)
        await self._take_over(database, earlier)
        caches = [cache for agent in NAMED.values() for cache in agent.caches]
        await asyncio.to_thread(JobFolders(self._data, caches).prepare)
        shared = Shared(
            self._data,
            database,
            self._counts,
            public_url,
            self._config.secrets,
            everybody,
            runs_agents=self._role.runs_agents,
        )
        self._stack.push_async_callback(self._close)
        await self._open(shared)
        if not self._projects:
            raise JobServerError("\n".join(self._faults.values()))
        runner = JobRunner(
            queue,
            self._projects.get,
            self._offer,
            process.max_concurrent_jobs,
            self._arrived,
            counts=self._counts,
            stop_time=process.stop_time.total_seconds(),
            worker=Worker(place=f"{socket.gethostname()}:{self._data}"),
        )
        if self._role.runs_agents:
            self._stack.push_async_callback(runner.stop)
            await runner.start()
            self._background.spawn(database.listen(runner.wake), name="what the database tells")
        self._stack.push_async_callback(self._opening.cancel)
        self._stack.push_async_callback(self._background.cancel)
        if self._config.has_file:
            self._background.spawn(self._follow(shared), name="the projects' file")

        async def metrics() -> bytes:
            return self._counts.render(await queue.backlog())

        async def health(_: web.Request) -> web.Response:
            offers = [self._offer()] if self._role.runs_agents else await queue.offers()
            return web.json_response(self._health(await queue.backlog(), offers))

        api = JobApiHandlers(
            lambda: {name: project.api for name, project in self._projects.items()},
            process.max_prompt_characters,
            wake=runner.wake,
            interrupt=runner.interrupt,
        )
        owner = partial(project_of, database)
        pages = PageRoutes(lambda: {name: project.pages for name, project in self._projects.items()}, owner)
        monitoring = [web.get("/health", health)]
        if token := process.metrics_token:
            monitoring.append(metrics_route(metrics, token))
        return monitoring if self._role is Role.WORKER else [*monitoring, *api.routes(), *pages.all()]

    async def _take_over(self, database: Database, owner: str | None) -> None:
        """Gives the mirror and the uploads of 1.0.0 to their project. Without one, they are nobody's. Its pull
        requests are in the tables already.
        """
        folders = [self._data / folder for folder in OF_1_0_0]
        mirror, uploads, *_ = folders
        await asyncio.to_thread(mirror_of(self._data, "").parent.mkdir, mode=0o700, exist_ok=True)
        if owner is not None:
            await UploadStore(FileStore(database), owner, UploadLimits(0, 0)).take_over(uploads)
            words = "the data of 1.0.0 is project %s's now: to go back to 1.0.0, restore your copy of %s"
            logger.info(words, owner, self._data)
            (self._data / "pull_requests.sqlite3").unlink(missing_ok=True)
            with contextlib.suppress(FileNotFoundError):
                mirror.rename(mirror_of(self._data, owner))
        for folder in folders:
            await asyncio.to_thread(remove, folder)

    async def _follow(self, shared: Shared) -> None:
        """Follows the file of the projects; never returns."""
        while True:
            await asyncio.sleep(self._look_pause)
            try:
                is_due = self._not_as_wanted() and time.monotonic() - self._tried_at >= _RETRY_S
                if await asyncio.to_thread(self._config.look) or is_due:
                    await self._opening.cancel()
                    # A host that does not answer keeps nobody from seeing the next change, such as a new key.
                    self._opening.spawn(self._open(shared), name="opening projects")
            except Exception:
                logger.exception("the projects could not be followed; trying again")

    async def _open(self, shared: Shared) -> None:
        """Opens new and changed projects, and closes those that are gone; one that cannot be opened stays as it was."""
        self._tried_at = time.monotonic()
        wanted = self._config.current
        for name in self._projects.keys() - wanted.keys():
            self._let_go(self._projects.pop(name))
        self._faults = {name: fault for name, fault in self._faults.items() if name in wanted}
        # At once, so that none waits for another's repository.
        await asyncio.gather(*(self._serve(name, wanted[name], shared) for name in self._not_as_wanted()))

    def _not_as_wanted(self) -> list[str]:
        """Returns the projects that are not served, or not with the settings that they have now."""
        served = {name: project.settings for name, project in self._projects.items()}
        return [name for name, settings in self._config.current.items() if served.get(name) is not settings]

    async def _serve(self, name: str, settings: JobServerSettings, shared: Shared) -> None:
        """Opens a project in the place of what it was."""
        try:
            require_shareable(settings, self._config.process, self._role)
            async with asyncio.timeout(_OPENING_S):
                opened = await open_project(settings, shared)
        except (JobServerError, StoreError, TimeoutError) as error:
            self._note(name, str(error) or f"the repository's host does not answer within {_OPENING_S:g} s")
            return
        self._faults.pop(name, None)
        earlier, self._projects[name] = self._projects.get(name), opened
        if earlier is not None:
            self._let_go(earlier)
        self._counts.serve(name, agent_of(settings))
        opened.start()
        for _, words in settings.warnings:
            logger.warning("project %s: %s", name, words)
        logger.info("project %s works on %s", name, settings.repository)

    def _note(self, name: str, fault: str) -> None:
        if self._config.has_file and self._faults.get(name) != fault:
            logger.error("project %s cannot be served as its settings are now: %s", name, fault)
        self._faults[name] = fault

    def _let_go(self, project: Project) -> None:
        """Closes a project once its last run has ended."""
        self._closing.add(project)

        async def close() -> None:
            await project.stop()
            await project.close()
            self._closing.discard(project)

        self._background.spawn(close(), name="closing a project")

    async def _close(self) -> None:
        """Closes all projects; nothing runs any more."""
        for project in (*self._projects.values(), *self._closing):
            await project.stop()
            await project.close()

    def _arrived(self, job_id: str) -> None:
        for project in (*self._projects.values(), *self._closing):
            project.tools.asking.arrived(job_id)

    def _offer(self) -> dict[str, str]:
        return {name: needed_by(project.settings) for name, project in self._projects.items()}

    def _health(self, backlog: Mapping[str, InstructionBacklog], offers: Offers) -> Mapping[str, object]:
        mirrors = {name: project.first_fetch.state for name, project in self._projects.items()}
        worst = max(mirrors.values(), key=_MIRROR_STATES.index, default="made")
        choices = {name: vars(project.api.jobs.choices) for name, project in self._projects.items()}
        told = {"status": "ok", "mirror": worst, "projects": mirrors, "choices": choices, "workers": offers}
        return told | {"problems": list(self._problems(backlog, offers))}

    def _problems(self, backlog: Mapping[str, InstructionBacklog], offers: Offers) -> Iterator[str]:
        """Yields what anybody may read: the log says why."""
        if self._config.fault:
            yield "The file of the projects is not valid as it is now, and not in use."
        for name in self._faults:
            yield f"Project {name} cannot be served as its settings are now."
        yield from not_offered(offers, (project.settings for project in self._projects.values()))
        for name in backlog.keys() - self._projects.keys():
            waiting = backlog[name].queued
            if waiting:
                yield f"Project {name} is not served any more, and {waiting} of its instructions wait."
