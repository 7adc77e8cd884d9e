"""The job server's database: how its files are created and migrated, and how old rows are found and deleted."""

import asyncio
import hashlib
import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, RowMapping, event, func, insert, select, text, update
from support.databases import engine_for
from support.fakes.job_ports import FakePullRequests
from support.worlds.jobserver_world import make_data_of_1_0_0

from bot.jobapi.models import (
    AttachedFile,
    JobDetails,
    PartialWork,
    PullRequestDetails,
    PullRequestState,
    Requester,
    Status,
)
from bot.jobserver.errors import (
    BudgetUsedUpError,
    GitError,
    JobServerError,
    LeaseLostError,
    RateLimitExceededError,
    RequestRejectedError,
)
from bot.jobserver.pipeline.retention import remove_branches
from bot.jobserver.pull_requests.interface import OpenedPullRequest
from bot.jobserver.store.claims import LEASE, PREFERENCE, Wanted, Worker
from bot.jobserver.store.database import SCHEMA, Database, Session, as_text
from bot.jobserver.store.files import FileStore
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.jobs import BATCH_SIZE, JobStore
from bot.jobserver.store.proposals import ProposalStore
from bot.jobserver.store.records import (
    Choices,
    EarlierInstruction,
    Instruction,
    JobTemplate,
    Outcome,
    ProgressUpdate,
    PromptRequest,
    Question,
    QueuedReply,
    change_job,
)
from bot.jobserver.store.tables import answers, instructions, judgements, local_pull_requests, metadata, uploads
from bot.jobserver.store.tables import jobs as table_of_jobs
from bot.jobserver.store.uploads import UploadLimits, UploadStore
from bot.jobserver.usage import Spent
from bot.store.schema.migration import migrate
from bot.store.schema.tables import metadata as of_the_bot
from bot.store.store import open_store

NEWEST = 9
"""The last step that a version counted in SQLite's `user_version`."""
LATER_STEPS = ("ALTER TABLE instructions ADD COLUMN request_id TEXT NOT NULL DEFAULT ''",
               "ALTER TABLE instructions ADD COLUMN words TEXT")  # fmt: skip
JUDGED = """
CREATE TABLE judgements (
    number INTEGER NOT NULL REFERENCES pull_requests ON DELETE CASCADE, head TEXT NOT NULL, kind TEXT NOT NULL,
    author TEXT NOT NULL, outcome TEXT NOT NULL, words TEXT NOT NULL, judged_at TEXT NOT NULL,
    PRIMARY KEY (number, head, kind, author)
) STRICT;
INSERT INTO judgements VALUES (2, 'b', 'review', 'Ada', 'approved', 'Fine', '2026-01-01T00:00:00.000000Z');
"""


def make_earlier(folder: Path, version: int) -> Path:
    """Creates what an earlier version wrote, with rows of every kind."""
    path = make_data_of_1_0_0(folder, version)
    with closing(sqlite3.connect(path)) as connection:
        for statement in LATER_STEPS[: version - 7]:
            connection.execute(statement)
    if version == NEWEST:
        with closing(sqlite3.connect(folder / "pull_requests.sqlite3")) as connection:
            connection.executescript(JUDGED)
    return path


