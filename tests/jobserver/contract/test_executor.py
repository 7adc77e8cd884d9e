"""Instructions are executed on a real repository and a real store."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from support.fakes.job_ports import ScriptedEditor, WordCheck, append_prompt
from support.worlds.executor_world import executing
from support.worlds.jobserver_world import git, until

from bot.jobapi.models import CheckStatus, JobDetails, PlanStep, PullRequestState, Requester, Status, StepStatus
from bot.jobserver.editors.interface import EditProgress, EditResult, EditTask, Exchange
from bot.jobserver.errors import EditError, JobServerError

ROBIN = Requester(name="Robin", id="U1", url="https://example.slack.com/archives/C1/p1")


async def test_a_job_reports_the_agents_answer_and_its_changes(tmp_path: Path) -> None:
    async with executing(tmp_path) as world:
        job = await world.done("one", requester=ROBIN)
        assert job.details is not None
        assert job.details.summary == "Did: one"
        assert (job.details.reason, job.details.question, job.details.activity) == (None, None, None)
        assert job.details.changes is not None
        assert [(file.path, file.added) for file in job.details.changes.files] == [("notes.md", 1)]
        branch = f"pagehand/{job.id}"
        assert job.details.revision == git(world.bare, "rev-parse", branch).strip()
        (opened,) = world.pull_requests.opened
        assert (opened.branch, opened.title, opened.requester) == (branch, "one", ROBIN)
        assert "Asked by Robin ([where](https://example.slack.com/archives/C1/p1))." in opened.description
        trailer = git(world.bare, "log", "-1", "--format=%(trailers:key=Requested-by,valueonly)", branch)
        assert trailer.strip() == "Robin (https://example.slack.com/archives/C1/p1)"


async def test_a_follow_up_has_the_conversation_session_and_folder(tmp_path: Path) -> None:
    async def edit(task: EditTask, progress: EditProgress) -> None:
        progress.session("s-1")
        (task.workspace.home / task.prompt).touch()
        await append_prompt(task, progress)

    async with executing(tmp_path, ScriptedEditor(edit)) as world:
        job = await world.done("one")
        await world.done("two", job.id)
        first, second = world.editor.tasks
        assert (first.session, list(first.conversation)) == (None, [])
        assert (second.session, list(second.conversation)) == ("s-1", [Exchange("one", "Did: one")])
        assert first.workspace == second.workspace
        assert {path.name for path in second.workspace.home.iterdir()} == {"one", "two"}
        assert not second.workspace.copy.exists(), "at rest a job takes no room for its files"
        assert world.notes(f"pagehand/{job.id}") == "one\ntwo\n"


@pytest.mark.parametrize("state", [PullRequestState.MERGED, PullRequestState.CLOSED])
async def test_after_its_pull_request_ended_a_job_starts_a_new_branch(tmp_path: Path, state: PullRequestState) -> None:
    async with executing(tmp_path) as world:
        job = await world.done("rejected")
        world.pull_requests.end(state)
        again = await world.done("two", job.id)
        assert again.pr_link == "https://host/pulls/2"
        assert world.subjects(f"pagehand/{job.id}-2") == ["two"], "rejected changes do not come back"
        assert world.notes(f"pagehand/{job.id}-2") == "two\n"
        await world.done("three", job.id)
        assert world.subjects(f"pagehand/{job.id}-2") == ["three", "two"]
        world.pull_requests.end(state)
        await world.done("four", job.id)
        assert world.subjects(f"pagehand/{job.id}-3") == ["four"]


async def test_without_changes_there_is_no_commit_but_a_reason(tmp_path: Path) -> None:
    async def edit(task: EditTask, progress: EditProgress) -> EditResult | None:
        if task.prompt == "one":
            await append_prompt(task, progress)
            return None
        return EditResult("I looked.", reason="It is right as it is.", question="Which page?")

    async with executing(tmp_path, ScriptedEditor(edit)) as world:
        job = await world.done("one")
        again = await world.done("two", job.id)
        assert (again.status, again.pr_link) == (Status.COMPLETED, job.pr_link)
        assert again.details is not None
        assert job.details is not None
        told = (again.details.summary, again.details.reason, again.details.question)
        assert told == ("I looked.", "It is right as it is.", "Which page?")
        assert again.details.changes == job.details.changes, "the pull request is unchanged"
        assert world.subjects(f"pagehand/{job.id}") == ["one"]


@pytest.mark.parametrize("changes", [False, True])
async def test_an_answer_that_ends_with_a_question_asks_if_nothing_changed(tmp_path: Path, *, changes: bool) -> None:
    """Whoever has done the work is polite."""

    async def edit(task: EditTask, progress: EditProgress) -> EditResult:
        if changes:
            await append_prompt(task, progress)
        return EditResult("I looked.", closing_question="Which page?")

    async with executing(tmp_path, ScriptedEditor(edit)) as world:
        job = await world.done("one")
        assert job.details is not None
        assert (job.details.question, job.details.reason) == (None if changes else "Which page?", None)


async def test_left_out_files_explain_why_nothing_changed(tmp_path: Path) -> None:
    async def edit(task: EditTask, _: EditProgress) -> None:
        (task.workspace.copy / "big.md").write_text("x" * 20_000)

    async with executing(tmp_path, ScriptedEditor(edit)) as world:
        job = await world.done("one")
        assert job.details is not None
        assert str(job.details.reason).startswith("Left out: `big.md`")
        assert world.branches() == {"main"}


async def test_check_findings_go_back_once_and_the_rest_is_reported(tmp_path: Path) -> None:
    async def edit(task: EditTask, progress: EditProgress) -> EditResult:
        if task.session is None:
            progress.session("s-1")
            for name in "ab":
                (task.workspace.copy / f"{name}.md").write_text("wrong")
        else:
            (task.workspace.copy / "a.md").write_text("right")
        return EditResult("Written.")

    async with executing(tmp_path, ScriptedEditor(edit), WordCheck()) as world:
        job = await world.done("one")
        _, second = world.editor.tasks
        assert (second.session, list(second.conversation)) == ("s-1", [Exchange("one", "Written.")])
        assert "not by a person" in second.prompt
        assert "words: a.md: says wrong" in second.prompt
        assert world.subjects(f"pagehand/{job.id}") == ["one"], "an instruction is one commit"
        assert job.details is not None
        assert job.details.pull_request is not None
        (check,) = job.details.pull_request.checks
        assert (check.status, check.problems) == (CheckStatus.FAILED, ("b.md: says wrong",))
        assert "The checks still find:\n\n- words: b.md: says wrong" in world.pull_requests.opened[0].description


async def test_an_editor_that_cannot_fix_check_findings_keeps_its_change(tmp_path: Path) -> None:
    async def edit(task: EditTask, _: EditProgress) -> None:
        (task.workspace.copy / "a.md").write_text("wrong" if task.prompt == "one" else "half")
        if task.prompt != "one":
            raise EditError("out of tokens")

    async with executing(tmp_path, ScriptedEditor(edit), WordCheck()) as world:
        job = await world.done("one")
        assert job.status is Status.COMPLETED
        assert git(world.bare, "show", f"pagehand/{job.id}:a.md") == "wrong"
        assert "out of tokens" in world.folders.log(job.id).read_text()


async def test_a_push_that_loses_a_race_is_rebased_without_the_agent(tmp_path: Path) -> None:
    async def edit(task: EditTask, progress: EditProgress) -> None:
        await append_prompt(task, progress)
        if task.prompt == "two":
            branch = f"pagehand/{task.workspace.copy.parent.name}"
            await asyncio.to_thread(world.push_as_somebody, branch, "theirs.md", "theirs")

    async with executing(tmp_path, ScriptedEditor(edit)) as world:
        job = await world.done("one")
        again = await world.done("two", job.id)
        assert again.status is Status.COMPLETED
        assert world.subjects(f"pagehand/{job.id}") == ["two", "By hand", "one"]
        assert world.notes(f"pagehand/{job.id}") == "one\ntwo\n"
        assert git(world.bare, "show", f"pagehand/{job.id}:theirs.md") == "theirs"
        assert len(world.editor.tasks) == 2


async def test_a_push_that_loses_a_race_for_the_same_lines_is_edited_again(tmp_path: Path) -> None:
    async def edit(task: EditTask, progress: EditProgress) -> None:
        await append_prompt(task, progress)
        if task.prompt == "two" and len(world.editor.tasks) == 2:
            branch = f"pagehand/{task.workspace.copy.parent.name}"
            await asyncio.to_thread(world.push_as_somebody, branch, "notes.md", "theirs\n")

    async with executing(tmp_path, ScriptedEditor(edit)) as world:
        job = await world.done("one")
        assert (await world.done("two", job.id)).status is Status.COMPLETED
        assert world.subjects(f"pagehand/{job.id}") == ["two", "By hand", "one"]
        assert world.notes(f"pagehand/{job.id}") == "theirs\ntwo\n"
        assert [task.prompt for task in world.editor.tasks] == ["one", "two", "two"]


async def test_progress_is_visible_live_and_saved_rarely(tmp_path: Path) -> None:
    async def edit(task: EditTask, progress: EditProgress) -> None:
        for number in range(50_000):
            progress.plan([PlanStep(title=f"Step {number} {'x' * 999}", status=StepStatus.IN_PROGRESS)] * 99)
            progress.activity(f"reading {number}")
        await asyncio.wait_for(seen.wait(), 30)

    seen = asyncio.Event()
    async with executing(tmp_path, ScriptedEditor(edit)) as world:
        job = await world.submit("one")

        async def details() -> JobDetails | None:
            return (await world.store.get("docs", job.id)).details

        told = await until(details)
        assert told.activity == "reading 49999"
        assert len(told.plan) == 50
        assert len(told.plan[0].title) == 300
        seen.set()
        ended = (await world.ended(job.id)).details
        assert ended is not None
        assert (ended.activity, ended.plan) == (None, told.plan)


async def test_an_old_job_is_deleted_with_all_its_data(tmp_path: Path) -> None:
    async with executing(tmp_path) as world:
        merged = await world.done("one")
        world.pull_requests.end(PullRequestState.MERGED)
        await world.done("two", merged.id)
        still_open = await world.done("three")
        retention = world.retention(archive_after=timedelta(days=30), keep_for=timedelta(days=90))
        await retention.sweep()
        assert (await world.store.get("docs", merged.id)).status is Status.COMPLETED
        world.ahead = timedelta(days=31)
        await retention.sweep()
        assert (await world.store.get("docs", merged.id)).status is Status.ARCHIVED
        assert (world.data / "jobs" / merged.id / "home").exists()
        world.ahead = timedelta(days=31 + 91)
        await retention.sweep()
        for job in (merged, still_open):
            with pytest.raises(JobServerError, match="no such job"):
                await world.store.get("docs", job.id)
        left = [path.name for folder in ("jobs", "logs") for path in (world.data / folder).iterdir()]
        assert left == []
        assert world.branches() == {"main", f"pagehand/{merged.id}-2", f"pagehand/{still_open.id}"}
        assert await world.retained.old_branches() == []
