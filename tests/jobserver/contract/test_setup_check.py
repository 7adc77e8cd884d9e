"""`--check` examines everything that a job needs, and leaves nothing behind."""

import asyncio
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from support.servers.github_server import github_server
from support.servers.github_server_state import ALL_PERMISSIONS, TOKEN
from support.servers.postgres import PostgresServer
from support.worlds.jobserver_world import KEY, REVIEWER_KEY, git, make_bare, make_data_of_1_0_0

from bot.cli.jobserver import Part, find_faults
from bot.domain.findings import FindingStatus
from bot.jobserver.errors import JobServerError
from bot.jobserver.findings import SetupFinding
from bot.jobserver.server import JobServer
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.settings.projects import Projects
from bot.jobserver.setup_check import check_machine, check_setup
from bot.jobserver.store.database import SCHEMA
from bot.queue.migration import SchemaState


async def found(tmp_path: Path, **settings: Any) -> dict[str, SetupFinding]:
    values: dict[str, Any] = {"api_key": KEY, "data_directory": tmp_path / "data", "allow_root": True}
    configured = JobServerSettings(**(values | settings))
    of_machine = [one async for one in check_machine(Projects.one(configured))]
    return {one.name: one for one in (*of_machine, *[one async for one in check_setup(configured)])}


def faults(findings: dict[str, SetupFinding]) -> Sequence[str]:
    return [name for name, one in findings.items() if one.is_ok is False]


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    return make_bare(tmp_path / "docs.git", {"a.md": "A.\n"})


async def test_a_complete_set_up_is_left_unchanged(tmp_path: Path, bare: Path) -> None:
    """A branch is pushed and deleted, and the data directory is not created."""
    reviewers = f"Ada: {REVIEWER_KEY}"
    findings = await found(tmp_path, repository=str(bare), checks=(("git", "--version"),), reviewers=reviewers)
    assert [(name, one.is_ok) for name, one in findings.items()] == [
        ("data", True), ("database", True), ("checks", True), ("git", True), ("repository", True), ("push", True)
    ]  # fmt: skip
    assert "jobs start from main" in findings["repository"].message
    assert git(bare, "for-each-ref", "--format=%(refname)").split() == ["refs/heads/main"]
    assert not (tmp_path / "data").exists()


@pytest.mark.postgres
async def test_a_postgres_database_is_looked_at_and_left_unchanged(
    postgres: PostgresServer, tmp_path: Path, bare: Path
) -> None:
    async with postgres.empty_database() as url:
        for _ in range(2):
            found_there = await found(tmp_path, repository=str(bare), database_url=url)
            assert found_there["database"] == SetupFinding("database", is_ok=True, message="it can be used")
        assert await SCHEMA.state(url) is SchemaState.EMPTY


def _of_1_0_0(data: Path, steps: int = 7) -> None:
    make_data_of_1_0_0(data, steps)
    (data / "ready").mkdir()


def _of_a_newer_version(data: Path) -> None:
    make_data_of_1_0_0(data)
    with closing(sqlite3.connect(data / "jobs.sqlite3")) as connection:
        connection.executescript(f"CREATE TABLE {SCHEMA.version_table} AS SELECT '9999' AS version_num")


def _contents(data: Path) -> dict[str, object]:
    """What is in a data directory, and in its databases."""
    found: dict[str, object] = {str(path.relative_to(data)): "" for path in data.rglob("*")}
    for file in data.glob("*.sqlite3"):
        with closing(sqlite3.connect(file)) as connection:
            found[file.name] = [*connection.iterdump(), connection.execute("PRAGMA user_version").fetchone()]
    return found


@pytest.mark.promise("upgrades")
@pytest.mark.parametrize(
    ("make", "settings", "words"),
    [
        (_of_1_0_0, {"project_id": "site"}, "of a project docs, which is not served: set PAGEHAND_"),
        (partial(_of_1_0_0, steps=6), {}, "before 1.0: start the last version before 1.0 with it first"),
        (_of_a_newer_version, {}, "of a newer version of Pagehand. Install that version, or restore a backup"),
        (lambda data: (data / "jobs" / "1").mkdir(parents=True), {}, "is missing: restore it"),
        (_of_1_0_0, {"database_url": "postgresql://ada@127.0.0.1:9/docs"}, "would leave behind: use another directory"),
    ],
)
async def test_data_that_a_start_refuses_is_reported_in_its_words_and_left_unchanged(
    tmp_path: Path, bare: Path, make: Callable[[Path], object], settings: dict[str, Any], words: str
) -> None:
    """The check said ok, and only the start what was wrong."""
    data, given = tmp_path / "data", {"repository": str(bare), **settings}
    data.mkdir()
    await asyncio.to_thread(make, data)
    before = await asyncio.to_thread(_contents, data)
    findings = await found(tmp_path, **given)
    assert await asyncio.to_thread(_contents, data) == before
    assert faults(findings) == ["database"]
    told = findings["database"].message
    assert words in told
    with pytest.raises(JobServerError, match=re.escape(told)):
        await JobServer(JobServerSettings(api_key=KEY, data_directory=data, allow_root=True, port=0, **given)).start()


