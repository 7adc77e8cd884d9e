"""How long `--version` and `--help` take, as a multiple of what the interpreter itself takes to start.

    python tests/benchmarks/bench_start.py [--rounds 15]

Rounds alternate, and the median of each is taken, so that a busy machine disturbs all alike.
"""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bot.cli.main import main as pagehand

ROOT = Path(__file__).parents[2]
BARE = ("-c", "pass")


def tried() -> list[tuple[str, ...]]:
    """The interpreter's arguments, the bare one's first."""
    commands = [("--version",), ("--help",), *((name, "--help") for name in pagehand.commands)]
    return [BARE, *(("-m", "bot", *arguments) for arguments in commands)]


def milliseconds(arguments: tuple[str, ...]) -> float:
    """Returns how long a process takes from its start to its end."""
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - started) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    taken: dict[tuple[str, ...], list[float]] = {arguments: [] for arguments in tried()}
    for _ in range(options.rounds):
        for arguments, times in taken.items():
            times.append(milliseconds(arguments))
    medians = {arguments: statistics.median(times) for arguments, times in taken.items()}
    for arguments, median in medians.items():
        sys.stdout.write(f"python {' '.join(arguments):28} {median:6.1f} ms {median / medians[BARE]:6.1f} x\n")


if __name__ == "__main__":
    main()
