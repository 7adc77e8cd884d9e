"""Puts the job server together, starts it and stops it."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, assert_never
from urllib.parse import urlsplit

from aiohttp import web

from bot.jobserver.agents.choice import agent_editor
from bot.jobserver.api.handlers import JobApi, error_response
from bot.jobserver.editors.builtin.editor import BuiltinEditor
from bot.jobserver.editors.command import CommandEditor
from bot.jobserver.editors.interface import Editor
from bot.jobserver.errors import GitError, JobServerError
from bot.jobserver.executor.instruction_executor import InstructionExecutor
from bot.jobserver.executor.job_runner import JobRunner
from bot.jobserver.middleware import allowed_hosts, answer_errors, require_host
from bot.jobserver.pages.handlers import PullRequestPages
from bot.jobserver.pages.rendering import error_page
from bot.jobserver.pull_requests.local.local_pull_requests import LocalPullRequests
from bot.jobserver.pull_requests.local.mirror import Mirror
from bot.jobserver.pull_requests.local.table import SCHEMA as PULL_REQUESTS_SCHEMA
from bot.jobserver.pull_requests.local.table import PullRequestTable
from bot.jobserver.repository.git import Git
from bot.jobserver.sandbox.choice import open_sandbox
from bot.jobserver.sandbox.limits import RunLimits
from bot.jobserver.settings import JobServerSettings, repository_protocol
from bot.jobserver.store.database import Database
from bot.jobserver.store.jobs import SCHEMA as JOBS_SCHEMA
from bot.jobserver.store.jobs import JobStore, JobTemplate
from bot.runtime.http.server import HttpServer, listening_socket
from bot.runtime.tasks import BackgroundTasks

logger = logging.getLogger(__name__)
_SHUTDOWN_S = 2.0
_MAX_ARCHIVE_PAUSE_S = 60.0
_JSON_ESCAPE_BYTES = 12  # one character outside the basic plane, written as two \uXXXX
_PAGE_PATHS = ("/pulls", "/static")


class JobServer:
    """One job server: `start`, then `stop`; or `serve_forever`."""

    def __init__(self, settings: JobServerSettings) -> None:
        self._settings = settings
        self._closing = contextlib.AsyncExitStack()

    async def start(self) -> str:
        """Starts, and returns the address it can be reached at, without a slash at the end.

        Raises:
            JobServerError: the repository, the data directory or the port cannot be used.
        """
        async with contextlib.AsyncExitStack() as stack:
            url = await self._start(stack)
            self._closing = stack.pop_all()
        return url

    async def stop(self) -> None:
        """Takes no more requests and ends within 10 s; interrupted instructions start again next time."""
        await self._closing.aclose()

    async def serve_forever(self, started: Callable[[str], None] = lambda _: None) -> None:
        """Starts, tells `started` the address, and stops on SIGINT or SIGTERM.

        Raises:
            JobServerError: as `start` does.
        """
        asked_to_stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, asked_to_stop.set)
        try:
            started(await self.start())
            await asked_to_stop.wait()
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
            await self.stop()

    async def _start(self, stack: contextlib.AsyncExitStack) -> str:
        settings = self._settings
        data = await asyncio.to_thread(_lock_data_directory, settings.data_directory, stack)
        git = Git.for_settings(settings)
        base = await _base_branch(git, settings, data)
        listener = _listen(settings, stack)
        url = _own_url(settings.host, listener)
        public_url = settings.public_url or url

        jobs = await _open_jobs(settings, data, stack)
        table = await _open_pull_request_table(data, stack)
        pull_requests = LocalPullRequests(table, Mirror(git, data / "mirror.git"), base=base, public_url=public_url)
        executor = InstructionExecutor(git, await _editor(settings, data), pull_requests, base=base, directory=data)
        runner = await _start_runner(settings, jobs, executor, stack)
        archiving = BackgroundTasks()
        archiving.spawn(_keep_archiving(jobs, settings), name="archiving")
        stack.push_async_callback(archiving.cancel)

        template = JobTemplate(_displayed_repository(settings.repository), base, settings.shown_model)
        api = JobApi(settings, jobs, template, wake=runner.wake)
        pages = PullRequestPages(pull_requests, public_url=public_url, repository=_short_name(settings.repository))
        server = HttpServer(_application(settings, public_url, api, pages), shutdown_timeout=_SHUTDOWN_S)
        stack.push_async_callback(server.stop)
        await server.start(listener)
        logger.info("job server for %s (%s) listens on %s", settings.repository, base, url)
        return url


async def _open_jobs(settings: JobServerSettings, data: Path, stack: contextlib.AsyncExitStack) -> JobStore:
    database = await stack.enter_async_context(Database(data / "jobs.sqlite3", JOBS_SCHEMA))
    return JobStore(database, rate_limit=settings.rate_limit, now=_now)


async def _open_pull_request_table(data: Path, stack: contextlib.AsyncExitStack) -> PullRequestTable:
    database = await stack.enter_async_context(Database(data / "pull_requests.sqlite3", PULL_REQUESTS_SCHEMA))
    return PullRequestTable(database, now=_now)


async def _start_runner(
    settings: JobServerSettings, jobs: JobStore, executor: InstructionExecutor, stack: contextlib.AsyncExitStack
) -> JobRunner:
    await asyncio.to_thread(executor.prepare)
    runner = JobRunner(jobs, executor.execute, max_concurrent_jobs=settings.max_concurrent_jobs)
    stack.push_async_callback(runner.stop)
    await runner.start()
    return runner


def _now() -> datetime:
    return datetime.now(UTC)


def _lock_data_directory(directory: Path, stack: contextlib.AsyncExitStack) -> Path:
    """Makes the data directory and locks it: two servers would execute each other's instructions."""
    import fcntl  # noqa: PLC0415 - Windows has none: the commands say so, but have to come that far

    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        stream: IO[bytes] = (directory / "lock").open("ab")
    except OSError as error:
        raise JobServerError(f"the data directory {directory} cannot be used: {error.strerror}") from error
    stack.callback(stream.close)
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise JobServerError(f"another job server already works in {directory}") from error
    return directory.resolve()


