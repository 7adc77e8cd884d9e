"""What a trivial job costs on a large repository, from the message to the pull request, and what is left on the disk.

    python tests/benchmarks/bench_jobserver.py [--megabytes 238] [--pages 1131] [--rounds 5] [--at-once 10]

Each round has a job, and beside it a full clone of the same repository: that is what a job costs that shares nothing.
"""

import argparse
import asyncio
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.worlds.jobserver_world import JobServerWorld, git, running

PICTURE_BYTES = 200_000
LINES = 120
WORDS = ("a", "page", "about", "lamps", "and", "how", "their", "colour", "is", "chosen", "for", "every", "table")


def make_repository(directory: Path, *, pages: int, megabytes: int) -> Path:
    """Pages of text, and pictures that were changed now and then, so that most of it is history."""
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


async def job(world: JobServerWorld, number: int) -> None:
    prompt = f"Add a page called Bench {time.time_ns()} {number} with the text: A lamp."
    ended = await world.done(prompt)
    if ended["status"] != "completed" or not ended["prLink"]:
        raise SystemExit(f"a job failed: {ended}")


async def measure(repository: Path, directory: Path, rounds: int, at_once: int) -> None:
    jobs, clones = [], []
    async with running(repository, directory / "data", max_concurrent_jobs=at_once, rate_limit=10_000) as world:
        first = await seconds(lambda: job(world, 0))
        for _ in range(rounds):
            jobs.append(await seconds(lambda: job(world, 0)))
            clones.append(await seconds(lambda: asyncio.to_thread(full_clone, repository, directory / "clone")))
            await asyncio.to_thread(shutil.rmtree, directory / "clone")
        many = await seconds(lambda: asyncio.gather(*(job(world, number) for number in range(at_once))))
    one, clone = statistics.median(jobs), statistics.median(clones)
    say("the first job, which makes the mirror", first, one)
    say("a job, from message to pull request", one, one)
    say("a full clone of the repository", clone, one)
    say(f"{at_once} jobs at once, without an error", many, one)
    data = directory / "data"
    sizes = {
        "the repository": repository / ".git",
        "its mirror": data / "mirror.git",
        "all jobs' folders": data / "jobs",
    }
    for name, place in sizes.items():
        sys.stdout.write(f"{name:40} {megabytes_of(place):7.1f} MB\n")


def say(what: str, taken: float, one: float) -> None:
    sys.stdout.write(f"{what:40} {taken:7.2f} s  {taken / one:6.1f} x a job\n")


def full_clone(repository: Path, clone: Path) -> None:
    git(clone.parent, "clone", "--quiet", "--no-local", str(repository), str(clone))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=238)
    parser.add_argument("--pages", type=int, default=1131)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pagehand-bench-") as directory:
        repository = make_repository(Path(directory, "docs"), pages=options.pages, megabytes=options.megabytes)
        asyncio.run(measure(repository, Path(directory), options.rounds, options.at_once))


if __name__ == "__main__":
    main()
