"""What the model relay costs: first byte and throughput, beside a direct connection, in one run.

    python tests/benchmarks/bench_relay.py [--rounds 200] [--megabytes 64]

The model's server runs in a process of its own. Rounds alternate between the two ways, and medians are compared, so
that a busy machine disturbs both alike.
"""

import argparse
import asyncio
import contextlib
import json
import statistics
import sys
import time
from collections.abc import AsyncIterator

import aiohttp
from aiohttp import web

from bot.jobserver.egress.model_relay import model_relay
from bot.jobserver.egress.providers import ANTHROPIC, ModelLogin

EVENT = (
    b'event: content_block_delta\ndata: {"type": "content_block_delta", "delta": {"text": "'
    + b"word " * 20
    + b'"}}\n\n'
)
SMALL = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
LARGE = {"model": "m", "messages": [{"role": "user", "content": "a sentence, and another one. " * 7_000}]}
"""200 kB: a long conversation."""


async def serve() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        left = int(request.headers.get("X-App", len(EVENT)))
        piece = EVENT if left <= len(EVENT) else EVENT * 100
        while left > 0:
            await response.write(piece)
            left -= len(piece)
        return response

    app = web.Application(client_max_size=1 << 30)
    app.router.add_post("/v1/messages", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    sys.stdout.write(f"http://127.0.0.1:{runner.addresses[0][1]}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)  # until the parent exits
    await runner.cleanup()


@contextlib.asynccontextmanager
async def server() -> AsyncIterator[str]:
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(sys.executable, __file__, "--serve", stdin=pipe, stdout=pipe)
    assert child.stdin is not None
    assert child.stdout is not None
    yield (await child.stdout.readline()).decode().strip()
    child.stdin.close()
    await child.wait()


class Way:
    """One of the two ways to the model."""

    def __init__(self, session: aiohttp.ClientSession, address: str, key: str) -> None:
        self._session = session
        self._address = address
        self._headers = {"Content-Type": "application/json", "x-api-key": key}

    async def first_byte(self, body: bytes) -> float:
        """Milliseconds."""
        began = time.perf_counter()
        async with self._session.post(f"{self._address}/v1/messages", data=body, headers=self._headers) as response:
            await response.content.readany()
            taken = time.perf_counter() - began
            await response.read()
        return taken * 1000

    async def throughput(self, size: int) -> float:
        """Megabytes of events per second."""
        headers = {**self._headers, "X-App": str(size)}
        began = time.perf_counter()
        body = json.dumps(SMALL).encode()
        async with self._session.post(f"{self._address}/v1/messages", data=body, headers=headers) as response:
            taken = sum([len(piece) async for piece in response.content.iter_any()])
        return taken / (time.perf_counter() - began) / 1e6


async def compare(options: argparse.Namespace) -> None:
    async with contextlib.AsyncExitStack() as stack:
        address = await stack.enter_async_context(server())
        login = ModelLogin(ANTHROPIC, ANTHROPIC.header, "KEY", lambda _: "k", address)
        run = await stack.enter_async_context(model_relay(login, lambda _: None))
        direct = await stack.enter_async_context(aiohttp.ClientSession())
        connector = aiohttp.UnixConnector(str(run.socket))
        relayed = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        ways = {"direct": Way(direct, address, "k"), "relayed": Way(relayed, "http://relay", run.token)}
        for size, content in (("small", SMALL), ("200 kB", LARGE)):
            body = json.dumps(content).encode()
            times: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(options.rounds):
                for name, way in ways.items():
                    times[name].append(await way.first_byte(body))
            tell(f"first byte, {size} request (ms)", times)
        speeds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(5):
            for name, way in ways.items():
                speeds[name].append(await way.throughput(options.megabytes << 20))
        tell("throughput (MB/s)", speeds)


def tell(what: str, found: dict[str, list[float]]) -> None:
    direct, relayed = (statistics.median(found[way]) for way in ("direct", "relayed"))
    print(f"{what:36} direct {direct:8.2f}   relayed {relayed:8.2f}   ratio {relayed / direct:5.2f}")  # noqa: T201


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--megabytes", type=int, default=64)
    options = parser.parse_args()
    asyncio.run(serve() if options.serve else compare(options))


if __name__ == "__main__":
    main()
