"""Each test is in one of two lanes, whatever was committed before, and CI knows when the full one is due."""

import os
import re
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[2]
ROOT = TESTS.parent
CI = ROOT / ".ci"
OPTIONS: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"][
    "ini_options"
]["addopts"]


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


def test_watched_paths_exist() -> None:
    lines = (CI / "watched").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#") and not (ROOT / line).exists()] == []


def test_what_has_changed_since_the_last_full_run_is_due(tmp_path: Path) -> None:
    """A rebase drops the commit that was recorded, and a shallow clone has none but the newest: neither matters."""
    repository, shallow = tmp_path / "repository", tmp_path / "shallow"
    (repository / ".ci").mkdir(parents=True)
    for name in ("due", "watched"):
        (repository / ".ci" / name).symlink_to(CI / name)
    git(repository, "init", "-q")
    commit(repository, "requirements.txt")
    assert due(repository) == "requirements.txt\n"
    commit(repository, "tests/support/chaos/kills.py")
    (repository / ".ci" / "full-run").write_text(due(repository, "record"))
    git(repository, "add", ".ci")
    git(repository, "commit", "-q", "--amend", "-m", "rebased")
    for _ in range(3):
        commit(repository, "notes")
    assert due(repository) == ""
    git(repository, "clone", "-q", "--depth=1", f"file://{repository}", str(shallow))
    assert due(shallow) == ""
    commit(repository, "tests/support/chaos/kills.py")
    commit(repository, "tests/support/machine/new.py")
    assert due(repository) == "tests/support/chaos\ntests/support/machine\n"


def git(repository: Path, *arguments: str) -> None:
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {"PATH": os.environ["PATH"], "HOME": str(repository), **who}
    subprocess.run(("git", *arguments), cwd=repository, env=environment, capture_output=True, check=True)


def commit(repository: Path, path: str) -> None:
    file = repository / path
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as opened:
        opened.write("more\n")
    git(repository, "add", path)
    git(repository, "commit", "-q", "-m", path)


def due(repository: Path, *arguments: str) -> str:
    return subprocess.run((repository / ".ci" / "due", *arguments), capture_output=True, text=True, check=True).stdout