def steps_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def dumped(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


async def differences(url: str) -> Sequence[object]:
    """How the tables of a database differ from those that the code names."""
    engine = engine_for(url)

    def compared(connection: Connection) -> list[object]:
        ours = {"version_table": SCHEMA.version_table, "compare_server_default": True}
        return list(compare_metadata(MigrationContext.configure(connection, opts=ours), metadata))

    async with engine.begin() as connection:
        found = await connection.run_sync(compared)
    await engine.dispose()
    return found


async def test_the_migrations_create_the_job_servers_tables(empty_database: str) -> None:
    for _ in range(2):
        async with Database(empty_database):
            pass
        assert not await differences(empty_database)


async def test_bot_and_job_server_can_share_a_database(empty_database: str) -> None:
    assert not metadata.tables.keys() & of_the_bot.tables.keys()
    await migrate(empty_database)
    async with Database(empty_database) as database:
        await InstructionQueue(database).backlog()
    await (await open_store(empty_database)).close()


@pytest.mark.promise("upgrades")
@pytest.mark.parametrize("version", [7, 8, NEWEST])
async def test_the_data_of_an_earlier_version_is_taken_over(tmp_path: Path, version: int) -> None:
    path = await asyncio.to_thread(make_earlier, tmp_path, version)
    url = f"sqlite:///{path}"
    for _ in range(2):
        async with Database(url) as database:
            pass
    assert await asyncio.to_thread(steps_of, path) > NEWEST, "so an earlier version refuses it"
    assert not await differences(url)
    async with Database(url) as database:
        jobs, queue = JobStore(database, "docs", rate_limit=100), InstructionQueue(database)
        one, two, three, four, five = [await jobs.get(f"{number:016}") for number in range(1, 6)]
        assert (one.status, one.pr_link, one.details) == (
            Status.COMPLETED, "http://x/docs/pulls/1", JobDetails(summary="Said one"),
        )  # fmt: skip
        assert two.details == JobDetails(reason="git is away", partial_work=PartialWork(files=3))
        template = JobTemplate("docs", "main", "claude")
        file = AttachedFile(id=hashlib.sha256(b"file").hexdigest(), name="a.png")
        again = await jobs.submit(PromptRequest("one", None, "k-1", files=(file,)), template)
        assert again.id == one.id, "answers that were kept are still given"
        taken = await queue.claim(Worker("w"), Wanted(["docs"]))
        assert taken == Instruction(
            3, three.id, "docs", f"pagehand/{three.id}", "three", "three",
            requester=ADA, attempts=2, was_begun=True, worker="w",
        ), "which was running"  # fmt: skip
        await queue.free_replies(taken)
        assert await queue.next_reply(taken) == QueuedReply(4, "the red one"), "which answers the question again"
        await jobs.submit(PromptRequest("six", one.id), template)
        assert (other := await queue.claim(Worker("w"), Wanted(["docs"])))
        assert other.job_id == four.id
        more = await queue.claim(Worker("w"), Wanted(["docs"]))
        assert more is not None
        assert (more.number, more.session) == (7, "s-1")
        assert more.conversation == (EarlierInstruction("one", "Said one", "one"),)
        assert [(file.name, file.size) for file in more.attachments] == [("a.png", 4)]
        [owed] = await ProposalStore(database, "docs").take_due()
        assert await ProposalStore(database, "docs").take_due() == [], "somebody tries it now"
        assert (owed.job_id, owed.title, owed.requester, owed.wants_extras) == (five.id, "Five", ADA, True)
        assert await jobs.old_branches() == ["pagehand/gone"]
        pulls = await database.rows(select(local_pull_requests).order_by(local_pull_requests.c.number))
        assert [(row["number"], row["branch"], row["state"], row["ended_by"]) for row in pulls] == [
            (1, "pagehand/a", "merged", "Ben"), (2, "pagehand/b", "open", None),
        ]  # fmt: skip
        assert len(await database.rows(select(judgements))) == (version == NEWEST)
        new = insert(local_pull_requests).values(dict(pulls[0]) | {"number": None, "branch": "new"})
        await database.execute(new)
        [newest] = await database.rows(select(func.max(local_pull_requests.c.number).label("number")))
        assert newest["number"] == 4, "numbers are never used again"


def with_a_damaged_file(folder: Path) -> Path:
    path = make_earlier(folder, 7)
    path.with_name("pull_requests.sqlite3").write_bytes(b"damaged" * 1_000)
    return path


@pytest.mark.parametrize(
    ("make", "words"),
    [(lambda folder: make_earlier(folder, 6), "before 1.0"), (with_a_damaged_file, "not a SQLite database")],
)
async def test_data_that_cannot_be_taken_over_is_refused_untouched(
    tmp_path: Path, make: Callable[[Path], Path], words: str
) -> None:
    path = await asyncio.to_thread(make, tmp_path)
    before = await asyncio.to_thread(dumped, path), await asyncio.to_thread(steps_of, path)
    with pytest.raises(JobServerError, match=words):
        async with Database(f"sqlite:///{path}"):
            pass
    assert (await asyncio.to_thread(dumped, path), await asyncio.to_thread(steps_of, path)) == before


async def test_data_of_a_newer_version_is_refused(empty_database: str) -> None:
    async with Database(empty_database) as database:
        newer = text(f"UPDATE {SCHEMA.version_table} SET version_num = '9999', compatible_with = '9999'")  # noqa: S608 - ours
        await database.execute(newer)
    with pytest.raises(JobServerError, match="newer version"):
        async with Database(empty_database):
            pass


async def test_the_files_are_private_to_their_owner(tmp_path: Path) -> None:
    """Even if existing ones are readable by others."""
    before, path = os.umask(0), tmp_path / "new"
    try:
        path.touch(0o644)
        async with Database(f"sqlite:///{path}") as database:
            await InstructionQueue(database).backlog()
            modes = {name: os.stat(tmp_path / name).st_mode & 0o777 for name in os.listdir(tmp_path)}  # noqa: PTH116, PTH208 - pathlib's would block as much
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("new", "new-wal", "new-shm"), 0o600)


