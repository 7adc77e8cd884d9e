"""How long `--version` and `--help` take, as a multiple of what the interpreter itself takes to start; and the CPU
until the bot is ready, as a multiple of what importing its libraries takes.

    python tests/benchmarks/bench_start.py [--rounds 15]

Rounds alternate, and the median of each is taken, so that a busy machine disturbs all alike. Run it once before, so
that every module is compiled.
"""

import argparse
import asyncio
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.servers.app_under_load import environment, process
from support.servers.free_ports import free_port
from support.servers.instant_servers import instant_servers

from bot.cli.main import main as pagehand
from bot.store.schema.migration import migrate

ROOT = Path(__file__).parents[2]
BARE = ("-c", "pass")
LIBRARIES = (
    "aiohttp.web",
    "click",
    "httpx_aiohttp",
    "markdown_it",
    "pydantic_settings",
    "slack_bolt.app.async_app",
    "slack_sdk.socket_mode.aiohttp",
    "slack_sdk.web.async_client",
    "sqlalchemy.dialects.postgresql",
    "sqlalchemy.dialects.sqlite",
    "sqlalchemy.ext.asyncio",
)


def tried() -> list[tuple[str, ...]]:
    """The interpreter's arguments, the bare one's first."""
    commands = [("--version",), ("--help",), *((name, "--help") for name in pagehand.commands)]
    return [BARE, *(("-m", "bot", *arguments) for arguments in commands)]


def milliseconds(arguments: tuple[str, ...]) -> float:
    """Returns how long a process takes from its start to its end."""
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - started) * 1000


def cpu_of_libraries() -> float:
    """Returns the seconds of CPU that importing the libraries takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", f"import {', '.join(LIBRARIES)}"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


async def cpu_until_ready(address: str, directory: str) -> float:
    """Returns the seconds of CPU until the bot accepts requests, on a database that has its tables."""
    port = free_port()
    env = environment(address, port, f"sqlite:///{directory}/bench.sqlite3", directory)
    async with process(port, "-m", "bot", "run", env=env) as bot:
        return float(sum(bot.cpu_times()[:2]))


async def start(rounds: int) -> None:
    libraries, ready = [], []
    async with instant_servers() as address:
        with tempfile.TemporaryDirectory() as directory:
            await migrate(f"sqlite:///{directory}/bench.sqlite3")
            for _ in range(rounds):
                libraries.append(cpu_of_libraries())
                ready.append(await cpu_until_ready(address, directory))
    floor, taken = statistics.median(libraries), statistics.median(ready)
    sys.stdout.write(f"{floor:.2f} s of CPU for the libraries, {taken:.2f} until ready: {taken / floor:.2f} x\n")


def commands(rounds: int) -> None:
    taken: dict[tuple[str, ...], list[float]] = {arguments: [] for arguments in tried()}
    for _ in range(rounds):
        for arguments, times in taken.items():
            times.append(milliseconds(arguments))
    medians = {arguments: statistics.median(times) for arguments, times in taken.items()}
    for arguments, median in medians.items():
        sys.stdout.write(f"python {' '.join(arguments):28} {median:6.1f} ms {median / medians[BARE]:6.1f} x\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    commands(options.rounds)
    asyncio.run(start(options.rounds))


if __name__ == "__main__":
    main()
