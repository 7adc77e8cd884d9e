"""CPU a request of the job client, over the aiohttp transport and over httpx's own pool, side by side in one run.

    python tests/benchmarks/bench_job_client.py [--requests 1000] [--in-flight 50] [--rounds 3]

The server runs in a process of its own, so that only the client's CPU is counted; rounds alternate, and the best of
each is taken, so that a busy machine disturbs both alike.
"""

import argparse
import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator

import httpx
from aiohttp import web
from pydantic import SecretStr

from bot.jobs.client import HttpJobApi
from bot.jobs.settings import JobApiSettings
from bot.ports.job_api import PromptCall

JOB = b'{"id": "job_1", "status": "active", "source": {"repository": "acme/docs", "ref": "main"}, "prLink": null}'


async def serve() -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        await request.read()
        return web.Response(body=JOB, content_type="application/json")

    runner = web.ServerRunner(web.Server(answer, access_log=None))
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


async def cpu_a_request(api: HttpJobApi, options: argparse.Namespace, *, post: bool) -> float:
    """Milliseconds of CPU, with that many requests always in flight."""
    left = iter(range(options.requests))

    async def work() -> None:
        for number in left:
            if post:
                await api.create("acme", PromptCall("Fix it", str(number)))
            else:
                await api.get("acme", "job_1")

    await api.get("acme", "job_1")
    before = time.process_time()
    await asyncio.gather(*(work() for _ in range(options.in_flight)))
    return (time.process_time() - before) / float(options.requests) * 1000


async def compare(options: argparse.Namespace) -> None:
    async with server() as address:
        settings = JobApiSettings(base_url=address, api_key=SecretStr("bench-key"), max_connections=options.in_flight)
        limits = httpx.Limits(max_connections=options.in_flight, max_keepalive_connections=options.in_flight)
        apis = {
            "httpx's own pool": HttpJobApi(settings, transport=httpx.AsyncHTTPTransport(limits=limits)),
            "over aiohttp": HttpJobApi(settings),
        }
        for post in (False, True):
            best = dict.fromkeys(apis, float("inf"))
            for _ in range(options.rounds):
                for name, api in apis.items():
                    best[name] = min(best[name], await cpu_a_request(api, options, post=post))
            pool, over = best.values()
            what = "create (over aiohttp: a connection each)" if post else "get"
            figures = "   ".join(f"{name} {cpu:.2f} ms" for name, cpu in best.items())
            sys.stdout.write(f"{what}, {options.in_flight} in flight:   {figures}   ratio {pool / over:.1f}\n")
        for api in apis.values():
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