ADA = Requester(name="Ada", id="U1", url="https://slack.example/p1")
TEMPLATE = JobTemplate("docs", "main", "builtin")
START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


class Jobs:
    """A real store whose clock a test sets."""

    def __init__(self, url: str) -> None:
        self.time = START
        self.database = Database(url, now=lambda: self.time)
        self.store = self.retention = JobStore(self.database, "docs", rate_limit=100_000)
        self.queue = InstructionQueue(self.database)

    async def finished(self, key: str, link: str | None = "http://x/pulls/1") -> str:
        """Adds a job with an instruction on each of two branches."""
        job = await self.store.submit(PromptRequest("one", None, key), TEMPLATE)
        taken = await self.taken(job.id)
        await self.queue.record_progress(taken, ProgressUpdate(activity="reading", session="s"))
        await self.queue.finish(taken, Outcome(pr_link="http://x/pulls/0"))
        await self.store.submit(PromptRequest("two", job.id), TEMPLATE)
        taken = await self.queue.use_next_branch(await self.taken(job.id))
        await self.queue.record_pushed(taken, "c0ffee")
        await self.queue.finish(taken, Outcome(commit="c0ffee", pr_link=link))
        return job.id

    async def taken(self, job_id: str) -> Instruction:
        taken = await self.queue.claim(Worker("w"), Wanted(["docs"]))
        assert taken is not None
        assert taken.job_id == job_id
        return taken

    async def delete_old(self) -> None:
        await self.retention.archive(DAY, DAY)
        self.time += 2 * DAY
        await self.retention.delete_jobs(await self.retention.jobs_to_delete(DAY))


@pytest.fixture
async def jobs(jobs_database: str) -> AsyncIterator[Jobs]:
    jobs = Jobs(jobs_database)
    async with jobs.database:
        yield jobs


async def test_a_deleted_job_loses_its_rows_but_keeps_its_proposed_branches(jobs: Jobs) -> None:
    gone, unproposed = await jobs.finished("k-1"), await jobs.finished("k-0", link=None)
    jobs.time += 2 * DAY
    kept = await jobs.finished("k-2")
    await jobs.delete_old()
    for job_id in (gone, unproposed):
        with pytest.raises(RequestRejectedError):
            await jobs.store.get(job_id)
    rows = [await jobs.database.rows(select(table.c.job_id)) for table in (instructions, answers)]
    assert [[row["job_id"] for row in of_table] for of_table in rows] == [[kept, kept]] * 2
    expected = {f"pagehand/{gone}", f"pagehand/{gone}-2", f"pagehand/{unproposed}"}
    assert set(await jobs.retention.old_branches()) == expected, "a branch that nobody could review stays"
    anew = await jobs.store.submit(PromptRequest("other", None, "k-1"), TEMPLATE)
    assert anew.id != gone, "a key of a deleted job is free again"


