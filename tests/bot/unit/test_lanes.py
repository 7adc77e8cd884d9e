"""Each test is in one of two lanes, whatever was committed before, and CI knows when the full one is due."""

import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import cast

import pytest
from support.dealing import deal
from support.lanes import TESTS, recorded_seconds

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


def test_a_test_is_in_the_default_lane_or_in_the_full_one() -> None:
    """The default lane leaves out marked tests only; the full command leaves out none."""
    assert OPTIONS[OPTIONS.index("-m") + 1] == "not full"
    assert re.search(r'pytest -n 4 -m ""', (CI / "full").read_text(encoding="utf-8"))
    assert "'.venv/bin/pytest -n 4 -m full'" in (CI / "run").read_text(encoding="utf-8")


def test_test_names_are_unique() -> None:
    """If several levels test the same story, each name says what that level adds."""
    sources = [file.read_text(encoding="utf-8") for file in TESTS.rglob("test_*.py")]
    names = Counter(
        name for source in sources for name in re.findall(r"^(?:async )?def (test_\w+)", source, re.MULTILINE)
    )
    assert [name for name, count in names.items() if count > 1] == []


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

    def record(self) -> None:
        (self.directory / ".ci" / "full-run").write_text(due(self.directory, "record"))


def due(repository: Path, *arguments: str) -> str:
    return subprocess.run((repository / ".ci" / "due", *arguments), capture_output=True, text=True, check=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def test_nothing_is_due_while_watched_paths_are_as_recorded(repository: Repository) -> None:
    repository.commit("requirements.txt")
    repository.commit("tests/support/chaos/kills.py")
    repository.record()
    repository.commit(times=3)
    assert due(repository.directory) == ""


def test_each_watched_path_that_has_changed_is_due(repository: Repository) -> None:
    repository.commit("requirements.txt")
    repository.commit("tests/support/chaos/kills.py")
    repository.record()
    repository.commit("tests/support/chaos/kills.py")
    assert due(repository.directory) == "tests/support/chaos\n"
    repository.commit("tests/support/machine/new.py")
    assert due(repository.directory) == "tests/support/chaos\ntests/support/machine\n"


def test_everything_is_due_without_a_record(repository: Repository) -> None:
    repository.commit("requirements.txt")
    assert due(repository.directory) == "requirements.txt\n"


def test_history_does_not_matter_to_what_is_due(repository: Repository, tmp_path: Path) -> None:
    """A rebase drops the commit that was recorded, and a shallow clone has none but the newest."""
    repository.commit("requirements.txt")
    repository.record()
    repository.git("add", ".ci")
    repository.git("commit", "-q", "--amend", "-m", "rebased")
    repository.commit(times=3)
    repository.git("clone", "-q", "--depth=1", f"file://{repository.directory}", str(tmp_path / "shallow"))
    assert due(tmp_path / "shallow") == due(repository.directory) == ""


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


@pytest.mark.full
def test_the_default_lane_has_the_first_variants_of_a_first_test() -> None:
    """Both lanes together have all."""
    test = "tests/bot/unit/test_commands.py::test_a_hostile_reply_of_a_megabyte_is_read"
    default, full, both = (collected(test, "-m", lane) for lane in ("not full", "full", ""))
    assert default + full == both
    assert len(default) == 5


DATABASES = ("sqlite", "postgres")


def of_any_database(name: str) -> str:
    return re.sub("|".join(DATABASES), "", name)


def collected(*arguments: str) -> list[str]:
    command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", *arguments)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if "::" in line]
