"""Slack's Web API and a job API that answer at once, in their own process.

`python tests/support/servers/instant_servers.py <seconds> <look-ups>` prints its address, counts its requests (GET
/counts), lists when jobs were created (GET /created), and ends with its standard input. The job API's answers take the
first number of seconds, and Slack's about people and channels the second.
"""

import asyncio
import contextlib
import itertools
import json
import sys
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping
from typing import Any

from aiohttp import web

JOB = {"status": "active", "source": {"repository": "acme/docs", "ref": "main"}, "prLink": None}
IDENTITY = {"team_id": "T1", "team": "Acme", "user_id": "UBOT", "bot_id": "BBOT", "user": "pagehand"}
LOOK_UPS = frozenset({"users.info", "conversations.info"})
MEMBER = {"team_id": "T1", "real_name": "Ana", "is_restricted": False, "is_ultra_restricted": False}
CHANNEL = {"name": "docs", "is_ext_shared": False, "is_private": False}


class InstantServers:
    """Answers every call successfully. Everybody is a member, and every channel is internal."""

    def __init__(self, delay: float, look_up_delay: float) -> None:
        self._delay = delay
        self._look_up_delay = look_up_delay
        self._created: deque[tuple[str, float]] = deque(maxlen=1_000)
        self._counts: Counter[str] = Counter()
        self._numbers = itertools.count(1)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Returns one answer, by path."""
        body = await request.read()
        if request.path == "/counts":
            return _json(self._counts)
        if request.path == "/created":
            return _json(dict(self._created))
        if request.path.startswith("/v2/"):
            await asyncio.sleep(self._delay)
            return _json(self._job(request, body))
        method = request.path.rsplit("/", 1)[-1]
        if method in LOOK_UPS:
            await asyncio.sleep(self._look_up_delay)
        return _json({"ok": True, **self._slack(method, body)})

    def _job(self, request: web.BaseRequest, body: bytes) -> Mapping[str, Any]:
        if request.method == "POST":
            self._created.append((body.decode(), time.time()))
        self._counts["polls" if request.method == "GET" else "jobs"] += 1
        name = request.path.rsplit("/", 1)[-1] if request.method == "GET" else f"job-{next(self._numbers)}"
        return {"id": name, **JOB}

    def _slack(self, method: str, body: bytes) -> Mapping[str, Any]:
        if method == "auth.test":
            return IDENTITY
        self._counts[method] += method in LOOK_UPS
        if method == "users.info":
            return {"user": MEMBER}
        if method == "conversations.info":
            return {"channel": CHANNEL}
        in_thread = b'"thread_ts": "' in body
        self._counts["chat.postMessage in a thread" if in_thread else method] += 1
        return {"ts": f"1700000000.{next(self._numbers):06d}"} if method == "chat.postMessage" else {}


def _json(value: Mapping[str, Any]) -> web.Response:
    return web.Response(body=json.dumps(value).encode(), content_type="application/json")


async def _serve(delay: float, look_up_delay: float) -> None:
    runner = web.ServerRunner(web.Server(InstantServers(delay, look_up_delay).answer, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    sys.stdout.write(f"http://127.0.0.1:{runner.addresses[0][1]}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)  # until the parent exits
    await runner.cleanup()


@contextlib.asynccontextmanager
async def instant_servers(delay: float = 0.0, *, look_ups: float = 0.0) -> AsyncIterator[str]:
    """Yields the address of a process that answers look-ups after this many seconds."""
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        sys.executable, __file__, str(delay), str(look_ups), stdin=pipe, stdout=pipe
    )
    assert child.stdin is not None
    assert child.stdout is not None
    yield (await child.stdout.readline()).decode().strip()
    child.stdin.close()
    await child.wait()


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1]), float(sys.argv[2])))
