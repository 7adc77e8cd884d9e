"""The lanes that tests run in: the default, the full one, and a slice of what only the full one has.

`tests/README.md` says what each lane proves.
"""

import json
import math
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest

TESTS = Path(__file__).parents[1]
RECORD = TESTS / "seconds.json"
"""The average seconds of a test in the last recorded full run, by lane and file; `.ci/full` writes it."""
WORKERS = 4
"""How many ran in parallel when that was recorded."""
SLICE = 40.0 * WORKERS
"""Seconds that a slice takes, summed over all workers."""
TURNS = 3
"""With as many consecutive commits, the default lane runs each `in_turn` test with each of its variants."""
UNKNOWN = 0.1
"""Assumed seconds for a test in a file that is not recorded yet."""

Seconds = Mapping[str, Mapping[str, float]]


@cache
def commit_count() -> int:
    """Returns the number of commits; 0 outside a repository."""
    try:
        done = subprocess.run(
            ("git", "rev-list", "--count", "HEAD"), cwd=TESTS, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return 0
    return int(done.stdout)


def recorded_seconds() -> Seconds:
    record: Seconds = json.loads(RECORD.read_text(encoding="utf-8"))
    return record


def lane_of(item: pytest.Item) -> str:
    return "full" if item.get_closest_marker("full") else "default"


def divide(item: pytest.Item, commits: int) -> None:
    """Moves to the full lane: one database of an `either_database` test, SQLite for half of these tests, and two thirds
    of the `in_turn` tests and of their variants, depending on the number of commits.
    """
    if not isinstance(item, pytest.Function):
        return
    indices: Mapping[str, int] = item.callspec.indices if hasattr(item, "callspec") else {}
    if indices and item.get_closest_marker("either_database") and _is_other_database(item):
        item.add_marker("full")
    if item.get_closest_marker("in_turn") and not has_turn(item.originalname, indices, commits):
        item.add_marker("full")


def has_turn(name: str, indices: Mapping[str, int], commits: int) -> bool:
    """Returns whether the default lane runs a test; `indices` are a variant's places in the lists of parameters."""
    return (crc32(name.encode()) + sum(indices.values()) + commits) % TURNS == 0


def _is_other_database(item: pytest.Function) -> bool:
    databases = ("sqlite", "postgres")
    chosen = databases[crc32(f"{item.path.name} {item.originalname}".encode()) % 2]
    return any(value in databases and value != chosen for value in item.callspec.params.values())


def seconds_of(item: pytest.Item, seconds: Seconds) -> float:
    """Returns the average of the tests in the same file and lane, or in the other lane if this one has none."""
    file = str(item.path.relative_to(TESTS))
    lanes = {lane: files[file] for lane, files in seconds.items() if file in files}
    return lanes.get(lane_of(item)) or max(lanes.values(), default=UNKNOWN)


def slice_of(items: Sequence[pytest.Item], number: int, seconds: Seconds) -> list[pytest.Item]:
    """Returns one slice. As many consecutive numbers as there are slices select each test once."""
    slices: list[list[pytest.Item]] = [[] for _ in range(slice_count(items, seconds))]
    totals = [0.0] * len(slices)
    for item in sorted(items, key=lambda item: seconds_of(item, seconds), reverse=True):
        least = totals.index(min(totals))
        slices[least].append(item)
        totals[least] += seconds_of(item, seconds)
    chosen = set(slices[number % len(slices)])
    return [item for item in items if item in chosen]


def slice_count(items: Sequence[pytest.Item], seconds: Seconds) -> int:
    return max(math.ceil(sum(seconds_of(item, seconds) for item in items) / SLICE), 1)


class Recorder:
    """A plugin that records how long each file's tests took, if all of them passed."""

    def __init__(self) -> None:
        self._took: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = str(Path(report.nodeid.partition("::")[0]).relative_to(TESTS.name))
        self._took["full" if "full" in report.keywords else "default", file][report.nodeid] += report.duration

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus != pytest.ExitCode.OK:
            return
        record: dict[str, dict[str, float]] = {"default": {}, "full": {}}
        for (lane, file), tests in sorted(self._took.items()):
            record[lane][file] = round(sum(tests.values()) / len(tests), 3)
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
