"""The HTTP inputs of the workspace and the job server, for the fuzzer: real handlers over loopback sockets."""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
from support.worlds.jobserver_world import FILE, JOB, KEY, make_bare
from yarl import URL

from bot.jobserver.server import JobServer
from bot.jobserver.settings import JobServerSettings
from bot.workspace import WorkspaceServer
from bot.workspace.web_api.methods import METHODS

Reader = Callable[[bytes], None]
Call = tuple[str, str, Mapping[str, str]]
"""Method, path, headers."""

FORM, JSON, MULTIPART = "application/x-www-form-urlencoded", "application/json", "multipart/form-data; boundary=x"
EMPTY = hashlib.sha256(b"").hexdigest()
HELD: list[JobServer] = []
"""An unused one is dismantled."""


def workspace_handlers() -> Reader:
    """Web API methods in three encodings, and the page's endpoints."""
    loop = asyncio.new_event_loop()
    server = WorkspaceServer()
    loop.run_until_complete(server.start())
    bearer = {"Authorization": f"Bearer {server.credentials.bot_token}"}
    kinds = (FORM, JSON, MULTIPART)
    calls: list[Call] = [
        ("POST", f"/api/{name}", bearer | {"Content-Type": kind}) for name in METHODS for kind in kinds
    ]
    deeds = ("send", "press", "edit", "delete", "react", "join")
    calls += [("POST", f"/page/{deed}", {"Content-Type": JSON, "Sec-Fetch-Site": "same-origin"}) for deed in deeds]
    channel, person = server.channels["docs"].id, server.people["ana"]
    message = loop.run_until_complete(person.say("docs", "Hello"))
    state = {b"CHANNEL": channel.encode(), b"MESSAGE": message.ts.encode(), b"PERSON": message.user.encode()}
    return _reader(loop, server.origin, calls, state)


def job_server_handlers(directory: Path) -> Reader:
    """The operations, with and without an Idempotency-Key; the limit keeps well-formed prompts from being executed."""
    loop = asyncio.new_event_loop()
    values: dict[str, Any] = {"port": 0, "api_key": KEY, "data_directory": directory / "data", "rate_limit": 1}
    settings = JobServerSettings(repository=str(make_bare(directory / "r.git", {"a.md": "a"})), **values)
    server = JobServer(settings)
    HELD.append(server)
    origin = loop.run_until_complete(server.start())
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": JSON}
    pressed = {"Origin": origin, "Content-Type": FORM, "Authorization": "Basic QWRhOng="}
    calls: list[Call] = [
        ("POST", JOB, headers),
        ("POST", JOB, headers | {"Idempotency-Key": "one"}),
        ("POST", f"{JOB}/nosuchjob/message", headers),
        ("POST", "/docs/pulls/1/merge", pressed),
        ("POST", "/docs/pulls/1/check", pressed),
        ("PUT", f"{FILE}/{EMPTY}", headers | {"Content-Type": "image/png"}),
        ("PUT", FILE + "/{path}", headers),
        ("GET", "/docs/pulls/1/after/{path}.png", {}),
        ("GET", JOB + "/{path}", headers),
        ("GET", "/docs/pulls/{path}", {}),
        ("GET", "/static/{path}", {}),
    ]
    return _reader(loop, origin, calls)


def _reader(
    loop: asyncio.AbstractEventLoop, origin: str, calls: list[Call], state: Mapping[bytes, bytes] | None = None
) -> Reader:
    """The first byte chooses the call; the rest is its body, or part of its path. `known`: existing words."""
    faults: list[str] = []
    logging.getLogger("aiohttp.server").addHandler(_Keeping(faults))
    session = loop.run_until_complete(_session())

    def read(data: bytes) -> None:
        method, path, headers = calls[(data[0] if data else 0) % len(calls)]
        rest = data[1:]
        for word, value in (state or {}).items():
            rest = rest.replace(word, value)
        status = loop.run_until_complete(_status(session, method, origin + path, headers, rest))
        assert not faults, faults[0]
        assert status < 500, f"{method} {path}: {status}"

    return read


class _Keeping(logging.Handler):
    """Records the tracebacks that aiohttp logs instead of raising."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._faults = faults

    def emit(self, record: logging.LogRecord) -> None:
        self._faults.append(self.format(record))


async def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=9), cookie_jar=aiohttp.DummyCookieJar())


async def _status(
    session: aiohttp.ClientSession, method: str, address: str, headers: Mapping[str, str], rest: bytes
) -> int:
    url = URL(address.replace("{path}", quote(rest[:200], safe="/%.")), encoded=True)
    body = None if method == "GET" else rest
    async with session.request(method, url, headers=headers, data=body, allow_redirects=False) as answer:
        await answer.read()
        return answer.status