async def test_a_request_whose_commit_is_not_answered_is_recorded_once(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a key and without."""
    commit, answered = jobs.database._database.run, [0]

    async def loses_each_other_answer(work: Any, **how: Any) -> object:
        answer = await commit(work, **how)
        answered[0] += 1
        if answered[0] % 2:
            raise TimeoutError
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(jobs.database._database, "run", loses_each_other_answer)
        for request in (PromptRequest("one"), PromptRequest("two", None, "k-1")):
            await jobs.store.submit(request, TEMPLATE)
    assert len(await jobs.database.rows(select(table_of_jobs.c.id))) == 2


async def test_requests_at_once_share_a_key_and_keep_the_limit(jobs: Jobs) -> None:
    store = JobStore(jobs.database, "docs", rate_limit=3)
    alike = [store.submit(PromptRequest("one", None, "k"), TEMPLATE) for _ in range(8)]
    assert len({job.id for job in await asyncio.gather(*alike)}) == 1
    others = [store.submit(PromptRequest(f"{number}"), TEMPLATE) for number in range(8)]
    answered = await asyncio.gather(*others, return_exceptions=True)
    assert sum(isinstance(each, RateLimitExceededError) for each in answered) == 6


async def test_what_happens_to_a_job_at_once_is_all_kept(jobs: Jobs) -> None:
    job_id = (await jobs.store.submit(PromptRequest("one"), TEMPLATE)).id
    taken = await jobs.taken(job_id)
    progress = ProgressUpdate(activity="reading", session="s", spent=Spent(sent=1, answered=1))
    await asyncio.gather(
        *(jobs.queue.record_progress(taken, progress) for _ in range(10)),
        jobs.store.cancel(job_id, Requester(name="Ada")),
        *(jobs.store.submit(PromptRequest(f"{number}", job_id), TEMPLATE) for number in range(5)),
    )
    assert await jobs.queue.spent(job_id) == Spent(sent=10, answered=10)
    assert (await jobs.queue.tokens_today("docs"))[1] == 20
    assert await jobs.queue.is_stopped(taken)
    job = await jobs.store.get(job_id)
    assert job.details is not None
    assert (job.details.reason, job.details.activity) == ("stopped by Ada", "reading")


async def test_a_transaction_deletes_a_bounded_number_of_rows(jobs: Jobs) -> None:
    alike = {"project_id": "docs", "status": "completed", "created_at": as_text(START), "finished_at": as_text(START)}
    alike |= vars(TEMPLATE)
    ended = [alike | {"id": f"{number}", "branch": f"b{number}"} for number in range(BATCH_SIZE + 1)]
    await jobs.database.execute(insert(table_of_jobs).values(ended))
    jobs.time += 2 * DAY
    assert [await jobs.retention.archive(DAY, DAY) for _ in range(3)] == [BATCH_SIZE, 1, 0]
    jobs.time += 2 * DAY
    assert len(await jobs.retention.jobs_to_delete(DAY)) == BATCH_SIZE


NO_TABLES = {"SCAN 2 CONSTANT ROWS", "SCAN projects"}
"""What SQLite calls scans of what a claim names."""


async def test_no_query_scans_a_whole_table(scratch: Path) -> None:
    jobs, seen = Jobs(f"sqlite:///{scratch}/jobs.db"), list[tuple[str, Any]]()
    async with jobs.database:
        engine = jobs.database._database._engine
        event.listen(engine, "before_cursor_execute", lambda *call: seen.append((call[2], call[3])))
        job_id = await jobs.finished("k-1")
        await jobs.store.get(job_id)
        await jobs.store.submit(PromptRequest("three", job_id), TEMPLATE)
        taken = await jobs.taken(job_id)
        await jobs.store.cancel(job_id)
        await jobs.queue.is_stopped(taken)
        await jobs.queue.watch("w", [taken.number], renew=True)
        await jobs.queue.release("w")
        await jobs.queue.end_leases()
        assert await jobs.queue.claim(Worker("w"), Wanted(["a", "b"], besides=[1], suspects=False)) is None
        await jobs.queue.backlog()
        await jobs.queue.finish(await jobs.taken(job_id), Outcome())
        await jobs.retention.delete_answers()
        await jobs.delete_old()
        await jobs.retention.forget_branch("b")
    with closing(sqlite3.connect(scratch / "jobs.db")) as connection:
        for statement, values in seen:
            if statement.startswith(("SELECT", "UPDATE", "DELETE", "WITH")):
                plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
                scans = [step for step in plan if step.startswith("SCAN") and step not in NO_TABLES]
                assert all("USING" in step for step in scans), f"{statement}: {plan}"
                is_sorted = any("TEMP B-TREE" in step for step in plan)
                assert not (" AS same" in statement and is_sorted), "a claim takes as long as what waits is"
    assert len(seen) > 60


WRITES: list[Callable[[InstructionQueue, Instruction], Awaitable[object]]] = [
    lambda queue, lost: queue.finish(lost, Outcome()),
    lambda queue, lost: queue.renew(lost),
    lambda queue, lost: queue.record_pushed(lost, "c0ffee"),
    lambda queue, lost: queue.record_answer(lost, JobDetails(summary="Done")),
    lambda queue, lost: queue.use_next_branch(lost),
    lambda queue, lost: queue.record_progress(lost, ProgressUpdate(activity="reading")),
    lambda queue, lost: queue.record_question(lost, Question("Which?")),
    lambda queue, lost: queue.record_partial(lost, "c0ffee"),
    lambda queue, lost: queue.keep_partial(lost, "file"),
    lambda queue, lost: queue.record_home(lost, "file"),
    lambda queue, lost: queue.keep_home(lost, "file"),
    lambda queue, lost: queue.record_log(lost, "file"),
    lambda queue, lost: queue.free_replies(lost),
    lambda queue, lost: queue.record_budget_end(lost, BudgetUsedUpError("spent", "More?")),
    lambda queue, lost: queue.use_reply(lost, QueuedReply(lost.number + 1, "more")),
    lambda queue, lost: ProposalStore(queue.database, "docs").record_change(lost, title="T", description="", checks=()),
]


@pytest.mark.promise("jobs once")
async def test_who_lost_an_instruction_records_nothing(jobs: Jobs) -> None:
    """The same worker, too, once it has begun it again."""
    job_id = (await jobs.store.submit(PromptRequest("one"), TEMPLATE)).id
    await jobs.store.submit(PromptRequest("more", job_id), TEMPLATE)
    lost = await jobs.taken(job_id)
    jobs.time += LEASE - timedelta(seconds=1)
    assert await jobs.queue.claim(Worker("other"), Wanted(["docs"])) is None
    await jobs.queue.watch("w", [lost.number], renew=True)
    jobs.time += timedelta(seconds=2)
    assert await jobs.queue.claim(Worker("other"), Wanted(["docs"])) is None, "it was renewed"
    jobs.time += LEASE
    await jobs.queue.renew(lost)  # nobody else has claimed it
    jobs.time += LEASE
    assert await jobs.queue.claim(Worker("other"), Wanted(["docs"], suspects=False)) is None
    again = await jobs.taken(job_id)
    assert (again.number, again.attempts, again.was_begun) == (lost.number, 2, True)
    before = await jobs.store.get(job_id)
    for write in WRITES:
        with pytest.raises(LeaseLostError):
            await write(jobs.queue, lost)
    assert await jobs.store.get(job_id) == before
    await jobs.queue.finish(again, Outcome())


async def begin_again(jobs: Jobs, lost: Instruction) -> None:
    jobs.time += LEASE
    await jobs.taken(lost.job_id)


async def give_back(jobs: Jobs, lost: Instruction) -> None:
    """That attempt does not count, so the next one has the same number."""
    await jobs.queue.release("w", lost.number)
    other = await jobs.queue.claim(Worker("other"), Wanted(["docs"]))
    assert other is not None
    assert (other.number, other.attempts) == (lost.number, lost.attempts)


async def end(jobs: Jobs, lost: Instruction) -> None:
    await jobs.queue.finish(lost, Outcome())


@pytest.mark.promise("jobs once")
@pytest.mark.parametrize("lose", [begin_again, give_back, end])
async def test_a_claim_that_is_over_records_nothing_though_its_worker_holds_another(
    jobs: Jobs, lose: Callable[[Jobs, Instruction], Awaitable[None]]
) -> None:
    lost = await jobs.taken((await jobs.store.submit(PromptRequest("one"), TEMPLATE)).id)
    held = await jobs.taken((await jobs.store.submit(PromptRequest("another"), TEMPLATE)).id)
    assert (held.worker, held.attempts) == (lost.worker, lost.attempts)
    await lose(jobs, lost)

    async def recorded() -> list[list[RowMapping]]:
        tables = (instructions.c.number, instructions), (table_of_jobs.c.id, table_of_jobs)
        return [await jobs.database.rows(select(table).order_by(key)) for key, table in tables]

    before = await recorded()
    jobs.time += timedelta(seconds=1)
    for write in WRITES:
        with pytest.raises(LeaseLostError):
            await write(jobs.queue, lost)
    if lose is not begin_again:
        assert await jobs.queue.watch("w", [lost.number], renew=True) == {}
    assert await recorded() == before
    await jobs.queue.renew(held)


async def test_a_worker_renews_no_lease_but_those_that_it_names(jobs: Jobs) -> None:
    """It lets go of what it cannot end in time."""
    let_go = await jobs.taken((await jobs.store.submit(PromptRequest("one"), TEMPLATE)).id)
    kept = [await jobs.taken((await jobs.store.submit(PromptRequest(f"{number}"), TEMPLATE)).id) for number in range(2)]
    jobs.time += LEASE - timedelta(seconds=1)
    assert await jobs.queue.watch("w", [], renew=True) == {}
    assert (await jobs.queue.watch("w", [kept[0].number], renew=True)).keys() == {kept[0].number}
    await jobs.queue.renew(kept[1])
    jobs.time += timedelta(seconds=1)
    claimed = [await jobs.queue.claim(Worker("other"), Wanted(["docs"])) for _ in range(2)]
    assert [taken and taken.number for taken in claimed] == [let_go.number, None]


@pytest.mark.promise("jobs once")
@pytest.mark.parametrize("server", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)
@pytest.mark.parametrize("change", ["renewed", "ended"])
async def test_what_changes_while_somebody_claims_it_is_not_claimed(jobs: Jobs, change: str) -> None:
    """Its worker renews a lease that is over at the moment when another one has found it."""
    taken = await jobs.taken((await jobs.store.submit(PromptRequest("one"), TEMPLATE)).id)
    jobs.time += LEASE
    claim = jobs.queue.claim(Worker("other"), Wanted(["docs"]))

    async def change_before_the_claim(session: Session) -> asyncio.Task[Instruction | None]:
        new = {"claimed_until": session.time(ago=-LEASE)} if change == "renewed" else {"state": "stopped"}
        await session.execute(update(instructions).where(instructions.c.number == taken.number).values(new))
        claiming = asyncio.create_task(claim)
        while not await session.rows(select(text("1")).select_from(text("pg_locks")).where(text("NOT granted"))):
            assert not claiming.done()
        return claiming

    claiming = await jobs.database.transact(change_before_the_claim)
    assert await claiming is None


async def test_no_two_deeds_of_a_job_wait_for_each_other(jobs: Jobs) -> None:
    """A deadlock would be tried again: here it is not."""
    at_once = jobs.database.waiting(0.5)  # PostgreSQL looks for one after a second
    queue, store = InstructionQueue(at_once), JobStore(at_once, "docs", rate_limit=100_000)
    proposals, pull_request = ProposalStore(at_once, "docs"), PullRequestDetails(number=1)
    for _ in range(5):
        job_id = (await jobs.store.submit(PromptRequest("one"), TEMPLATE)).id
        taken = await jobs.taken(job_id)
        pending = await proposals.record_change(taken, title="T", description="D", checks=())
        progress = ProgressUpdate(activity="reading", session="s", spent=Spent(sent=1, answered=1))
        await asyncio.gather(
            queue.renew(taken),
            queue.watch("w", [taken.number], renew=True),
            queue.record_progress(taken, progress),
            queue.record_pushed(taken, "c0ffee"),
            store.submit(PromptRequest("more", job_id), TEMPLATE),
            store.cancel(job_id),
            proposals.record_proposed(pending, pull_request, "http://x/pulls/1"),
            proposals.take_due(),
            queue.claim(Worker("other"), Wanted(["docs"])),
        )
        await queue.finish(taken, Outcome())
        while (left := await queue.claim(Worker("w"), Wanted(["docs"]))) is not None:
            await queue.finish(left, Outcome())
        ended = await jobs.store.get(job_id)
        assert (ended.status, ended.pr_link) == (Status.COMPLETED, "http://x/pulls/1")


async def test_a_new_instruction_clears_what_the_one_before_said_and_one_begun_again_does_not(jobs: Jobs) -> None:
    job_id = (await jobs.store.submit(PromptRequest("one"), TEMPLATE)).id
    await jobs.store.submit(PromptRequest("two", job_id), TEMPLATE)

    async def recorded() -> tuple[str | None, str | None]:
        [row] = await jobs.database.rows(select(table_of_jobs.c.details))
        details = JobDetails.model_validate_json(row["details"])
        return details.summary, details.revision

    said = JobDetails(summary="Done", revision="c0ffee")
    await jobs.queue.finish(await jobs.taken(job_id), Outcome(details=said))
    assert await recorded() == ("Done", "c0ffee")
    second = await jobs.taken(job_id)
    assert (second.summary, await recorded()) == ("", (None, "c0ffee"))
    await jobs.queue.record_answer(second, JobDetails(summary="Half"))
    jobs.time += LEASE
    assert (await jobs.taken(job_id)).summary == "Half"


@pytest.mark.promise("jobs once")
async def test_a_message_after_the_first_question_lets_a_job_continue_for_whoever_holds_it(jobs: Jobs) -> None:
    """It is asked again by what was queued before, and the message answers both."""
    job_id = (await jobs.store.submit(PromptRequest("one"), TEMPLATE)).id
    first = await jobs.taken(job_id)
    await jobs.queue.record_progress(first, ProgressUpdate(spent=Spent(sent=10)))
    for prompt in ("go on", "and that"):
        jobs.time += timedelta(seconds=1)
        await jobs.queue.record_budget_end(first, BudgetUsedUpError("spent", "More?"))
        jobs.time += timedelta(seconds=1)
        await jobs.store.submit(PromptRequest(prompt, job_id), TEMPLATE)
    await jobs.queue.finish(first, Outcome(failure="spent"))
    lost = await jobs.taken(job_id)
    jobs.time += LEASE
    again = await jobs.taken(job_id)
    assert lost.prompt == again.prompt == "go on"
    with pytest.raises(LeaseLostError):
        await jobs.queue.spent_since_asked(lost)
    assert await jobs.queue.spent_since_asked(again) == 0


async def test_what_is_no_column_of_a_job_is_not_left_out_in_silence(jobs: Jobs) -> None:
    with pytest.raises(KeyError, match="colour"):
        await jobs.database.transact(lambda session: change_job(session, "any", colour="red"))


async def test_the_answer_to_a_request_is_the_job_as_it_is_stored(jobs: Jobs) -> None:
    jobs.store.choices = Choices(models=("large",))
    job = await jobs.store.submit(PromptRequest("one", model="large"), TEMPLATE)
    assert (await jobs.store.get(job.id), job.model) == (job, "large")
    await jobs.queue.finish(await jobs.taken(job.id), Outcome())
    again = await jobs.store.submit(PromptRequest("two", job.id), TEMPLATE)
    assert (await jobs.store.get(job.id), again.model, again.status) == (again, TEMPLATE.model, Status.ACTIVE)


@pytest.mark.promise("jobs once")
async def test_who_lost_an_instruction_keeps_nobodys_lease(jobs: Jobs) -> None:
    """It learns of that, and another one gets what its new worker does not renew."""
    lost = await jobs.taken((await jobs.store.submit(PromptRequest("one"), TEMPLATE)).id)
    jobs.time += LEASE
    assert await jobs.queue.claim(Worker("other"), Wanted(["docs"]))
    jobs.time += LEASE - timedelta(seconds=1)
    assert await jobs.queue.watch("w", [lost.number], renew=True) == {}
    jobs.time += timedelta(seconds=1)
    assert await jobs.queue.claim(Worker("third"), Wanted(["docs"]))


async def test_projects_take_turns_and_a_jobs_instructions_do_not(jobs: Jobs) -> None:
    ids = [(await jobs.store.submit(PromptRequest(f"{number}"), TEMPLATE)).id for number in range(3)]
    await jobs.store.submit(PromptRequest("more", ids[0]), TEMPLATE)
    await JobStore(jobs.database, "site", rate_limit=9).submit(PromptRequest("one"), TEMPLATE)
    many = Wanted(["docs", "site", *map(str, range(1_000))])
    claimed = [await jobs.queue.claim(Worker(worker), many) for worker in "abacb"]
    order = [taken and (taken.project_id, taken.prompt) for taken in claimed]
    assert order == [("docs", "0"), ("site", "one"), ("docs", "1"), ("docs", "2"), None]
    assert claimed[0] is not None
    await jobs.queue.finish(claimed[0], Outcome())
    assert await jobs.queue.claim(Worker("a"), Wanted(["site"])) is None
    more = await jobs.queue.claim(Worker("a"), Wanted(["docs"]))
    assert more is not None
    assert more.prompt == "more"


async def test_a_message_waits_a_little_for_the_worker_that_has_its_jobs_folder(jobs: Jobs) -> None:
    here, there, wanted = Worker("a", "here"), Worker("b", "there"), Wanted(["docs"])
    job_id = (await jobs.store.submit(PromptRequest("one"), TEMPLATE)).id
    first = await jobs.queue.claim(here, wanted)
    assert first is not None
    await jobs.queue.finish(first, Outcome())
    await jobs.queue.announce(here, {"docs": "claude in bubblewrap", "site": "codex in bubblewrap"})
    assert await jobs.queue.offers() == [{"docs": "claude in bubblewrap", "site": "codex in bubblewrap"}]
    for prompt, taker, wait in (("two", there, PREFERENCE), ("three", there, timedelta()), ("four", here, PREFERENCE)):
        await jobs.store.submit(PromptRequest(prompt, job_id), TEMPLATE)
        await jobs.queue.announce(taker, {"docs": "claude"})
        if wait:
            other = here if taker is there else there
            await jobs.queue.announce(other, {"docs": "claude"})
            assert await jobs.queue.claim(taker, wanted) is None
            jobs.time += wait
        taken = await jobs.queue.claim(taker, wanted)
        assert taken is not None
        assert taken.prompt == prompt
        await jobs.queue.finish(taken, Outcome())
    await jobs.store.submit(PromptRequest("five", job_id), TEMPLATE)
    await jobs.queue.leave(here)
    assert await jobs.queue.claim(there, wanted) is not None, "nobody waits for one that has gone"
    jobs.time += LEASE
    assert await jobs.queue.offers() == []


async def test_claims_at_once_take_different_instructions(jobs: Jobs) -> None:
    for number in range(8):
        await jobs.store.submit(PromptRequest(f"{number}"), TEMPLATE)
    claimed = await asyncio.gather(*(jobs.queue.claim(Worker(f"{number}"), Wanted(["docs"])) for number in range(10)))
    claimed += [await jobs.queue.claim(Worker("late"), Wanted(["docs"])) for _ in range(8)]
    numbers = [taken.number for taken in claimed if taken]
    assert len(numbers) == len(set(numbers)) == 8


async def test_old_jobs_are_deleted_once_however_many_processes_do_it(jobs: Jobs) -> None:
    gone = [await jobs.finished(f"k-{number}") for number in range(4)]
    jobs.time += 2 * DAY
    await asyncio.gather(*(jobs.retention.archive(DAY, DAY) for _ in range(4)))
    jobs.time += 2 * DAY
    old = await jobs.retention.jobs_to_delete(DAY)
    await asyncio.gather(*(jobs.retention.delete_jobs(old) for _ in range(4)))
    assert len(await jobs.retention.old_branches()) == 2 * len(gone)


class Branches:
    """A repository in which one branch cannot be deleted."""

    def __init__(self, stuck: str = "") -> None:
        self.stuck = stuck
        self.deleted: list[str] = []

    async def delete_branch(self, branch: str) -> None:
        if branch == self.stuck:
            raise GitError("protected")
        self.deleted.append(branch)


async def test_branches_of_ended_pull_requests_are_deleted_despite_a_failing_one(
    jobs: Jobs, caplog: pytest.LogCaptureFixture
) -> None:
    branches, pull_requests = Branches(), FakePullRequests()
    ids = sorted([await jobs.finished(f"k-{number}") for number in range(3)])
    jobs.time += 2 * DAY
    await jobs.delete_old()
    branches.stuck = f"pagehand/{ids[0]}"
    pull_requests.kept.append(OpenedPullRequest(1, "http://x/1", f"pagehand/{ids[1]}", PullRequestState.OPEN))
    pull_requests.kept.append(OpenedPullRequest(2, "http://x/2", f"pagehand/{ids[2]}", PullRequestState.MERGED))
    await remove_branches(jobs.retention, pull_requests, branches.delete_branch)
    assert set(branches.deleted) == {f"pagehand/{ids[2]}", *(f"pagehand/{job_id}-2" for job_id in ids)}
    assert await jobs.retention.old_branches() == [branches.stuck]
    assert "1 old branches could not be deleted" in caplog.text
    jobs.time += 8 * DAY
    await remove_branches(jobs.retention, pull_requests, branches.delete_branch)
    assert await jobs.retention.old_branches() == [], "a week of tries is enough: what grows has an end"


@pytest.mark.promise("upgrades")
async def test_the_uploads_of_1_0_0_are_read_in_even_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each once, from the folder that it left, which goes in the end."""
    path, folder = await asyncio.to_thread(make_earlier, tmp_path, 7), tmp_path / "uploads"
    contents = {hashlib.sha256(content).hexdigest(): content for content in (b"file", b"larger" * 300_000)}
    gone = hashlib.sha256(b"gone").hexdigest()
    with closing(sqlite3.connect(path)) as connection, connection:
        for file_id in (*list(contents)[1:], gone):
            connection.execute("INSERT INTO uploads VALUES (?, 1, 'image/png', '2026-01-01')", [file_id])
    folder.mkdir()
    for name, content in {**contents, "arriving-1": b"left"}.items():
        (folder / name).write_bytes(content)
    async with Database(f"sqlite:///{path}") as database:
        store = FileStore(database)
        taking = UploadStore(store, "docs", UploadLimits(1, 1))
        written, write = list[str](), store.write

        async def killed(pieces: AsyncIterator[bytes]) -> str:
            if written:
                raise KeyError
            written.append(await write(pieces))
            return written[0]

        with monkeypatch.context() as patched:
            patched.setattr(store, "write", killed)
            with pytest.raises(KeyError):
                await taking.take_over(folder)
        for _ in range(2):
            await taking.take_over(folder)
        rows = {row["id"]: row["file"] for row in await database.rows(select(*uploads.c["id", "file"]))}
        assert written[0] in rows.values(), "it was not read again"
        assert rows.pop(gone) is None
        assert {each: b"".join([part async for part in store.read(file)]) for each, file in rows.items()} == contents
    assert not folder.exists()
