"""Slack's Web API and a job API that answer at once, in a process of their own.

`python tests/support/servers/instant_servers.py <seconds>` prints its address, counts what it is asked (GET /counts),
and goes when its standard input ends. The job API's answers take so many seconds.
"""

import asyncio
import contextlib
import itertools
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from typing import Any

from aiohttp import web

JOB = {"status": "active", "source": {"repository": "acme/docs", "ref": "main"}, "prLink": None}
IDENTITY = {"team_id": "T1", "team": "Acme", "user_id": "UBOT", "bot_id": "BBOT", "user": "pagehand"}


class InstantServers:
    """Answers every call well."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._counts: Counter[str] = Counter()
        self._numbers = itertools.count(1)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """One answer, by the path."""
        body = await request.read()
        if request.path == "/counts":
            return _json(self._counts)
        if request.path.startswith("/v2/"):
            await asyncio.sleep(self._delay)
            return _json(self._job(request))
        return _json({"ok": True, **self._slack(request.path.rsplit("/", 1)[-1], body)})

    def _job(self, request: web.BaseRequest) -> Mapping[str, Any]:
        self._counts["polls" if request.method == "GET" else "jobs"] += 1
        name = request.path.rsplit("/", 1)[-1] if request.method == "GET" else f"job-{next(self._numbers)}"
        return {"id": name, **JOB}

    def _slack(self, method: str, body: bytes) -> Mapping[str, Any]:
        if method == "auth.test":
            return IDENTITY
        in_thread = b'"thread_ts": "' in body
        self._counts["chat.postMessage in a thread" if in_thread else method] += 1
        return {"ts": f"1700000000.{next(self._numbers):06d}"} if method == "chat.postMessage" else {}


def _json(value: Mapping[str, Any]) -> web.Response:
    return web.Response(body=json.dumps(value).encode(), content_type="application/json")


async def _serve(delay: float) -> None:
    runner = web.ServerRunner(web.Server(InstantServers(delay).answer, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    sys.stdout.write(f"http://127.0.0.1:{runner.addresses[0][1]}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)  # till the parent goes
    await runner.cleanup()


@contextlib.asynccontextmanager
async def instant_servers(delay: float = 0.0) -> AsyncIterator[str]:
    """The address of a process that answers."""
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(sys.executable, __file__, str(delay), stdin=pipe, stdout=pipe)
    assert child.stdin is not None
    assert child.stdout is not None
    yield (await child.stdout.readline()).decode().strip()
    child.stdin.close()
    await child.wait()


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1])))
