"""Work that an agent finished before it failed is kept, restored for the next instruction, and never proposed alone."""

from datetime import timedelta
from pathlib import Path

from support.fakes.job_ports import ScriptedEditor, append_prompt
from support.worlds.executor_world import ExecutorWorld, executing
from support.worlds.jobserver_world import git

from bot.jobapi.models import AgentJob, PartialWork, PullRequestState, Status
from bot.jobserver.editors.interface import EditProgress, EditResult, EditTask
from bot.jobserver.errors import EditError


async def half(task: EditTask, progress: EditProgress) -> EditResult | None:
    """Does its work, and fails if the prompt says so."""
    copy = task.workspace.copy
    if task.prompt == "continue":
        found = (copy / "new.md").read_text() if (copy / "new.md").exists() else "nothing"
        return EditResult(f"Found: {found}.")
    await append_prompt(task, progress)
    if task.prompt.startswith("half"):
        (copy / "new.md").write_text("new")
        (copy / "docs" / "start.md").unlink(missing_ok=True)
        raise EditError("agent failed: out of credit")
    return None


def partial_files(job: AgentJob) -> int | None:
    return job.details.partial_work.files if job.details and job.details.partial_work else None


def kept_refs(world: ExecutorWorld) -> list[str]:
    return git(world.data / "mirror.git", "for-each-ref", "--format=%(refname)", "refs/pagehand/").split()


async def test_partial_work_is_kept_and_reported_but_not_proposed(tmp_path: Path) -> None:
    """Three files were written when the credit ran out."""
    async with executing(tmp_path, ScriptedEditor(half)) as world:
        job = await world.done("half")
        assert (job.status, job.pr_link, partial_files(job)) == (Status.FAILED, None, 3)
        assert job.details is not None
        assert job.details.reason == "agent failed: out of credit"
        assert world.branches() == {"main"}
        assert world.pull_requests.opened == []


async def test_the_next_instruction_finds_partial_work_and_proposes_it(tmp_path: Path) -> None:
    """The agent's session remembers what it wrote, and the copy contains it."""
    async with executing(tmp_path, ScriptedEditor(half)) as world:
        job = await world.done("half")
        again = await world.done("continue", job.id)
        assert (again.status, partial_files(again)) == (Status.COMPLETED, None)
        assert again.details is not None
        assert again.details.summary == "Found: new."
        branch = f"pagehand/{job.id}"
        assert world.notes(branch) == "half\n"
        assert git(world.bare, "ls-tree", "-r", "--name-only", branch).split() == ["new.md", "notes.md"]
        assert again.details.changes is not None
        assert again.details.changes.file_count == 3
        await world.retention(archive_after=timedelta(days=30), keep_for=timedelta(days=90)).sweep()
        assert kept_refs(world) == []


async def test_a_second_failure_keeps_both_changes(tmp_path: Path) -> None:
    """A time limit may stop an agent more than once."""
    async with executing(tmp_path, ScriptedEditor(half)) as world:
        job = await world.done("half")
        await world.done("half two", job.id)
        await world.done("continue", job.id)
        assert world.notes(f"pagehand/{job.id}") == "half\nhalf two\n"


async def test_partial_work_is_applied_on_top_of_later_pushes(tmp_path: Path) -> None:
    """Another person's commit to the branch is kept."""
    async with executing(tmp_path, ScriptedEditor(half)) as world:
        job = await world.done("one")
        await world.done("half", job.id)
        branch = f"pagehand/{job.id}"
        world.push_as_somebody(branch, "theirs.md", "theirs")
        await world.done("continue", job.id)
        assert world.notes(branch) == "one\nhalf\n"
        assert git(world.bare, "show", f"{branch}:theirs.md") == "theirs"