async def _base_branch(git: Git, settings: JobServerSettings, data: Path) -> str:
    try:
        branch = settings.base_branch or await git.default_branch(data)
        exists = await git.has_branch(data, branch)
    except GitError as error:
        raise JobServerError(f"the repository {settings.repository} cannot be used: {error}") from error
    if not exists:
        raise JobServerError(f"the repository {settings.repository} has no branch {branch}")
    return branch


def _listen(settings: JobServerSettings, stack: contextlib.AsyncExitStack) -> socket.socket:
    try:
        listener = listening_socket(settings.host, settings.port)
    except OSError as error:
        raise JobServerError(error.strerror or str(error)) from error
    stack.callback(listener.close)
    return listener


def _own_url(host: str, listener: socket.socket) -> str:
    port = listener.getsockname()[1]
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host).strip("[]")  # noqa: S104 (recognised, not bound)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


async def _editor(settings: JobServerSettings, data: Path) -> Editor:
    match settings.editor:
        case "builtin":
            return BuiltinEditor()
        case "agent":
            return agent_editor(settings, await open_sandbox(settings, data), os.environ)
        case "command":
            return CommandEditor(
                settings.command,
                await open_sandbox(settings, data),
                RunLimits.for_settings(settings),
                time_limit=settings.time_limit.total_seconds(),
                passed=settings.pass_environment,
                secret=settings.api_key.get_secret_value(),
            )
        case _:
            assert_never(settings.editor)


def _application(settings: JobServerSettings, public_url: str, api: JobApi, pages: PullRequestPages) -> web.Application:
    hosts = allowed_hosts(settings.host, public_url)
    app = web.Application(
        middlewares=[answer_errors(_error_response), require_host(hosts, _error_response)],
        client_max_size=settings.max_prompt_characters * _JSON_ESCAPE_BYTES + 4096,
    )
    api.add_routes(app)
    pages.add_routes(app)
    return app


def _error_response(request: web.Request, status: int, message: str) -> web.Response:
    is_page = request.path == "/" or request.path.startswith(_PAGE_PATHS)
    return (error_page if is_page else error_response)(request, status, message)


def _displayed_repository(repository: str) -> str:
    """Returns what a job shows as its repository: an address as it is; where a directory lies is nobody's business."""
    return _short_name(repository) if repository_protocol(repository) == "file" else repository


def _short_name(repository: str) -> str:
    name = urlsplit(repository).path.rstrip("/").rsplit("/", 1)[-1]
    return name.removesuffix(".git") or repository


async def _keep_archiving(jobs: JobStore, settings: JobServerSettings) -> None:
    pause = min(_MAX_ARCHIVE_PAUSE_S, max(0.1, settings.archive_after.total_seconds() / 10))
    while True:
        try:
            archived = await jobs.archive(settings.archive_after)
        except Exception:
            logger.exception("finished jobs could not be archived; trying again")
        else:
            if archived:
                logger.info("%d finished jobs were archived", len(archived))
        await asyncio.sleep(pause)
