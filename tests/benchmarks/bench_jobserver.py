"""The cost of a trivial job on a large repository, from the message to the pull request, and its remains on disk.

    python tests/benchmarks/bench_jobserver.py [--megabytes 238] [--pages 1131] [--rounds 5] [--at-once 10]

Each round runs a job, and beside it the same steps with git alone: a clone from a mirror, a commit, a push. The
first job is requested once the server's health reports the mirror.
"""

import argparse
import asyncio
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.worlds import jobserver_world
from support.worlds.jobserver_world import JobServerWorld, git, running

PICTURE_BYTES = 200_000
LINES = 120
PAUSE_S = 1.0
WAIT_S = 300.0
LOOKS_S = 0.02
LOOKS_AT_MANY_S = 0.1
"""The factor by which the last job may seem slower."""
WORDS = ("a", "page", "about", "lamps", "and", "how", "their", "colour", "is", "chosen", "for", "every", "table")


def make_repository(directory: Path, *, pages: int, megabytes: int) -> Path:
    """Adds pages of text, and images that changed now and then, so that most of it is history."""
    random_ = random.Random(1)  # noqa: S311 - the same repository each time
    directory.mkdir(parents=True)
    git(directory, "init", "--quiet", "--initial-branch=main")
    for number in range(pages):
        page = directory / f"docs/{number % 40}/page{number}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        lines = (" ".join(random_.choices(WORDS, k=14)) for _ in range(LINES))
        page.write_text(f"# Page {number}\n\n" + "\n".join(lines) + "\n")
    in_the_tree = megabytes * 1_000_000 // PICTURE_BYTES // 2
    for start in range(0, 2 * in_the_tree, 100):
        for number in range(start, start + 100):
            picture = directory / f"images/{number % in_the_tree}.png"
            picture.parent.mkdir(exist_ok=True)
            picture.write_bytes(random_.randbytes(PICTURE_BYTES))
        git(directory, "add", "--all")
        git(directory, "commit", "--quiet", "-m", f"Pictures from {start}")
    return directory


def megabytes_of(directory: Path) -> float:
    counted = subprocess.run(["du", "-sk", str(directory)], check=True, capture_output=True, text=True)
    return int(counted.stdout.split()[0]) / 1000


async def seconds(work: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await work()
    return time.perf_counter() - started


async def jobs_at_once(world: JobServerWorld, count: int) -> None:
    """Asks for all, then looks at one after the other: this client shares the server's process."""
    prompts = [f"Add a page called Bench {time.time_ns()} {number} with the text: A lamp." for number in range(count)]
    pause = LOOKS_S if count == 1 else LOOKS_AT_MANY_S
    for created in [await world.create(prompt) for prompt in prompts]:
        ended = await ended_job(world, created.raise_for_status().json()["id"], pause)
        if ended["status"] != "completed" or not ended["prLink"]:
            raise SystemExit(f"a job failed: {ended}")


async def ended_job(world: JobServerWorld, job_id: str, pause: float) -> dict[str, Any]:
    while (job := await world.job(job_id))["status"] == "active":  # noqa: ASYNC110 (it ends in another process)
        await asyncio.sleep(pause)
    return job


async def measure(repository: Path, directory: Path, options: argparse.Namespace) -> None:
    jobs, alone, data = [], [], directory / "data"
    mirror = directory / "mirror.git"
    mirrored = await seconds(lambda: asyncio.to_thread(mirror_by_git, repository, mirror))
    async with running(repository, data, max_concurrent_jobs=2, rate_limit=10_000) as world:
        made = await seconds(lambda: until_mirrored(world))
        first = await seconds(lambda: jobs_at_once(world, 1))
        for _ in range(options.rounds):
            await asyncio.sleep(PAUSE_S)  # as people do between two messages
            jobs.append(await seconds(lambda: jobs_at_once(world, 1)))
            await asyncio.sleep(PAUSE_S)
            alone.append(await seconds(lambda: by_git(mirror, repository, directory)))
        after_another = await seconds(lambda: one_after_another(world, options.at_once))
        at_once = await seconds(lambda: jobs_at_once(world, options.at_once))
    one = statistics.median(alone)
    say("git alone: clone from a mirror, commit, push", one, one)
    say("git alone: a mirror", mirrored, one)
    say("the mirror, made at the start", made, one)
    say("the first job after that", first, one)
    say("a job, from message to pull request", statistics.median(jobs), one)
    say(f"{options.at_once} jobs, one after another", after_another, one)
    say(f"{options.at_once} jobs at once, two at a time", at_once, one)
    sys.stdout.write(f"at once / one after another: {at_once / after_another:.2f}\n")
    places = {
        "the repository": repository / ".git",
        "its mirror": data / "mirrors" / "docs.git",
        "all jobs' folders": data / "jobs",
    }
    for name, place in places.items():
        sys.stdout.write(f"{name:45} {megabytes_of(place) if place.exists() else 0:7.1f} MB\n")


async def until_mirrored(world: JobServerWorld) -> None:
    async def is_made() -> bool:
        return bool((await world.client.get("/health")).json().get("mirror", "made") == "made")

    await jobserver_world.until(is_made)


async def one_after_another(world: JobServerWorld, count: int) -> None:
    for _ in range(count):
        await jobs_at_once(world, 1)


def mirror_by_git(repository: Path, mirror: Path) -> None:
    git(mirror.parent, "clone", "--quiet", "--mirror", "--no-local", str(repository), str(mirror))


async def by_git(mirror: Path, repository: Path, directory: Path) -> None:
    await asyncio.to_thread(git_alone, mirror, repository, directory / f"clone{time.time_ns()}")


def git_alone(mirror: Path, repository: Path, clone: Path) -> None:
    git(clone.parent, "clone", "--quiet", str(mirror), str(clone))
    (clone / "bench.md").write_text("A lamp.\n")
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "-m", "Bench")
    git(clone, "push", "--quiet", str(repository), f"HEAD:refs/heads/bench/{clone.name}")


def say(what: str, taken: float, one: float) -> None:
    sys.stdout.write(f"{what:45} {taken:7.2f} s  {taken / one:6.2f} x git alone\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=238)
    parser.add_argument("--pages", type=int, default=1131)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pagehand-bench-") as directory:
        repository = make_repository(Path(directory, "docs"), pages=options.pages, megabytes=options.megabytes)
        jobserver_world.WAIT_S = WAIT_S
        asyncio.run(measure(repository, Path(directory), options))


if __name__ == "__main__":
    main()
