"""CPU a request of the job client, beside bare aiohttp with the same headers, side by side in one run.

    python tests/benchmarks/bench_job_client.py [--requests 1000] [--in-flight 50] [--rounds 3]

The server runs in a process of its own, so that only the client's CPU is counted; rounds alternate, and the best of
each is taken, so that a busy machine disturbs both alike.
"""

import argparse
import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
from aiohttp import web
from pydantic import SecretStr

from bot.jobs.client import HttpJobApi
from bot.jobs.settings import JobApiSettings

JOB = b'{"id": "job_1", "status": "active", "source": {"repository": "acme/docs", "ref": "main"}, "prLink": null}'
HEADERS = {"Authorization": "Bearer bench-key", "Accept": "application/json", "Accept-Encoding": "identity"}


async def serve() -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        await request.read()
        return web.Response(body=JOB, content_type="application/json")

    runner = web.ServerRunner(web.Server(answer, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    sys.stdout.write(f"http://127.0.0.1:{runner.addresses[0][1]}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)  # till the parent goes
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


Call = Callable[[int], Awaitable[object]]


async def cpu_a_request(call: Call, options: argparse.Namespace) -> float:
    """Milliseconds of CPU, with that many requests in flight all the time."""
    left = iter(range(options.requests))

    async def work() -> None:
        for number in left:
            await call(number)

    await call(0)
    before = time.process_time()
    await asyncio.gather(*(work() for _ in range(options.in_flight)))
    return (time.process_time() - before) / float(options.requests) * 1000


async def compare(options: argparse.Namespace) -> None:
    connector = aiohttp.TCPConnector(limit=options.in_flight)
    async with server() as address, aiohttp.ClientSession(connector=connector, headers=HEADERS) as session:
        settings = JobApiSettings(base_url=address, api_key=SecretStr("bench-key"), max_connections=options.in_flight)
        api = HttpJobApi(settings)

        async def bare(number: int) -> None:
            async with session.get(f"{address}/v2/agent/acme/job/job_{number}") as response:
                await response.read()

        async def get(number: int) -> None:
            await api.get("acme", f"job_{number}")

        async def create(number: int) -> None:
            await api.create("acme", "Fix it", idempotency_key=str(number))

        calls: dict[str, Call] = {"bare aiohttp": bare, "get": get, "create (a connection each)": create}
        best = dict.fromkeys(calls, float("inf"))
        for _ in range(options.rounds):
            for name, call in calls.items():
                best[name] = min(best[name], await cpu_a_request(call, options))
        for name, cpu in best.items():
            sys.stdout.write(f"{name}: {cpu:.3f} ms of CPU (x{cpu / best['bare aiohttp']:.2f})\n")
        await api.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--in-flight", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    asyncio.run(serve() if options.serve else compare(options))


if __name__ == "__main__":
    main()
