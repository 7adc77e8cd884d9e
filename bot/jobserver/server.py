"""Starts and stops the job server."""

import asyncio
import contextlib
import logging
import re
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from aiohttp import web

from bot.jobserver.api import error_response
from bot.jobserver.composition import LOOK_S, Composition, Role, require_shareable
from bot.jobserver.data_directory import not_usable, require_own
from bot.jobserver.errors import JobServerError
from bot.jobserver.middleware import allowed_hosts, answer_errors, require_host, with_request_id
from bot.jobserver.pages.handlers import error_page
from bot.jobserver.sandbox.choice import own_user, require_ordinary_user
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.settings.process import ProcessSettings
from bot.jobserver.settings.projects import Projects
from bot.runtime.http.server import HttpServer, listening_socket

logger = logging.getLogger(__name__)
_OTHER_BODY_BYTES = 100_000  # files and requester, if each character is written as an escape
_JSON_ESCAPE_BYTES = 12  # one character outside the basic plane, written as two \uXXXX
_PAGE = re.compile(r"/|/static/.*|(?:/[^/]+)?/pulls(?:/.*)?")


class JobServer:
    """One job server: `start`, then `stop`.

    `everybody` is for demos on a loopback address: nobody needs a key, and whoever merges or closes gets this name.
    `look_pause`: seconds between looks at the file of the projects, if there is one.
    """

    def __init__(
        self,
        settings: JobServerSettings | Projects,
        role: Role = Role.BOTH,
        *,
        everybody: str = "",
        look_pause: float = LOOK_S,
    ) -> None:
        self._config = settings if isinstance(settings, Projects) else Projects.one(settings)
        self._look_pause = look_pause
        self._role = role
        self._everybody = everybody
        self._closing = contextlib.AsyncExitStack()

    async def start(self) -> str:
        """Starts, and returns the server's address without a trailing slash; a worker may have none.

        Raises:
            JobServerError: the repository, the data directory or the port cannot be used.
        """
        async with contextlib.AsyncExitStack() as stack:
            url = await self._start(stack)
            self._closing = stack.pop_all()
        return url

    async def stop(self) -> None:
        """Accepts no more requests; what runs ends within STOP_TIME and 10 s, and what does not is given back."""
        await self._closing.aclose()

    async def _start(self, stack: contextlib.AsyncExitStack) -> str:
        settings = self._config.process
        for project in self._config.current.values():
            require_shareable(project, settings, self._role)
        if self._role.runs_agents and any(project.runs_programs for project in self._config.current.values()):
            require_ordinary_user(settings, own_user())
        data = await asyncio.to_thread(_lock_data_directory, settings.data_directory, stack)
        composition = Composition(self._config, data, stack, self._role, self._look_pause)
        if self._role is Role.WORKER and settings.metrics_token is None:
            await composition.start(settings.public_url or "", everybody="")
            logger.info("a worker runs the jobs of %s", ", ".join(self._config.current))
            return ""
        try:
            listener = listening_socket(settings.host, settings.port)
        except OSError as error:
            raise JobServerError(error.strerror or str(error)) from error
        stack.callback(listener.close)
        url = _own_url(settings.host, listener)
        public_url = settings.public_url or url
        routes = await composition.start(public_url, everybody=self._everybody)
        server = HttpServer(_application(settings, public_url, routes), shutdown_timeout=2.0)
        stack.push_async_callback(server.stop)
        await server.start(listener)
        logger.info("job server for %s listens on %s", ", ".join(self._config.current), url)
        return url


def _lock_data_directory(directory: Path, stack: contextlib.AsyncExitStack) -> Path:
    """Creates the data directory and locks it: two servers would execute each other's instructions."""
    import fcntl  # noqa: PLC0415 - missing on Windows, where the commands must still be able to say so

    try:
        require_own(directory)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        stream: IO[bytes] = (directory / "lock").open("ab")
    except OSError as error:
        raise JobServerError(not_usable(directory, error)) from error
    stack.callback(stream.close)
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise JobServerError(f"another job server already works in {directory}") from error
    return directory.resolve()


def _own_url(host: str, listener: socket.socket) -> str:
    port = listener.getsockname()[1]
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host).strip("[]")  # noqa: S104 (recognised, not bound)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def _application(settings: ProcessSettings, public_url: str, routes: Iterable[web.RouteDef]) -> web.Application:
    hosts = allowed_hosts(settings.host, public_url, settings.host_names)
    app = web.Application(
        middlewares=[with_request_id, answer_errors(_error_response), require_host(hosts, _error_response)],
        client_max_size=settings.max_prompt_characters * _JSON_ESCAPE_BYTES + _OTHER_BODY_BYTES,
    )
    app.router.add_routes(routes)
    return app


def _error_response(request: web.Request, status: int, message: str) -> web.Response:
    return (error_page if _PAGE.fullmatch(request.path) else error_response)(request, status, message)
