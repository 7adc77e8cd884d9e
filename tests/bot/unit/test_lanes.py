"""Each test is in a lane, slices cover the full lane in turn, and CI knows when all of it is due."""

import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from datetime import date
from itertools import product
from pathlib import Path
from typing import cast

import pytest
from support.dealing import deal
from support.lanes import SLICE, TESTS, TURNS, has_turn, recorded_seconds, slice_count, slice_of

ROOT = TESTS.parent
CI = ROOT / ".ci"
OPTIONS: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"][
    "ini_options"
]["addopts"]


class Test:
    """The part of a test that lanes use."""

    __test__ = False

    def __init__(self, file: str, marker: str) -> None:
        self.path = TESTS / file
        self._marker = marker

    def get_closest_marker(self, name: str) -> str | None:
        return name if name == self._marker else None


def made_up(marker: str = "full", **files: int) -> list[pytest.Item]:
    return cast("list[pytest.Item]", [Test(file, marker) for file, count in files.items() for _ in range(count)])


SECONDS = {"default": {"a": 1.0}, "full": {"a": 40.0, "b": 3.0, "c": 150.0}}
ITEMS = made_up(a=20, b=300, c=7, unknown=1000)


def test_a_test_is_in_the_default_lane_or_in_the_full_one() -> None:
    """The default lane leaves out marked tests only; the full command leaves out none."""
    assert OPTIONS[OPTIONS.index("-m") + 1] == "not full"
    assert re.search(r'pytest -n 4 -m ""', (CI / "full").read_text(encoding="utf-8"))
    assert re.findall(r"pytest -n 4 -m full\b(.*?)['\"]", (CI / "run").read_text(encoding="utf-8")) == ["", " --$due"]


