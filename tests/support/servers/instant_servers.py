"""Slack's Web API, a job API and a code host on which nothing changes, which answer at once, in their own process. It
ends with its standard input.
"""

import asyncio
import contextlib
import itertools
import json
import sys
from collections.abc import AsyncIterator, Mapping
from typing import Any

from aiohttp import web

JOB = {"status": "active", "source": {"repository": "acme/docs", "ref": "main"}, "prLink": None}
SLACK: Mapping[str, Mapping[str, Any]] = {
    "auth.test": {"team_id": "T1", "team": "Acme", "user_id": "UBOT", "bot_id": "BBOT", "user": "pagehand"},
    "users.info": {"user": {"team_id": "T1", "real_name": "Ana", "is_restricted": False, "is_ultra_restricted": False}},
    "conversations.info": {"channel": {"name": "docs", "is_ext_shared": False, "is_private": False}},
}
"""Everybody is a member, and every channel is internal."""
_NUMBERS = itertools.count(1)


async def _answer(request: web.BaseRequest) -> web.StreamResponse:
    """Answers every call successfully."""
    await request.read()
    if "If-None-Match" in request.headers:
        return web.Response(status=304)
    name = request.path.rsplit("/", 1)[-1]
    if request.path.startswith("/v2/"):
        return _json({"id": name if request.method == "GET" else f"job-{next(_NUMBERS)}", **JOB})
    posted = {"ts": f"1700000000.{next(_NUMBERS):06d}"} if name == "chat.postMessage" else {}
    return _json({"ok": True, **SLACK.get(name, posted)})


def _json(value: Mapping[str, Any]) -> web.Response:
    return web.Response(body=json.dumps(value).encode(), content_type="application/json")


async def _serve() -> None:
    runner = web.ServerRunner(web.Server(_answer, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    sys.stdout.write(f"http://127.0.0.1:{runner.addresses[0][1]}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)  # until the parent exits
    await runner.cleanup()


@contextlib.asynccontextmanager
async def instant_servers() -> AsyncIterator[str]:
    """Yields the address of a process with all of them."""
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(sys.executable, __file__, stdin=pipe, stdout=pipe)
    assert child.stdin is not None
    assert child.stdout is not None
    yield (await child.stdout.readline()).decode().strip()
    child.stdin.close()
    await child.wait()


if __name__ == "__main__":
    asyncio.run(_serve())
