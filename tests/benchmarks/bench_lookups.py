"""How long commands of unknown people wait for Slack's look-ups, beside one of a known person.

    python tests/benchmarks/bench_lookups.py [--people 40] [--seconds 0.25] [--rounds 3] [--database-url URL]

In each round the whole bot runs twice, once with a Slack that answers look-ups of people and channels at once, and once
with one that takes `--seconds`. All commands arrive together, each by a new person in a new channel; then one by a
known person in a known channel. It prints how long it took until the last job was created, and until the known person's
was, with the differences that the slow look-ups made: medians of the rounds.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.servers.app_under_load import Load, environment, process
from support.servers.free_ports import free_port
from support.servers.instant_servers import instant_servers

KNOWN = "UKNOWN"


@dataclass(frozen=True)
class Waited:
    """In seconds: until the last job of a new person was created, and until that of a known person was."""

    new: float
    known: float


async def created(session: aiohttp.ClientSession, address: str, prompts: Sequence[str]) -> list[float]:
    """Returns when the jobs with these prompts were created."""
    until = time.monotonic() + 120.0
    while time.monotonic() < until:
        async with session.get(f"{address}/created") as response:
            jobs: dict[str, float] = await response.json()
        found = [next((at for body, at in jobs.items() if prompt in body), None) for prompt in prompts]
        if None not in found:
            return [at for at in found if at is not None]
        await asyncio.sleep(0.05)
    raise SystemExit("not all jobs were created")


async def measure(options: argparse.Namespace, look_ups: float) -> Waited:
    """Runs the bot once."""
    port = free_port()
    async with instant_servers(look_ups=look_ups) as address:
        with tempfile.TemporaryDirectory(dir=options.directory) as directory:
            url = options.database_url or f"sqlite:///{directory}/bench.sqlite3"
            async with (
                process(port, "-m", "bot", "run", env=environment(address, port, url, directory)),
                aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
            ):
                load = Load(session, port)
                await load.send(text="warm up", user_id=KNOWN, channel_id="CKNOWN")
                await created(session, address, ["warm up"])
                return await _together(load, session, address, options.people)


async def _together(load: Load, session: aiohttp.ClientSession, address: str, people: int) -> Waited:
    prompts = [f"task number {number:04}" for number in range(people)]
    begin = time.time()
    await asyncio.gather(
        *(
            load.send(text=prompt, user_id=f"UNEW{number}", channel_id=f"CNEW{number}")
            for number, prompt in enumerate(prompts)
        )
    )
    asked = time.time()
    await load.send(text="the known task", user_id=KNOWN, channel_id="CKNOWN")
    (known,) = await created(session, address, ["the known task"])
    return Waited(max(await created(session, address, prompts)) - begin, known - asked)


async def compare(options: argparse.Namespace) -> None:
    rounds = [(await measure(options, 0.0), await measure(options, options.seconds)) for _ in range(options.rounds)]
    for what in ("new", "known"):
        at_once, slow = (statistics.median(getattr(each[place], what) for each in rounds) for place in (0, 1))
        more = statistics.median(getattr(each[1], what) - getattr(each[0], what) for each in rounds)
        sys.stdout.write(
            f"{what:>5}: {at_once:.2f} s; with look-ups of {options.seconds:g} s {slow:.2f} s ({more:+.2f} s)\n"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=0.25)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--database-url", default="")
    parser.add_argument("--directory", help="where the database's file is made")
    asyncio.run(compare(parser.parse_args()))


if __name__ == "__main__":
    main()
