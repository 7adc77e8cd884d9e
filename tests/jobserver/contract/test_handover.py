"""A job that continues on another machine: each has a data directory; they share the database and the repository."""

import asyncio
import json
import shlex
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import delete, func, select, update
from support.servers.postgres import JOB_SERVER, PostgresServer
from support.worlds.agent_world import PROGRAM
from support.worlds.jobserver_world import KEY as API_KEY
from support.worlds.jobserver_world import git, make_bare, push_to, running

from bot.cli.main import main
from bot.errors import StoreUnavailable
from bot.jobserver.errors import LeaseLostError
from bot.jobserver.pipeline import handover, home_archive
from bot.jobserver.pipeline.handover import Handover
from bot.jobserver.pipeline.job_folders import JobFolders
from bot.jobserver.repository.allowed_paths import AllowedPaths
from bot.jobserver.repository.git import Git
from bot.jobserver.repository.git_repository import GitRepository
from bot.jobserver.repository.mirror import Mirror
from bot.jobserver.repository.working_copy import ChangeLimits
from bot.jobserver.sealing import Sealing
from bot.jobserver.settings import PREFIX, JobServerSettings
from bot.jobserver.settings.projects import Projects
from bot.jobserver.store.claims import Wanted, Worker
from bot.jobserver.store.database import Database
from bot.jobserver.store.files import FileStore
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.jobs import JobStore
from bot.jobserver.store.records import Instruction, JobTemplate, Outcome, PromptRequest
from bot.jobserver.store.tables import chunks, files, jobs
from bot.runtime.rotating_secrets import RotatingSecret

pytestmark = [pytest.mark.promise("jobs once"), pytest.mark.either_database]
OLD, NEW = "0a" * 32, "0b" * 32
PAGES = {"docs/start.md": "# Start\n"}


class Machine:
    """A worker's data directory, and what it shares with others."""

    def __init__(self, directory: Path, bare: Path, database: Database, keys: str = OLD) -> None:
        directory.mkdir()
        self.name = directory.name
        self.database = database
        self.queue = InstructionQueue(database)
        self.folders = JobFolders(directory)
        self.folders.prepare()
        mirror = Mirror(Git.for_settings(JobServerSettings(repository=str(bare), api_key=API_KEY)), directory / "m.git")
        limits = ChangeLimits(max_files=100, max_file_bytes=10_000, allowed=AllowedPaths())
        self.repository = GitRepository(mirror, "main", limits)
        sealing = Sealing(RotatingSecret(keys, lambda text: tuple(text.split())))
        self.files = FileStore(database)
        left_out = {PurePosixPath("login")}
        self.handover = Handover(self.queue, self.files, self.folders, self.repository, sealing, lambda: left_out)

    async def take(self, job_id: str) -> Instruction:
        taken = await self.queue.claim(Worker(self.name), Wanted(["docs"]))
        assert taken is not None
        assert taken.job_id == job_id
        await asyncio.to_thread(self.folders.make_empty, job_id)
        return taken

    async def run(self, job_id: str, said: str) -> tuple[bool, str]:
        """Runs an instruction; returns whether the home was had, and what its session has by then."""
        taken = await self.take(job_id)
        is_continued = await self.handover.bring_home(taken)
        home = self.folders.workspace(job_id).home
        (home / "login").write_text("planted-login")
        with (home / "session").open("a") as stream:
            stream.write(f"planted-{said} ")
        await asyncio.to_thread(self.folders.clear, job_id)
        await self.handover.keep_home(taken)
        await self.queue.finish(taken, Outcome())
        return is_continued, (home / "session").read_text().replace("planted-", "").strip()

    async def commit(self, taken: Instruction) -> str:
        """Keeps partial work."""
        start = await self.repository.start(taken.branch)
        copy = self.folders.workspace(taken.job_id).copy
        await self.repository.working_copy(copy).check_out(start.tree)
        (copy / "notes.md").write_text("planted notes\n")
        collected = await self.repository.working_copy(copy).collect(start.tree)
        commit = await self.repository.commit(start, collected.tree, "Partial\n")
        await self.queue.record_partial(taken, commit, 1)
        await self.repository.keep_partial(taken.job_id, commit)
        await self.handover.keep_partial(taken, start)
        return commit


