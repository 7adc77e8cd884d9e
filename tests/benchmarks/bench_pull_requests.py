"""What following pull requests costs: what GitHub charges for quiet ones, and the time of looking at an unchanged one.

    python tests/benchmarks/bench_pull_requests.py [--pulls 100] [--reads 300] [--rounds 7]

The first table counts calls in virtual hours, with the poller over a real SQLite database: GitHub charges what it
answers with anything but 304. The second compares a reading with as many bare conditional GETs of an aiohttp session,
in turn in one run; the server is a process of its own. Both goals are in the last line of each.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp

sys.path.insert(0, str(Path(__file__).parents[1]))

from sqlalchemy import insert
from support.fakes.github import DEPLOYMENTS, LINK, PULL, WEB, GitHubInMemory, pull
from support.fakes.ports import FakeClock
from support.servers.instant_servers import instant_servers
from support.worlds.store_world import a_thread

from bot.app.code_hosts import ConfiguredCodeHosts, github_hosts
from bot.app.settings.code_hosts import CodeHostSettings
from bot.codehosts.pull_request import NotModified
from bot.domain.threads.thread import ThreadState
from bot.jobapi.models import Job
from bot.runtime.rotating_secrets import RotatingSecret
from bot.scheduler.pull_request_poller import CLAIM_EVERY, PullRequestPoller
from bot.scheduler.worker import WorkerSettings
from bot.store.pull_requests import follow
from bot.store.schema.migration import migrate
from bot.store.schema.rows import thread_values
from bot.store.schema.tables import threads
from bot.store.store import Store, Transaction, open_store

HOUR, LEASE = 3_600.0, 30.0
HEADERS = {"Accept": "application/vnd.github+json", "User-Agent": "Pagehand", "X-GitHub-Api-Version": "2022-11-28"}
"""Which GitHub wants."""
MOST_CHARGED, MOST_TIMES = 200, 1.3


def link_of(number: int) -> str:
    return f"{WEB}/acme/docs/pull/{number}"


def quiet(count: int) -> GitHubInMemory:
    """A GitHub whose open pull requests have checks, a review, a comment and a preview, and do not change."""
    github = GitHubInMemory(is_odd=True)
    for number in range(1, count + 1):
        head = f"{number:040x}"
        path = PULL.replace("/7", f"/{number}")
        github.answers[path] = pull(number=number, head={"sha": head})
        github.answers[f"{path}/reviews"] = [{"id": 1, "state": "APPROVED", "user": {"login": "ana"}}]
        github.answers[f"{path}/comments"] = [{"id": 2, "path": "a.md", "line": 3, "body": "Fine."}]
        passed = {"name": "links", "status": "completed", "conclusion": "success"}
        github.checks(passed, ref=head, statuses=({"context": "site", "state": "success"},))
    github.answers[DEPLOYMENTS] = [{"id": 5, "environment": "preview"}]
    github.answers[f"{DEPLOYMENTS}/5/statuses"] = [{"state": "success", "environment_url": "https://preview.example"}]
    return github


async def no_body(_project: str, _job: str) -> bytes:
    raise AssertionError("no job API is asked")


async def _fill(store: Store, count: int) -> None:
    async def work(tx: Transaction) -> None:
        jobs = [
            a_thread(f"t{n}", ts=f"{n}.1", state=ThreadState(job=Job(f"j{n}", "completed", link_of(n))))
            for n in range(1, count + 1)
        ]
        await tx.session.connection.execute(
            insert(threads), [thread_values(thread) | {"updated_at": tx.now} for thread in jobs]
        )
        await follow(tx.session, [(f"t{n}", link_of(n)) for n in range(1, count + 1)])

    await store.transact(work)


async def charged(count: int) -> None:
    """Prints what GitHub charges in the first hour, and in one after a restart."""
    github, clock = quiet(count), FakeClock()
    with tempfile.TemporaryDirectory() as directory:
        url = f"sqlite:///{directory}/bench.sqlite3"
        await migrate(url)
        for name in ("the first look", "the hour after it", "an hour after a restart"):
            store = await open_store(url, clock=clock)
            if not github.charged and name == "the first look":
                await _fill(store, count)
            github.charged.clear()
            hosts = ConfiguredCodeHosts([github.code_host], no_body, lambda _: False, str)
            settings = WorkerSettings("bench", clock, lease=LEASE, call_timeout=20.0, on_commit=lambda _: None)
            poller = PullRequestPoller(store, hosts, settings)
            looks = 0
            for _ in range(1 if name == "the first look" else int(HOUR / CLAIM_EVERY)):
                for claimed in await poller.claim(count):
                    looks += 1
                    await poller.process(claimed, clock.monotonic())
                clock.advance(CLAIM_EVERY)
            await store.close()
            sys.stdout.write(f"{name:>24}: {count} pull requests, {looks:5} looks, {len(github.charged):4} charged\n")
    sys.stdout.write(f"{'goal':>24}: at most {MOST_CHARGED} charged in an hour of quiet\n\n")


async def unchanged(options: argparse.Namespace) -> None:
    """Prints the time of a reading of an unchanged pull request, and of the same calls alone."""
    github = quiet(7)
    known = await github.found()
    async with instant_servers() as address, aiohttp.ClientSession() as session:
        settings = CodeHostSettings(address, RotatingSecret("planted-token"))
        (host,) = github_hosts([settings], session, str)
        link = LINK.replace(WEB, address)
        # What became of a deployment is read only when the deployments have changed.
        calls = {path: etag for path, etag in known.etags.items() if "/statuses?" not in path}
        headers = {"Authorization": "Bearer planted-token", **HEADERS}

        async def read() -> None:
            assert isinstance(await host.read(link, known), NotModified)

        async def bare() -> None:
            for path, etag in calls.items():
                async with session.get(
                    f"{settings.api_url}{path}", headers={**headers, "If-None-Match": etag}
                ) as answer:
                    await answer.read()

        ratios = []
        for _ in range(options.rounds):
            alone, reading = await _each(bare, options.reads), await _each(read, options.reads)
            ratios.append((reading[0] / alone[0], reading[1] / alone[1]))
            sys.stdout.write(
                f"{len(calls)} GETs alone {alone[0]:.2f} ms ({alone[1]:.2f} of CPU), "
                f"a reading {reading[0]:.2f} ms ({reading[1]:.2f} of CPU)\n"
            )
        wall, cpu = (statistics.median(column) for column in zip(*ratios, strict=True))
        sys.stdout.write(f"median: x{wall:.2f}, x{cpu:.2f} of CPU; goal: at most x{MOST_TIMES}\n")


async def _each(work: Callable[[], Awaitable[None]], count: int) -> tuple[float, float]:
    cpu, begin = time.process_time(), time.perf_counter()
    for _ in range(count):
        await work()
    return (time.perf_counter() - begin) / count * 1000, (time.process_time() - cpu) / count * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pulls", type=int, default=100)
    parser.add_argument("--reads", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    asyncio.run(charged(options.pulls))
    asyncio.run(unchanged(options))


if __name__ == "__main__":
    main()
