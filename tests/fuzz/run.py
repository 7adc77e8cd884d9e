"""Coverage-guided fuzzing of what reads other people's bytes.

    python tests/fuzz/run.py --list
    python tests/fuzz/run.py TARGET --seconds 60

Ends with 0 when nothing was found; else the input that did it is printed and kept.
Needs atheris (`pagehand[test]`, on Linux).
"""

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import atheris  # type: ignore[import-untyped,import-not-found,unused-ignore]  # optional, and without types

sys.path[:0] = [str(directory) for directory in Path(__file__).resolve().parents[1:3]]

with atheris.instrument_imports(include=["bot"]):
    from fuzz.fuzz_targets import TARGETS

warnings.filterwarnings("ignore", module="aiohttp")  # it reports each malformed header

SLOWEST = 10
"""Seconds after which one input counts as a finding: no text may block a process."""
LONGEST = 4_096
MEMORY_MB = 1_024


def fuzz(target: str, seconds: int, directory: Path) -> None:
    """Does not return: the engine ends the process."""
    made, seeds = TARGETS[target]
    corpus = directory / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    options = {
        "max_total_time": seconds,
        "max_len": LONGEST,
        "timeout": SLOWEST,
        "rss_limit_mb": MEMORY_MB,
        "artifact_prefix": f"{directory}/found-",
        "print_final_stats": 1,
    }
    with atheris.instrument_imports(include=["bot"]):
        read: Callable[[bytes], None] = made()
    atheris.Setup([target, *(f"-{name}={value}" for name, value in options.items()), str(corpus)], read)
    atheris.Fuzz()


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("target", nargs="?", choices=sorted(TARGETS))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--list", action="store_true", help="the targets")
    chosen = parser.parse_args(arguments)
    if chosen.list or chosen.target is None:
        print("\n".join(sorted(TARGETS)))  # noqa: T201 - a command's answer
        return
    fuzz(chosen.target, chosen.seconds, Path(tempfile.mkdtemp(prefix="pagehand-fuzz-")))


if __name__ == "__main__":
    main(sys.argv[1:])