async def test_data_of_1_0_0_with_its_project_can_be_used_and_is_left_unchanged(tmp_path: Path, bare: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    _of_1_0_0(data)
    before = await asyncio.to_thread(_contents, data)
    assert not faults(await found(tmp_path, repository=str(bare)))
    assert await asyncio.to_thread(_contents, data) == before


async def test_unreadable_pages_are_reported(tmp_path: Path, bare: Path) -> None:
    """With programs they are for reviewers, of whom there are none; the jobs themselves need none."""
    findings = await found(tmp_path, repository=str(bare), checks=(("git", "--version"),))
    assert findings["pages"].is_ok is None
    assert "PAGEHAND_JOBSERVER_REVIEWERS" in findings["pages"].message
    assert "pages" not in await found(tmp_path, repository=str(bare))


async def test_an_open_network_is_reported(tmp_path: Path, bare: Path) -> None:
    """If a program runs that could use it."""
    runs: dict[str, Any] = {"repository": str(bare), "checks": (("git", "--version"),)}
    findings = await found(tmp_path, **runs, egress="open")
    assert findings["egress"].is_ok is None
    assert "PAGEHAND_JOBSERVER_EGRESS" in findings["egress"].message
    assert "egress" not in await found(tmp_path, **runs)
    assert "egress" not in await found(tmp_path, repository=str(bare), egress="open")


@pytest.mark.parametrize(
    ("settings", "name", "words"),
    [
        ({"repository": "/no/such/place"}, "repository", "there is no git repository"),
        ({"repository": "http://127.0.0.1:9/docs.git"}, "repository", "the repository's host cannot be reached"),
        ({"base_branch": "trunk"}, "repository", "it has no branch trunk: set PAGEHAND_JOBSERVER_BASE_BRANCH"),
        ({"data_directory": Path("/proc/data")}, "data", "the data directory /proc/data cannot be used"),
        ({"data_directory": Path("/proc/stat/data")}, "data", "/proc/stat/data cannot be used: Not a directory"),
        ({"checks": (("no-such-linter", "."),)}, "checks", "there is no program no-such-linter here"),
        pytest.param(
            {"database_url": "postgresql://ada@127.0.0.1:9/docs"},
            "database",
            "cannot be reached",
            marks=pytest.mark.full,  # it is tried for 10 s
        ),
    ],
)
async def test_causes_of_certain_failure_are_reported(
    tmp_path: Path, bare: Path, settings: dict[str, Any], name: str, words: str
) -> None:
    """Each of them failed every job, although the check passed."""
    findings = await found(tmp_path, **({"repository": str(bare)} | settings))
    assert faults(findings) == [name]
    assert words in findings[name].message


async def test_a_shallow_clone_is_reported(tmp_path: Path, bare: Path) -> None:
    """It can be read, but not fetched from."""
    (bare / "shallow").write_text("")
    assert "is a shallow clone" in (await found(tmp_path, repository=str(bare)))["repository"].message


@pytest.mark.full
async def test_a_token_without_push_permission_is_reported(tmp_path: Path) -> None:
    """According to git itself, not to the API."""
    async with github_server(tmp_path / "github") as server:
        settings = {"repository": server.repository_url, "github_token": SecretStr(TOKEN)}
        assert (await found(tmp_path, **settings))["push"].is_ok
        assert server.repository.git.git("for-each-ref", "--format=%(refname)").split() == ["refs/heads/main"]
        server.tokens[TOKEN] = ALL_PERMISSIONS - {"contents:write"}
        assert "Contents: read and write" in (await found(tmp_path, **settings))["push"].message
        server.tokens[TOKEN] = ALL_PERMISSIONS
        server.repository.git.protect("pagehand/*")
        assert "protected at its host" in (await found(tmp_path, **settings))["push"].message


async def test_a_check_inside_the_repository_is_looked_for_later(tmp_path: Path, bare: Path) -> None:
    """It comes with each copy."""
    findings = await found(tmp_path, repository=str(bare), checks=(("scripts/check.sh",),))
    assert findings["checks"].is_ok is None


async def test_of_several_projects_each_is_checked_and_named(tmp_path: Path, bare: Path) -> None:
    """As `pagehand doctor` does."""
    tables = [
        f'[projects.{name}]\nrepository = "{repository}"\napi_key = "{KEY}-of-{name}"\n'
        for name, repository in (("docs", bare), ("site", tmp_path / "none.git"))
    ]
    (tmp_path / "projects.toml").write_text("".join(tables))
    given = {"CONFIG": "projects.toml", "DATA_DIRECTORY": "data"}
    environ = {f"PAGEHAND_JOBSERVER_{name}": str(tmp_path / value) for name, value in given.items()}
    parts: list[Part] = ["machine"]
    told = {each.check: each.status for each in [one async for one in find_faults(environ, parts)]}
    assert told == {
        "job_server.data": FindingStatus.OK,
        "job_server.database": FindingStatus.OK,
        "job_server.docs.git": FindingStatus.OK,
        "job_server.docs.repository": FindingStatus.OK,
        "job_server.docs.push": FindingStatus.OK,
        "job_server.site.git": FindingStatus.OK,
        "job_server.site.repository": FindingStatus.ERROR,
    }
