"""Hundreds of kills and faults, on both databases at the same time, and a table of what they did.

    python tests/chaos/long_run.py --minutes 6 [--seed 7] [--keep DIRECTORY]

The same seed gives the same plan; what the plan meets depends on the machine. Ends with 1 where a promise was broken.
"""

import argparse
import asyncio
import secrets
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from support.chaos.process_group import open_process_group  # noqa: E402 - run as a script, Python looks for modules beside it only
from support.chaos.process_world import Disruption, Round  # noqa: E402 - the same
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
from support.servers.forked_commands import forked_commands  # noqa: E402 - the same
from support.servers.postgres import PostgresServer, postgres_server  # noqa: E402 - the same

UNLIMITED = float("inf")
TO_QUIET = 170.0
"""Seconds that people go on after the last kill, until nothing is left to do, if all is well."""
SHORTEST = 20.0
"""Seconds of kills, however few minutes are given."""
SLACK_PACE = 6.0
"""The factor by which Slack's minute is shortened, if its limits are enforced."""


def main() -> int:
    """Plays rounds until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=6.0, help="how long it may take in all")
    parser.add_argument("--seed", type=int, default=None, help="of an earlier run")
    parser.add_argument("--keep", type=Path, default=None, help="where the processes' logs are to stay")
    options = parser.parse_args()
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    _show(f"seed {seed}")
    with (
        tempfile.TemporaryDirectory(dir=IN_MEMORY) as scratch,
        postgres_server(fsync="off") as server,
        forked_commands() as forked,
    ):
        directory = options.keep or Path(scratch)
        directory.mkdir(parents=True, exist_ok=True)
        results = asyncio.run(_rounds(forked, server, directory, options.minutes * 60.0, seed))
    _show(table(results))
    _show(f"Points at which nobody was killed: {', '.join(missed(results)) or 'none'}.")
    faults = [fault for result in results for fault in result.verdict.faults]
    _show("\n".join(faults) or "Nothing was lost, and nothing was said or sent twice.")
    return 1 if faults else 0


async def _rounds(
    forked: tuple[str, ...], server: PostgresServer, directory: Path, seconds: float, seed: int
) -> list[RoundResult]:
    """Plays two rounds on each database at the same time, so that each is tested with a job API of either kind, and one
    process with Slack calls of either. The first processes on PostgreSQL keep within Slack's limits; the second one on
    SQLite may not react.
    """
    with_kills = max(seconds - TO_QUIET, SHORTEST)
    async with (
        open_process_group(forked, directory) as opened,
        server.database() as postgres,
        server.database() as other_postgres,
    ):

        def plan(name: str, database: str, disruption: Disruption, **options: Any) -> Round:
            return Round(name, database, with_faults(disruption), kills=UNLIMITED, seconds=with_kills, **options)

        three = three_instances_and_a_paused_one
        plans = (
            plan("SQLite 1", await new_sqlite(directory, "1"), one_instance, idempotent=False),
            plan("PostgreSQL 1", postgres, three, idempotent=True, slack_pace=SLACK_PACE),
            plan(
                "SQLite 2",
                await new_sqlite(directory, "2"),
                one_instance,
                idempotent=True,
                http=True,
                without=("reactions:write",),
            ),
            plan("PostgreSQL 2", other_postgres, three, idempotent=False),
        )
        return await asyncio.gather(*(play_round(opened, directory, plan, seed) for plan in plans))


def _show(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