def test_test_names_are_unique() -> None:
    """If several levels test the same story, each name says what that level adds."""
    sources = [file.read_text(encoding="utf-8") for file in TESTS.rglob("test_*.py")]
    names = Counter(
        name for source in sources for name in re.findall(r"^(?:async )?def (test_\w+)", source, re.MULTILINE)
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_consecutive_slices_cover_every_test_once() -> None:
    count = slice_count(ITEMS, SECONDS)
    slices = [slice_of(ITEMS, number, SECONDS) for number in range(1000, 1000 + count)]
    assert sorted(id(item) for items in slices for item in items) == sorted(map(id, ITEMS))
    assert slice_of(ITEMS, 1000 + count, SECONDS) == slices[0]


def test_slices_take_similar_time() -> None:
    def seconds(items: Sequence[pytest.Item]) -> float:
        return sum(SECONDS["full"].get(item.path.name, 0.1) for item in items)

    count = slice_count(ITEMS, SECONDS)
    totals = [seconds(slice_of(ITEMS, number, SECONDS)) for number in range(count)]
    assert count == 18
    assert max(totals) < 1.3 * min(totals)
    assert max(totals) < 1.3 * SLICE


def test_without_recorded_times_there_is_one_slice() -> None:
    assert slice_of(ITEMS[-5:], 7, {}) == ITEMS[-5:]


def test_slow_tests_are_spread_evenly_over_workers() -> None:
    slow = made_up(a=4, b=2, c=2)
    items = made_up(quick=12) + slow
    seconds = {"a": 3.0, "b": 7.0, "c": 12.0, "quick": 0.01}
    dealt = deal(items, 2, lambda item: seconds[item.path.name])
    hands = [[item.path.name for item in hand] for hand in (dealt[:10], dealt[10:])]
    assert hands == [["c"] * 2 + ["quick"] * 8, ["quick"] * 4 + ["b"] * 2 + ["a"] * 4]
    assert sorted(map(id, dealt)) == sorted(map(id, items))


def test_one_worker_starts_a_browser() -> None:
    items = made_up("browser", a=1, b=2) + made_up(c=1, d=1)
    dealt = [item.path.name for item in deal(items, 2, lambda item: 2.0 if item.path.name in "cd" else 1.0)]
    assert sorted([dealt[:3], dealt[3:]]) == [["a", "b", "b"], ["c", "d"]]


def test_test_durations_are_recorded_by_lane_and_file() -> None:
    record = recorded_seconds()
    assert set(record) == {"default", "full"}
    assert all(took >= 0 for files in record.values() for took in files.values())
    known = sum((TESTS / file).exists() for file in record["default"])
    assert known > len(list(TESTS.glob("**/test_*.py"))) / 2


def test_the_record_of_the_full_lane_has_a_commit_and_a_day() -> None:
    record = CI / "full-run"
    if record.exists():
        commit, day = record.read_text(encoding="utf-8").split()
        assert re.fullmatch("[0-9a-f]{40}", commit)
        date.fromisoformat(day)


def test_watched_paths_exist() -> None:
    assert [path for path in watched() if not (ROOT / path).exists()] == []


def watched() -> list[str]:
    lines = (CI / "watched").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


class Repository:
    """A repository with commits, and the script that examines them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / ".ci").mkdir(parents=True)
        for name in ("due", "watched"):
            (directory / ".ci" / name).symlink_to(CI / name)
        self.git("init", "-q")

    def git(self, *arguments: str) -> str:
        who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.directory), **who}
        done = subprocess.run(
            ("git", *arguments), cwd=self.directory, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self, path: str = "notes", *, times: int = 1) -> str:
        file = self.directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(times):
            with file.open("a") as opened:
                opened.write("more\n")
            self.git("add", path)
            self.git("commit", "-q", "-m", path)
        return self.git("rev-parse", "HEAD")

    def record(self, commit: str) -> None:
        (self.directory / ".ci" / "full-run").write_text(f"{commit} 2026-11-24\n")

    def due(self) -> tuple[str, str]:
        """Returns what is due, and why."""
        done = subprocess.run((self.directory / ".ci" / "due",), capture_output=True, text=True, check=True)
        return done.stdout.strip(), done.stderr


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def test_after_a_green_run_a_slice_is_due_by_commit(repository: Repository) -> None:
    repository.record(repository.commit())
    assert repository.due()[0] == "slice 1"
    repository.commit()
    assert repository.due()[0] == "slice 2"


def test_all_slices_are_due_long_after_the_last_green_run(repository: Repository) -> None:
    repository.record(repository.commit())
    repository.commit(times=30)
    assert repository.due()[0] == "slice 31"
    repository.commit()
    due, why = repository.due()
    assert due == "all"
    assert "31 commits ago" in why


def test_all_slices_are_due_when_watched_paths_changed(repository: Repository) -> None:
    repository.record(repository.commit())
    assert "requirements.txt" in watched()
    repository.commit("requirements.txt")
    due, why = repository.due()
    assert due == "all"
    assert "requirements.txt" in why


def test_without_a_record_a_slice_is_due_and_reported(repository: Repository) -> None:
    repository.commit()
    due, why = repository.due()
    assert due == "slice 1"
    assert "NOT everything" in why


def test_a_record_of_an_unrelated_history_is_ignored(repository: Repository) -> None:
    repository.commit()
    repository.record("0" * 40)
    due, why = repository.due()
    assert due == "slice 1"
    assert "NOT everything" in why


def test_a_shallow_clone_gets_a_slice(repository: Repository, tmp_path: Path) -> None:
    repository.record(repository.commit())
    repository.git("add", ".ci")
    repository.commit(times=3)
    repository.git("clone", "-q", "--depth=1", f"file://{repository.directory}", str(tmp_path / "shallow"))
    done = subprocess.run((tmp_path / "shallow" / ".ci" / "due",), capture_output=True, text=True, check=True)
    assert done.stdout == "slice 1\n"
    assert "NOT everything" in done.stderr


@pytest.mark.full
def test_a_plain_either_database_test_runs_on_one_in_the_default_lane() -> None:
    """Both lanes together run each test on both."""
    file = "tests/bot/contract/test_homes.py"
    default, full = (set(collected(file, "-m", lane)) for lane in ("not full", "full"))
    assert not default & full
    assert default | full == set(collected(file, "-m", ""))
    tests = {of_any_database(name) for name in default}
    assert len(tests) == len(default)
    assert {of_any_database(name) for name in full} == tests
    assert all(any(database in name for name in default) for database in DATABASES)


def test_every_test_and_variant_has_its_turn_within_consecutive_commits() -> None:
    for piece, suffix in product(range(7), range(2)):
        turns = [has_turn("test_a", {"piece": piece, "suffix": suffix}, 100 + later) for later in range(TURNS)]
        assert turns.count(True) == 1


@pytest.mark.full
def test_the_default_lane_has_a_third_of_the_variants_of_an_in_turn_test() -> None:
    """Both lanes together have all."""
    test = "tests/bot/unit/test_commands.py::test_a_hostile_reply_of_a_megabyte_is_read"
    default, full, both = (collected(test, "-m", lane) for lane in ("not full", "full", ""))
    assert sorted(default + full) == sorted(both)
    assert abs(len(default) * TURNS - len(both)) < TURNS


DATABASES = ("sqlite", "postgres")


def of_any_database(name: str) -> str:
    return re.sub("|".join(DATABASES), "", name)


def collected(*arguments: str) -> list[str]:
    command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", *arguments)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if "::" in line]
