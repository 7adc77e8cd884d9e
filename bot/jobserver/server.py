"""Puts the job server together, starts it and stops it."""

import asyncio
import contextlib
import fcntl
import logging
import signal
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from aiohttp import web

from bot.jobserver import api, pages
from bot.jobserver.api import Api
from bot.jobserver.database import Database
from bot.jobserver.editors import Editor
from bot.jobserver.editors.builtin import BuiltinEditor
from bot.jobserver.editors.command import CommandEditor
from bot.jobserver.errors import GitError, JobServerError
from bot.jobserver.git import Git
from bot.jobserver.guards import allowed_hosts, explain_errors, guard_host
from bot.jobserver.jobs import SCHEMA as JOBS_SCHEMA
from bot.jobserver.jobs import Jobs, Origin
from bot.jobserver.pages import Pages
from bot.jobserver.pull_requests.local import SCHEMA as PULL_REQUESTS_SCHEMA
from bot.jobserver.pull_requests.local import LocalPullRequests
from bot.jobserver.runner import Runner
from bot.jobserver.settings import JobServerSettings, repository_protocol
from bot.jobserver.work import Workshop

_logger = logging.getLogger(__name__)
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
        """Start and return the address it can be reached at, without a slash at the end.

        Raises:
            JobServerError: the repository, the data directory or the port cannot be used; in words for people.
        """
        async with contextlib.AsyncExitStack() as stack:
            url = await self._start(stack)
            self._closing = stack.pop_all()
        return url

    async def stop(self) -> None:
        """Take no more requests and end what is at work within 10 s; interrupted instructions start again next time."""
        await self._closing.aclose()

    async def serve_forever(self, started: Callable[[str], None] = lambda _: None) -> None:
        """Start, tell `started` the address, and stop on SIGINT or SIGTERM.

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
        data = await asyncio.to_thread(_claim, settings.data_directory, stack)
        git = Git.for_settings(settings)
        base = await _base_branch(git, settings, data)
        listener = _listen(settings, stack)
        url = _own_url(settings.host, listener)
        public_url = settings.public_url or url

        jobs_database = await stack.enter_async_context(Database(data / "jobs.sqlite3", JOBS_SCHEMA))
        jobs = Jobs(jobs_database, rate_limit=settings.rate_limit, now=_now)
        pulls_database = await stack.enter_async_context(Database(data / "pull_requests.sqlite3", PULL_REQUESTS_SCHEMA))
        pulls = LocalPullRequests(git, pulls_database, data / "mirror.git", base=base, public_url=public_url, now=_now)
        workshop = Workshop(git, _editor(settings), pulls, base=base, directory=data)
        await asyncio.to_thread(workshop.prepare)
        runner = Runner(jobs, workshop.carry_out, max_concurrent_jobs=settings.max_concurrent_jobs)
        stack.push_async_callback(runner.stop)
        await runner.start()
        stack.push_async_callback(_cancelled, asyncio.create_task(_archive_due(jobs, settings)))

        origin = Origin(_shown(settings.repository), base, settings.shown_model)
        app = _application(settings, public_url)
        Api(settings, jobs, origin, wake=runner.wake).add_routes(app)
        Pages(pulls, public_url=public_url, repository=_short_name(settings.repository)).add_routes(app)
        app_runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_S)
        stack.push_async_callback(app_runner.cleanup)
        await app_runner.setup()
        await web.SockSite(app_runner, listener).start()
        _logger.info("job server for %s (%s) listens on %s", settings.repository, base, url)
        return url


def _now() -> datetime:
    return datetime.now(UTC)


def _claim(directory: Path, stack: contextlib.AsyncExitStack) -> Path:
    """Make the data directory and lock it: two servers would carry out each other's instructions."""
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
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server((settings.host.strip("[]"), settings.port), family=family)
    except OSError as error:
        raise JobServerError(
            f"cannot listen on {settings.host}, port {settings.port}: {error.strerror or error}"
        ) from error
    stack.callback(listener.close)
    return listener


def _own_url(host: str, listener: socket.socket) -> str:
    port = listener.getsockname()[1]
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host).strip("[]")  # noqa: S104 (recognised, not bound)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def _editor(settings: JobServerSettings) -> Editor:
    if settings.editor == "builtin":
        return BuiltinEditor()
    return CommandEditor(
        settings.command,
        time_limit=settings.time_limit.total_seconds(),
        passed=settings.pass_environment,
        secret=settings.api_key.get_secret_value(),
    )


def _application(settings: JobServerSettings, public_url: str) -> web.Application:
    hosts = allowed_hosts(settings.host, public_url)
    return web.Application(
        middlewares=[explain_errors(_refuse), guard_host(hosts, _refuse)],
        client_max_size=settings.max_prompt_characters * _JSON_ESCAPE_BYTES + 4096,
    )


def _refuse(request: web.Request, status: int, words: str) -> web.Response:
    is_page = request.path == "/" or request.path.startswith(_PAGE_PATHS)
    return pages.refuse(request, status, words) if is_page else api.refuse(request, status, words)


def _shown(repository: str) -> str:
    """What a job shows as its repository: an address as it is; where a directory lies is nobody's business."""
    return _short_name(repository) if repository_protocol(repository) == "file" else repository


def _short_name(repository: str) -> str:
    name = urlsplit(repository).path.rstrip("/").rsplit("/", 1)[-1]
    return name.removesuffix(".git") or repository


async def _archive_due(jobs: Jobs, settings: JobServerSettings) -> None:
    pause = min(_MAX_ARCHIVE_PAUSE_S, max(0.1, settings.archive_after.total_seconds() / 10))
    while True:
        try:
            archived = await jobs.archive(settings.archive_after)
        except Exception:
            _logger.exception("finished jobs could not be archived; trying again")
        else:
            if archived:
                _logger.info("%d finished jobs were archived", len(archived))
        await asyncio.sleep(pause)


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
