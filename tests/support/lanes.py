"""The lanes that tests run in: the default, the full one, and a slice of what only the full one has.

`tests/README.md` says what each lane proves.
"""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from zlib import crc32

import pytest

TESTS = Path(__file__).parents[1]
RECORD = TESTS / "seconds.json"
"""The average seconds of a test in the last recorded full run, by lane and file; `.ci/full` writes it."""
WORKERS = 4
"""How many ran in parallel when that was recorded."""
SLICE = 45.0 * WORKERS
"""Seconds that a slice takes, summed over all workers."""
UNKNOWN = 0.1
"""Assumed seconds for a test in a file that is not recorded yet."""

Seconds = Mapping[str, Mapping[str, float]]


def recorded_seconds() -> Seconds:
    record: Seconds = json.loads(RECORD.read_text(encoding="utf-8"))
    return record


def lane_of(item: pytest.Item) -> str:
    return "full" if item.get_closest_marker("full") else "default"


def divide(item: pytest.Item) -> None:
    """Moves one database of an `either_database` test to the full lane: SQLite for half of these tests."""
    if not (
        isinstance(item, pytest.Function) and hasattr(item, "callspec") and item.get_closest_marker("either_database")
    ):
        return
    databases = ("sqlite", "postgres")
    chosen = databases[crc32(f"{item.path.name} {item.originalname}".encode()) % 2]
    if any(value in databases and value != chosen for value in item.callspec.params.values()):
        item.add_marker("full")


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