async def test_partial_work_that_no_longer_applies_is_dropped_and_logged(tmp_path: Path) -> None:
    """The same lines were changed by hand: nothing is guessed."""
    async with executing(tmp_path, ScriptedEditor(half)) as world:
        job = await world.done("one")
        await world.done("half", job.id)
        branch = f"pagehand/{job.id}"
        world.push_as_somebody(branch, "notes.md", "theirs\n")
        again = await world.done("continue", job.id)
        assert again.details is not None
        assert again.details.summary == "Found: nothing."
        assert world.notes(branch) == "theirs\n"
        assert "no longer applies" in world.folders.log(job.id).read_text()
        assert world.subjects(branch) == ["By hand", "one"]


async def test_after_a_merge_only_the_partial_work_is_carried_over(tmp_path: Path) -> None:
    """It does not bring back what was rejected with the branch before."""

    async def edit(task: EditTask, progress: EditProgress) -> EditResult | None:
        if task.prompt != "half":
            return await half(task, progress)
        (task.workspace.copy / "new.md").write_text("new")
        raise EditError("out of credit")

    async with executing(tmp_path, ScriptedEditor(edit)) as world:
        job = await world.done("one")
        await world.done("half", job.id)
        world.pull_requests.end(PullRequestState.CLOSED)
        await world.done("continue", job.id)
        listed = git(world.bare, "ls-tree", "-r", "--name-only", f"pagehand/{job.id}-2").split()
        assert listed == ["docs/start.md", "new.md"]


async def test_partial_work_can_be_discarded(tmp_path: Path) -> None:
    """The next instruction starts from what was pushed before."""
    async with executing(tmp_path, ScriptedEditor(half)) as world:
        job = await world.done("half")
        discarded = await world.store.discard("docs", job.id)
        assert partial_files(discarded) is None
        assert discarded.details is not None
        assert discarded.details.reason == "agent failed: out of credit", "which promises nothing that is gone"
        again = await world.done("continue", job.id)
        assert again.details is not None
        assert again.details.summary == "Found: nothing."
        assert world.branches() == {"main"}


async def test_an_active_job_keeps_the_partial_work_in_its_copy(tmp_path: Path) -> None:

    async def wait(task: EditTask, progress: EditProgress) -> EditResult | None:
        if task.prompt == "continue":
            assert partial_files(await world.store.discard("docs", task.workspace.copy.parent.name)) is None
        return await half(task, progress)

    async with executing(tmp_path, ScriptedEditor(wait)) as world:
        job = await world.done("half")
        again = await world.done("continue", job.id)
        assert again.details is not None
        assert again.details.summary == "Found: new."


async def test_a_failure_without_changes_keeps_nothing(tmp_path: Path) -> None:
    """It is not mentioned."""

    async def edit(task: EditTask, progress: EditProgress) -> None:
        raise EditError("its key is not valid")

    async with executing(tmp_path, ScriptedEditor(edit)) as world:
        job = await world.done("one")
        assert job.details is not None
        assert (job.details.reason, job.details.partial_work) == ("its key is not valid", None)


async def test_work_that_could_not_be_pushed_is_kept(tmp_path: Path) -> None:
    """The branch is protected at its host until somebody allows it."""
    async with executing(tmp_path) as world:
        git(world.bare, "config", "receive.hideRefs", "refs/heads/pagehand")
        job = await world.done("one")
        assert (job.status, partial_files(job)) == (Status.FAILED, 1)
        git(world.bare, "config", "--unset", "receive.hideRefs")
        await world.done("two", job.id)
        assert world.notes(f"pagehand/{job.id}") == "one\ntwo\n"


async def test_partial_work_is_deleted_with_the_job(tmp_path: Path) -> None:
    """Retention deletes both."""
    async with executing(tmp_path, ScriptedEditor(half)) as world:
        job = await world.done("half")
        retention = world.retention(archive_after=timedelta(days=30), keep_for=timedelta(days=90))
        await retention.sweep()
        assert kept_refs(world) == [f"refs/pagehand/partial/{job.id}"]
        world.ahead = timedelta(days=31)
        await retention.sweep()
        world.ahead = timedelta(days=31 + 91)
        await retention.sweep()
        assert kept_refs(world) == []


def test_partial_work_is_reported_as_a_number_of_files() -> None:
    """It is beside the details that a client knows."""
    assert PartialWork(files=3).model_dump(by_alias=True) == {"files": 3}