class Fleet:
    """Machines with one database and one repository, and a job."""

    def __init__(self, tmp_path: Path, database: Database) -> None:
        self.directory, self.database = tmp_path, database
        self.bare = make_bare(tmp_path / "docs.git", PAGES)
        self.jobs = JobStore(database, "docs", rate_limit=1000)
        self.machines: dict[str, Machine] = {}
        self.job_id = ""

    def machine(self, name: str, keys: str = OLD) -> Machine:
        if name not in self.machines:
            self.machines[name] = Machine(self.directory / name, self.bare, self.database, keys)
        return self.machines[name]

    async def asked(self) -> str:
        """Asks for the job's next instruction."""
        request = PromptRequest("go", self.job_id or None)
        self.job_id = (await self.jobs.submit(request, JobTemplate("docs", "main", "fake"))).id
        return self.job_id

    async def run(self, name: str, said: str) -> tuple[bool, str]:
        return await self.machine(name).run(await self.asked(), said)

    async def stored(self) -> list[bytes]:
        while await self.machine("one").files.delete_expired():
            pass
        found = await self.database.rows(select(chunks.c.content).order_by(chunks.c.file, chunks.c.position))
        return [bytes(row["content"]) for row in found]


@pytest.fixture
async def fleet(jobs_database: str, tmp_path: Path) -> AsyncIterator[Fleet]:
    async with Database(jobs_database) as database:
        yield Fleet(tmp_path, database)


async def test_the_home_follows_the_job_from_machine_to_machine(fleet: Fleet) -> None:
    """Each has its own login, and nobody can read the session in the database."""
    assert await fleet.run("one", "a") == (True, "a")
    assert await fleet.run("two", "b") == (True, "a b")
    assert await fleet.run("two", "c") == (True, "a b c")
    assert await fleet.run("one", "d") == (True, "a b c d")
    assert await fleet.run("three", "e") == (True, "a b c d e")
    stored = await fleet.stored()
    assert len(stored) == 1, "only the newest is kept"
    assert b"planted" not in stored[0]
    home = fleet.machine("three").folders.workspace(fleet.job_id).home
    assert sorted(path.name for path in home.parent.iterdir()) == ["home", "home-version"]


async def test_a_machine_that_has_the_home_does_not_look_for_it(fleet: Fleet) -> None:
    await fleet.run("one", "a")
    await fleet.database.execute(delete(chunks))
    assert await fleet.run("one", "b") == (True, "a b")


async def change_byte(fleet: Fleet) -> None:
    [content] = await fleet.stored()
    await fleet.database.execute(update(chunks).values(content=content[:50] + bytes([content[50] ^ 1]) + content[51:]))


async def lose_chunks(fleet: Fleet) -> None:
    await fleet.database.execute(delete(chunks))


async def put_another_jobs(fleet: Fleet) -> None:
    """Somebody who can write to the database gives the job what another one left."""
    other = Fleet.__new__(Fleet)
    other.__dict__.update(fleet.__dict__ | {"job_id": ""})
    await other.run("one", "theirs")
    [row] = await fleet.database.rows(select(jobs.c.home).where(jobs.c.id == other.job_id))
    await fleet.database.execute(update(jobs).where(jobs.c.id == fleet.job_id).values(home=row["home"]))


@pytest.mark.parametrize("spoil", [change_byte, lose_chunks, put_another_jobs])
async def test_a_home_that_cannot_be_used_is_dropped(fleet: Fleet, spoil: Callable[[Fleet], Awaitable[None]]) -> None:
    """The job goes on with an empty one, also back on the first machine."""
    await fleet.run("one", "a")
    await spoil(fleet)
    assert await fleet.run("two", "b") == (False, "b")
    assert await fleet.run("one", "c") == (True, "b c")


