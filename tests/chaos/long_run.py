"""Hundreds of kills and faults, on both databases at the same time, and a table of what they did.

    python tests/chaos/long_run.py --minutes 6 [--seed 7] [--keep DIRECTORY]

The same seed gives the same plan; what the plan meets depends on the machine. Ends with 1 where a promise was broken.
"""

import argparse
import asyncio
import secrets
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from support.chaos.process_group import open_process_group  # noqa: E402 - run as a script, Python looks for modules beside it only
from support.chaos.process_world import Round  # noqa: E402 - the same
from support.chaos.report import missed, table  # noqa: E402 - the same
from support.chaos.rounds import (  # noqa: E402 - the same
    new_sqlite,
    one_instance,
    play_round,
    three_instances_and_a_paused_one,
    with_faults,
)
from support.chaos.run import RoundResult  # noqa: E402 - the same
from support.scratch import IN_MEMORY  # noqa: E402 - the same
from support.servers.postgres import PostgresServer, postgres_server  # noqa: E402 - the same

UNLIMITED = float("inf")
TO_QUIET = 45.0
"""Seconds that a round takes after its last kill, if all is well."""
SLACK_PACE = 6.0
"""The factor by which Slack's minute is shortened, if its limits are enforced."""
SHORTEST = 20.0
"""Seconds of kills; a round with fewer is left out."""


def main() -> int:
    """Plays rounds until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=6.0, help="how long it may take in all")
    parser.add_argument("--seed", type=int, default=None, help="of an earlier run")
    parser.add_argument("--keep", type=Path, default=None, help="where the processes' logs are to stay")
    options = parser.parse_args()
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    _show(f"seed {seed}")
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as scratch, postgres_server(fsync="off") as server:
        directory = options.keep or Path(scratch)
        directory.mkdir(parents=True, exist_ok=True)
        results = asyncio.run(_rounds(server, directory, options.minutes * 60.0, seed))
    _show(table(results))
    _show(f"Points at which nobody was killed: {', '.join(missed(results)) or 'none'}.")
    faults = [fault for result in results for fault in result.verdict.faults]
    _show("\n".join(faults) or "Nothing was lost, and nothing was said or sent twice.")
    return 1 if faults else 0


async def _rounds(server: PostgresServer, directory: Path, seconds: float, seed: int) -> list[RoundResult]:
    """Yields two rounds, so that each database is tested with a job API of either kind, and one process with
    Slack calls of either. In the first, the processes on PostgreSQL keep within Slack's limits; in the second,
    the one on SQLite may not react.
    """
    end, results = time.monotonic() + seconds, list[RoundResult]()
    async with open_process_group(directory) as opened:
        for number, idempotent in enumerate((False, True), start=1):
            left = (end - time.monotonic()) / (3 - number) - TO_QUIET
            if left < SHORTEST and results:
                break
            async with server.database() as postgres:
                sqlite = await new_sqlite(directory, f"round-{number}")
                plans = (
                    Round(
                        f"SQLite {number}",
                        sqlite,
                        with_faults(one_instance),
                        idempotent,
                        UNLIMITED,
                        left,
                        http=number == 2,
                        without=("reactions:write",) if number == 2 else (),
                    ),
                    Round(
                        f"PostgreSQL {number}",
                        postgres,
                        with_faults(three_instances_and_a_paused_one),
                        not idempotent,
                        UNLIMITED,
                        left,
                        slack_pace=SLACK_PACE if number == 1 else None,
                    ),
                )
                results += await asyncio.gather(*(play_round(opened, directory, plan, seed) for plan in plans))
            _show(table(results))
    return results


def _show(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
