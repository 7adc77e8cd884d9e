"""What a job server prepares before its first job, and how it continues from a copy of its data."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError
from support.servers.postgres import NoPostgres, PostgresServer, postgres_server
from support.worlds.jobserver_world import ADA, KEY, git, make_bare, running, until

from bot.jobserver.errors import JobServerError
from bot.jobserver.repository.git import Git
from bot.jobserver.repository.mirror import FirstFetch, Mirror
from bot.jobserver.settings import JobServerSettings
from bot.queue.errors import RETRY_FOR

PAGES = {"docs/lamp.md": "# Lamp\n"}


async def test_the_mirror_is_made_at_start_and_reported_in_the_health(tmp_path: Path) -> None:
    """The first job fetches only what is new."""
    bare = make_bare(tmp_path / "docs.git", PAGES)
    git(bare, "gc", "--quiet")
    async with running(bare, tmp_path / "data") as world:

        async def is_made() -> bool:
            return bool((await world.client.get("/health")).json()["mirror"] == "made")

        await until(is_made)
        assert git(tmp_path / "data/mirrors/docs.git", "rev-parse", "main") == git(bare, "rev-parse", "main")


async def test_a_failed_mirror_is_reported_and_retried(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The server keeps running: the repository may be back before the first job."""
    bare = make_bare(tmp_path / "docs.git", PAGES)
    mirror = Mirror(Git.for_settings(JobServerSettings(repository=str(bare), api_key=KEY)), tmp_path / "mirror.git")
    shutil.move(bare, tmp_path / "away.git")
    first = FirstFetch(mirror, "main", pause=0.01)
    running_first = asyncio.create_task(first.run())
    await until(lambda: _is(first, "out of reach"))
    shutil.move(tmp_path / "away.git", bare)
    await asyncio.wait_for(running_first, 30)
    assert first.state == "made"
    assert caplog.text.count("cannot be made yet") == 1


@pytest.mark.parametrize("objects", ["loose", "packed", "elsewhere"])
async def test_a_local_repositorys_objects_are_copied_and_shared_with_nobody(tmp_path: Path, objects: str) -> None:
    """Whoever spoils or deletes the mirror's files leaves the repository whole."""
    bare = make_bare(tmp_path / "docs.git", PAGES)
    other = git(bare, "commit-tree", "-m", "Other", "main^{tree}").strip()
    git(bare, "branch", "other", other)
    if objects != "loose":
        git(bare, "gc", "--quiet")
    if objects == "elsewhere":
        git(tmp_path, "clone", "--quiet", "--bare", "--shared", str(bare), str(tmp_path / "shared.git"))
        bare = tmp_path / "shared.git"
    mirror = Mirror(Git.for_settings(JobServerSettings(repository=str(bare), api_key=KEY)), tmp_path / "mirror.git")
    assert (await mirror.fetch("main"))["main"].commit == git(bare, "rev-parse", "main").strip()
    files = [file for file in (tmp_path / "mirror.git/objects").rglob("*") if file.is_file()]
    assert files
    assert all(file.stat().st_nlink == 1 and not file.is_symlink() for file in files)
    assert not (tmp_path / "mirror.git/objects/info/alternates").exists()
    assert "[remote" not in (tmp_path / "mirror.git/config").read_text()
    if objects != "elsewhere":
        assert git(tmp_path / "mirror.git", "cat-file", "-t", other) == "commit\n", "copied, not packed again"
    git(tmp_path / "mirror.git", "fsck", "--full", "--strict")


async def _is(first: FirstFetch, state: str) -> bool:
    return first.state == state


MANUAL = {"docs/start.md": "# Start\n\nA colour and a flavour.\n"}


@pytest.mark.promise("job server's data")
async def test_a_server_continues_from_a_copy_of_its_data(tmp_path: Path) -> None:
    repository, data = make_bare(tmp_path / "manual.git", MANUAL), tmp_path / "data"
    async with running(repository, data) as world:
        job = await world.done('Replace "colour" with "color"')
    await asyncio.to_thread(shutil.copytree, data, tmp_path / "restored")
    await asyncio.to_thread(shutil.rmtree, data)
    async with running(repository, tmp_path / "restored") as world:
        assert (await world.job(job["id"]))["status"] == "completed"
        told = await world.message(job["id"], 'Replace "flavour" with "flavor"')
        assert told.status_code == 200
        ended = await world.ended(job["id"])
        link = ended["prLink"].replace(ended["prLink"].split("/docs/")[0], world.url)
        assert (await world.press(link, "merge")).status_code == 303
    assert "A color and a flavor." in git(repository, "show", "main:docs/start.md")


@pytest.mark.postgres
async def test_a_servers_jobs_and_pull_requests_can_be_in_postgres(postgres: PostgresServer, tmp_path: Path) -> None:
    repository, data = make_bare(tmp_path / "manual.git", MANUAL), tmp_path / "data"
    async with postgres.empty_database() as url:
        async with running(repository, data, database_url=url) as world:
            job = await world.done('Replace "colour" with "color"')
        (tmp_path / "other" / "ready").mkdir(parents=True)
        (tmp_path / "other" / "pull_requests.sqlite3").touch()  # of 1.0.0, whose other file was put elsewhere
        async with running(repository, tmp_path / "other", database_url=url) as world:
            assert [path.name for path in (tmp_path / "other").glob("*s.sqlite3")] == ["pull_requests.sqlite3"]
            assert (await world.continued(job["id"], 'Replace "flavour" with "flavor"'))["status"] == "completed"
            assert (await world.client.get("/docs/pulls/1", auth=ADA)).status_code == 200
        with pytest.raises(JobServerError, match="is missing: restore it, or set PAGEHAND_JOBSERVER_DATABASE_URL"):
            async with running(repository, data):
                pass
        assert not list(data.glob("*.sqlite3"))
        (data / "jobs.sqlite3").touch()
        with pytest.raises(JobServerError, match="would leave behind"):
            async with running(repository, data, database_url=url):
                pass


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A server of the test's own, since it is stopped."""
    try:
        with postgres_server() as server:
            yield server
    except NoPostgres as reason:
        pytest.skip(str(reason))


@pytest.mark.full
@pytest.mark.postgres
async def test_what_runs_outlasts_an_outage_of_its_database(own_postgres: PostgresServer, tmp_path: Path) -> None:
    """One that is longer than a request waits, while the editor's pause of ten seconds ends."""
    repository = make_bare(tmp_path / "manual.git", {"docs/start.md": "# Start\n\nTeh end.\n"})
    async with own_postgres.empty_database() as url, running(repository, tmp_path / "data", database_url=url) as world:
        job = (await world.create("Fix the typos slowly")).raise_for_status().json()
        await asyncio.sleep(2)
        assert (await world.job(job["id"]))["status"] == "active"
        await asyncio.to_thread(own_postgres.stop)
        await asyncio.sleep(RETRY_FOR + 15)
        await asyncio.to_thread(own_postgres.start)
        ended = await world.ended(job["id"])
        assert (ended["status"], bool(ended["prLink"])) == ("completed", True)


async def test_a_data_directory_may_have_any_name(tmp_path: Path) -> None:
    data = tmp_path / "a#b?c%41"
    async with running(make_bare(tmp_path / "manual.git", MANUAL), data):
        assert (data / "jobs.sqlite3").exists()


def test_only_postgres_can_be_named(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="must begin with postgresql://"):
        JobServerSettings(repository=str(tmp_path), api_key=KEY, database_url="sqlite:///jobs.db")