async def test_after_one_that_was_too_large_no_earlier_home_is_continued(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await fleet.run("one", "a")
    with monkeypatch.context() as patched:
        patched.setattr(home_archive, "LARGEST", 10)
        assert await fleet.run("one", "b") == (True, "a b")
    assert "its session is on this machine only: it is larger than 1e-05 MB" in caplog.text
    assert await fleet.stored() == []
    assert await fleet.run("one", "c") == (True, "a b c")
    assert await fleet.run("two", "d") == (True, "a b c d")


@pytest.mark.parametrize(
    ("step", "expected"),
    [("record_home", (True, "a c")), ("write", (False, "c")), ("keep_home", (True, "a b c"))],
)
async def test_a_machine_that_is_killed_while_it_stores_a_home_leaves_none_half(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, step: str, expected: tuple[bool, str]
) -> None:
    """It is the one before or the whole new one, or the conversation is told again."""
    await fleet.run("one", "a")
    one = fleet.machine("one")

    async def killed(*_: object) -> None:
        raise KeyError

    await fleet.asked()
    with monkeypatch.context() as patched:
        patched.setattr(one.files if step == "write" else one.queue, step, killed)
        with pytest.raises(KeyError):
            await one.run(fleet.job_id, "b")
    await one.queue.release(one.name)
    assert await fleet.machine("two").run(fleet.job_id, "c") == expected


@pytest.mark.promise("rotation")
async def test_a_key_is_replaced_without_losing_a_session(fleet: Fleet) -> None:
    await fleet.run("one", "a")
    fleet.machine("rotating", f"{NEW} {OLD}")
    assert await fleet.run("rotating", "b") == (True, "a b")
    fleet.machine("rotated", NEW)
    assert await fleet.run("rotated", "c") == (True, "a b c")
    assert await fleet.run("one", "d") == (False, "d"), "its key is no longer right"


async def test_what_never_ran_here_is_not_taken_for_the_home(fleet: Fleet) -> None:
    """An instruction that fails before its home was brought leaves the stored one."""
    await fleet.run("one", "a")
    await fleet.asked()
    two = fleet.machine("two")
    taken = await two.take(fleet.job_id)
    await two.handover.keep_home(taken)
    await two.queue.finish(taken, Outcome(failure="the repository is away"))
    assert await fleet.run("two", "b") == (True, "a b")


async def test_a_home_that_was_on_its_way_when_the_database_went_away_is_brought_again(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fleet.run("one", "a")
    two = fleet.machine("two")
    taken = await two.take(await fleet.asked())

    async def broken(_: str) -> AsyncIterator[bytes]:
        yield b""
        raise StoreUnavailable("it is away")

    with monkeypatch.context() as patched:
        patched.setattr(two.files, "read", broken)
        with pytest.raises(StoreUnavailable):
            await two.handover.bring_home(taken)
    await two.queue.release(two.name)
    assert await two.run(fleet.job_id, "b") == (True, "a b")


async def test_what_a_machine_did_that_was_lost_with_its_home_is_told_again(fleet: Fleet) -> None:
    """Another one finishes what it had pushed."""
    await fleet.run("one", "a")
    one, two = fleet.machine("one"), fleet.machine("two")
    await one.take(await fleet.asked())
    await one.queue.release(one.name)
    taken = await two.take(fleet.job_id)
    await two.handover.keep_home(taken)
    await two.queue.finish(taken, Outcome(commit="c0ffee"))
    assert await fleet.run("two", "b") == (False, "b")
    assert await fleet.run("one", "c") == (True, "b c")


async def test_an_older_home_is_not_taken_for_what_a_machine_left_that_was_lost(fleet: Fleet) -> None:
    """Not on the machine that had the job before, and finishes what the other one had pushed."""
    await fleet.run("one", "a")
    one, two = fleet.machine("one"), fleet.machine("two")
    assert await two.handover.bring_home(await two.take(await fleet.asked()))
    await two.queue.release(two.name)
    taken = await one.take(fleet.job_id)
    await one.handover.keep_home(taken)
    await one.queue.finish(taken, Outcome(commit="c0ffee"))
    assert await fleet.run("one", "c") == (False, "c")


async def test_a_machine_that_has_lost_the_instruction_stores_nothing_of_it(fleet: Fleet) -> None:
    await fleet.run("one", "a")
    one, two = fleet.machine("one"), fleet.machine("two")
    lost = await one.take(await fleet.asked())
    assert await one.handover.bring_home(lost)
    await one.queue.release(one.name)
    taken = await two.take(fleet.job_id)
    with pytest.raises(LeaseLostError):
        await one.handover.keep_home(lost)
    assert await two.handover.bring_home(taken)


async def test_partial_work_is_continued_on_another_machine(fleet: Fleet) -> None:
    """Also after the base has moved on."""
    one, two = fleet.machine("one"), fleet.machine("two")
    taken = await one.take(await fleet.asked())
    commit = await one.commit(taken)
    await one.queue.finish(taken, Outcome(failure="no credit"))
    assert not any(b"planted" in content for content in await fleet.stored())
    push_to(fleet.bare, "main", {"docs/more.md": b"# More\n"})
    again = await two.take(await fleet.asked())
    assert again.partial == commit
    start = await two.repository.start(again.branch)
    assert not await two.repository.has_partial(commit)
    await two.handover.bring_partial(again, commit)
    assert await two.repository.has_partial(commit)
    copy = two.folders.workspace(again.job_id).copy
    await two.repository.working_copy(copy).check_out(start.tree)
    assert await two.repository.put_back(commit, start.tree, copy)
    assert (copy / "notes.md").read_text() == "planted notes\n"
    assert (copy / "docs/more.md").exists()
    await two.queue.finish(again, Outcome())
    assert await fleet.stored() == [], "it goes with the success"


async def test_partial_work_that_was_too_large_stays_on_its_machine(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handover, "_LARGEST_BUNDLE", 10)
    one, two = fleet.machine("one"), fleet.machine("two")
    taken = await one.take(await fleet.asked())
    commit = await one.commit(taken)
    await one.queue.finish(taken, Outcome(failure="no credit"))
    assert await fleet.stored() == []
    again = await two.take(await fleet.asked())
    await two.repository.start(again.branch)
    await two.handover.bring_partial(again, commit)
    assert not await two.repository.has_partial(commit)
    assert await one.repository.has_partial(commit)


async def test_everything_goes_with_the_job(fleet: Fleet) -> None:
    await fleet.run("one", "a")
    one = fleet.machine("one")
    taken = await one.take(await fleet.asked())
    await one.commit(taken)
    await one.queue.finish(taken, Outcome(failure="no credit"))
    assert len(await fleet.stored()) == 2
    await fleet.jobs.delete_jobs([fleet.job_id])
    assert await fleet.stored() == []
    [left] = await fleet.database.rows(select(func.count().label("files")).select_from(files))
    assert left["files"] == 0


def printed_log(bare: Path, job_id: str, **given: str) -> tuple[int, str]:
    values = {"REPOSITORY": str(bare), "API_KEY": API_KEY} | given
    environment = {PREFIX + name: value for name, value in values.items()}
    ended = CliRunner().invoke(main, ["jobserver", "--log", job_id], env=environment, catch_exceptions=False)
    return ended.exit_code, ended.output


async def test_a_jobs_log_is_printed_while_the_server_runs(tmp_path: Path) -> None:
    bare = make_bare(tmp_path / "docs.git", PAGES)
    data = {"DATA_DIRECTORY": str(tmp_path / "data")}
    code, words = await asyncio.to_thread(printed_log, bare, "0" * 16, **data)
    assert (code, "jobs.sqlite3" in words, (tmp_path / "data").exists()) == (1, True, False)
    async with running(bare, tmp_path / "data") as world:
        job = await world.done("Do something unheard of")
        await world.continued(job["id"], "And this")
        (tmp_path / "data" / "logs" / f"{job['id']}.log").write_text("now\n")
        code, log = await asyncio.to_thread(printed_log, bare, job["id"], **data)
        assert (code, log.count("instruction "), log.endswith("now\n")) == (0, 2, True)
        code, words = await asyncio.to_thread(printed_log, bare, "0" * 16, **data)
        assert (code, "there is no log of a job 0000" in words) == (1, True)


AGENT = """
def turn(agent, text):
    if "fail" in text.rpartition("instruction now")[2]:
        Path("docs/half.md").write_text("# Half\\n")
        raise Refused(-32000, "no credit")
    Path("docs/said.json").write_text(__import__("json").dumps(agent.memory()))
    agent.say("done")
"""


@pytest.mark.postgres
async def test_an_agents_session_and_its_partial_work_continue_in_another_data_directory(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(AGENT)
    bare = make_bare(tmp_path / "docs.git", PAGES)
    agent = [sys.executable, str(PROGRAM), str(script)]
    async with postgres.database(JOB_SERVER) as url:
        settings: dict[str, Any] = {"agent": agent, "database_url": url, "session_key": OLD}
        async with running(bare, tmp_path / "one", **settings) as world:
            job = await world.done("the first words")
            assert (await world.continued(job["id"], "fail with half of it"))["status"] == "failed"
        async with running(bare, tmp_path / "two", **settings) as world:
            assert (await world.continued(job["id"], "go on"))["status"] == "completed"
            told = json.loads(world.show(f"pagehand/{job['id']}", "docs/said.json"))
            assert ["the first words" in text for text in told] == [True, False, False], "nothing was told again"
            assert world.show(f"pagehand/{job['id']}", "docs/half.md") == "# Half\n"
        environment = {"DATABASE_URL": url, "SESSION_KEY": OLD, "DATA_DIRECTORY": str(tmp_path / "four")}
        code, log = await asyncio.to_thread(printed_log, bare, job["id"], **environment)
        assert (code, log.count("instruction "), "no credit" in log) == (0, 3, True)
        async with running(bare, tmp_path / "three", **settings | {"session_key": NEW}) as world:
            assert (await world.continued(job["id"], "and on"))["status"] == "completed"
            [told] = json.loads(world.show(f"pagehand/{job['id']}", "docs/said.json"))
            assert "> the first words" in told, "the conversation is told again"
    assert shlex.split(git(bare, "log", "--format=%an", f"pagehand/{job['id']}"))


def test_a_shared_database_needs_a_key_for_sessions(tmp_path: Path) -> None:
    values: dict[str, Any] = {
        "repository": str(tmp_path),
        "api_key": API_KEY,
        "database_url": "postgresql://127.0.0.1/x",
    }
    assert JobServerSettings(**values).session_key is None, "the demo's editor has no session"
    with pytest.raises(ValueError, match="openssl rand -hex 32"):
        JobServerSettings(**values, agent="claude")
    with pytest.raises(ValueError, match="64 hex digits"):
        JobServerSettings(**values, session_key="short")
    settings = JobServerSettings(**values, agent="claude", session_key=f"{NEW}\n{OLD}")
    assert {OLD, NEW} <= set(Projects.one(settings).secrets)
