"""The two lanes that tests run in, the default and the full one, and how long each file's tests take.

`tests/README.md` says what each lane proves.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from zlib import crc32

import pytest

TESTS = Path(__file__).parents[1]
RECORD = TESTS / "seconds.json"
"""The average seconds of a test in the last recorded full run, by lane and file; `.ci/full` writes it."""
UNKNOWN = 0.1
"""Assumed seconds for a test in a file that is not recorded yet."""

Seconds = Mapping[str, Mapping[str, float]]


def recorded_seconds() -> Seconds:
    record: Seconds = json.loads(RECORD.read_text(encoding="utf-8"))
    return record


def lane_of(item: pytest.Item) -> str:
    return "full" if item.get_closest_marker("full") else "default"


def divide(item: pytest.Item) -> None:
    """Moves to the full lane: one database of an `either_database` test, SQLite for half of these tests, and the
    variants of a `first` test that come later in a list of parameters.
    """
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return
    if item.get_closest_marker("either_database") and _is_other_database(item):
        item.add_marker("full")
    first = item.get_closest_marker("first")
    if first and any(item.callspec.indices[name] >= number for name, number in first.kwargs.items()):
        item.add_marker("full")


def _is_other_database(item: pytest.Function) -> bool:
    databases = ("sqlite", "postgres")
    chosen = databases[crc32(f"{item.path.name} {item.originalname}".encode()) % 2]
    return any(value in databases and value != chosen for value in item.callspec.params.values())


def seconds_of(item: pytest.Item, seconds: Seconds) -> float:
    """Returns the average of the tests in the same file and lane, or in the other lane if this one has none."""
    file = str(item.path.relative_to(TESTS))
    lanes = {lane: files[file] for lane, files in seconds.items() if file in files}
    return lanes.get(lane_of(item)) or max(lanes.values(), default=UNKNOWN)


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
