"""Instructions are executed on a real repository and a real store; messages answer questions that come up meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from support.fakes.job_ports import ScriptedEditor, append_prompt, word_check
from support.worlds.executor_world import ExecutorWorld, details, executing, pull_request_of
from support.worlds.jobserver_world import git, until

from bot.errors import StoreUnavailable
from bot.jobapi.models import (
    AgentJob,
    CheckStatus,
    FieldKind,
    JobDetails,
    PlanStep,
    PullRequestState,
    QuestionField,
    QuestionOption,
    Status,
    StepStatus,
)
from bot.jobserver.editors.interface import EditProgress, EditResult, EditTask
from bot.jobserver.errors import EditError, JobServerError, LeaseLostError, PushRejectedError
from bot.jobserver.pipeline.descriptions import TRAILER, trailer_value
from bot.jobserver.pipeline.pipeline import Pipeline
from bot.jobserver.repository.git_repository import GitRepository, StartingPoint
from bot.jobserver.store.claims import LEASE, Wanted, Worker
from bot.jobserver.store.records import EarlierInstruction, Instruction, Question


def prompts(world: ExecutorWorld) -> list[str]:
    return [task.prompt for task in world.editor.tasks]


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
        assert (second.session, list(second.conversation)) == ("s-1", [EarlierInstruction("one", "Did: one", "one")])
        assert first.workspace == second.workspace
        assert {path.name for path in second.workspace.home.iterdir()} == {"one", "two"}
        assert not second.workspace.copy.exists(), "at rest a job takes no room for its files"
        assert world.notes(f"pagehand/{job.id}") == "one\ntwo\n"


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
        told = (details(again).summary, details(again).reason, details(again).question)
        assert told == ("I looked.", "It is right as it is.", "Which page?")
        assert details(again).changes == details(job).changes, "the pull request is unchanged"
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
        assert (details(job).question, details(job).reason) == (None if changes else "Which page?", None)


async def test_check_findings_go_back_once_and_the_rest_is_reported(tmp_path: Path) -> None:
    async def edit(task: EditTask, progress: EditProgress) -> EditResult:
        if task.session is None:
            progress.session("s-1")
            for name in "ab":
                (task.workspace.copy / f"{name}.md").write_text("wrong")
        else:
            (task.workspace.copy / "a.md").write_text("right")
        return EditResult("Written.")

    async with executing(tmp_path, ScriptedEditor(edit), word_check) as world:
        job = await world.done("one")
        _, second = world.editor.tasks
        assert (second.session, list(second.conversation)) == ("s-1", [EarlierInstruction("one", "Written.", "one")])
        assert "not by a person" in second.prompt
        assert "words: a.md: says wrong" in second.prompt
        assert world.subjects(f"pagehand/{job.id}") == ["one"], "an instruction is one commit"
        (check,) = pull_request_of(job).checks
        assert (check.status, check.problems) == (CheckStatus.FAILED, ("b.md: says wrong",))
        assert "The checks still find:\n\n- words: b.md: says wrong" in world.pull_requests.opened[0].description


async def test_an_editor_that_cannot_fix_check_findings_keeps_its_change(tmp_path: Path) -> None:
    async def edit(task: EditTask, _: EditProgress) -> None:
        (task.workspace.copy / "a.md").write_text("wrong" if task.prompt == "one" else "half")
        if task.prompt != "one":
            raise EditError("out of tokens")

    async with executing(tmp_path, ScriptedEditor(edit), word_check) as world:
        job = await world.done("one")
        assert job.status is Status.COMPLETED
        assert git(world.bare, "show", f"pagehand/{job.id}:a.md") == "wrong"
        assert "out of tokens" in world.log(job.id)


@pytest.mark.parametrize(
    ("theirs", "notes", "tasks"),
    [
        ("theirs.md", "one\ntwo\n", ["one", "two"]),
        pytest.param("notes.md", "theirs\ntwo\n", ["one", "two", "two"], marks=pytest.mark.full),
    ],
)
async def test_a_push_that_loses_a_race_is_rebased_and_edited_again_only_for_the_same_lines(
    tmp_path: Path, theirs: str, notes: str, tasks: list[str]
) -> None:
    async def edit(task: EditTask, progress: EditProgress) -> None:
        await append_prompt(task, progress)
        if task.prompt == "two" and len(world.editor.tasks) == 2:
            branch = f"pagehand/{task.workspace.copy.parent.name}"
            await asyncio.to_thread(world.push_as_somebody, branch, theirs, "theirs\n")

    async with executing(tmp_path, ScriptedEditor(edit)) as world:
        job = await world.done("one")
        assert (await world.done("two", job.id)).status is Status.COMPLETED
        assert world.subjects(f"pagehand/{job.id}") == ["two", "By hand", "one"]
        assert world.notes(f"pagehand/{job.id}") == notes
        assert git(world.bare, "show", f"pagehand/{job.id}:{theirs}").startswith("theirs\n")
        assert prompts(world) == tasks


@pytest.mark.parametrize("change", [("main",), ("-d",)], ids=["taken back", "deleted"])
async def test_what_somebody_took_off_a_branch_during_an_instruction_does_not_come_back(
    tmp_path: Path, change: tuple[str]
) -> None:
    async def edit(task: EditTask, _: EditProgress) -> None:
        (task.workspace.copy / f"{task.prompt}.md").write_text(task.prompt)
        if task.prompt == "two":
            ref = f"refs/heads/pagehand/{task.workspace.copy.parent.name}"
            git(world.bare, "update-ref", *(("-d", ref) if change == ("-d",) else (ref, *change)))

    async with executing(tmp_path, ScriptedEditor(edit)) as world:
        job = await world.done("one")
        assert (await world.done("two", job.id)).status is Status.COMPLETED
        assert world.subjects(f"pagehand/{job.id}") == ["two"]
        listed = git(world.bare, "ls-tree", "-r", "--name-only", f"pagehand/{job.id}").split()
        assert listed == ["docs/start.md", "two.md"]
        assert prompts(world) == ["one", "two"]


class Rewritten(GitRepository):
    """One in which somebody writes each commit anew as soon as it is pushed, before the answer comes."""

    async def push(self, commit: str, branch: str, tip: str) -> None:
        await super().push(commit, branch, tip)
        bare = Path(self.mirror.git.address)
        message = git(bare, "log", "-1", "--format=%B", commit)
        anew = git(bare, "commit-tree", "-p", "main", "-m", message, f"{commit}^{{tree}}").strip()
        git(bare, "update-ref", f"refs/heads/{branch}", anew)
        raise PushRejectedError("stale info")


async def test_a_push_that_arrived_is_found_though_its_branch_was_rewritten(tmp_path: Path) -> None:
    async with executing(tmp_path) as world:
        known = world.repository
        world.tools = replace(world.tools, repository=Rewritten(known.mirror, "main", known._limits))
        job = await world.done("one")
        assert job.status is Status.COMPLETED
        assert (world.subjects(f"pagehand/{job.id}"), world.notes(f"pagehand/{job.id}")) == (["one"], "one\n")


async def begun(world: ExecutorWorld) -> Instruction:
    """Returns what another process had begun and given back: no runner of this one works on it."""
    await world.runner.stop()
    await world.submit("one")
    first = await world.queue.claim(Worker("w"), Wanted(["docs"]))
    assert first is not None
    await world.queue.release("w")
    taken = await world.queue.claim(Worker("w"), Wanted(["docs"]))
    assert taken is not None
    return taken


@pytest.mark.promise("jobs once")
async def test_who_loses_an_instruction_between_two_pushes_does_not_push_again(tmp_path: Path) -> None:
    pushed: list[str] = []

    class Taken(GitRepository):
        async def push(self, commit: str, branch: str, tip: str) -> None:
            pushed.append(commit)
            world.now.ahead += 2 * LEASE
            assert await world.queue.claim(Worker("other"), Wanted(["docs"]))
            raise PushRejectedError("stale info")

    async with executing(tmp_path) as world:
        known, taken = world.repository, await begun(world)
        tools = replace(world.tools, repository=Taken(known.mirror, "main", known._limits))
        with pytest.raises(LeaseLostError):
            await Pipeline(tools).execute(taken)
        assert (len(pushed), world.branches()) == (1, {"main"})


@pytest.mark.promise("jobs once")
async def test_what_arrives_while_it_is_begun_again_is_not_done_twice(tmp_path: Path) -> None:
    """A dead worker's push, after it was looked for, and before the branch is fetched to start from."""
    starts: list[str] = []

    class Late(GitRepository):
        async def start(self, branch: str) -> StartingPoint:
            starts.append(branch)
            if len(starts) == 2:
                message = f"one\n\n{TRAILER}: {trailer_value(taken)}"
                late = git(world.bare, "commit-tree", "-p", "main", "-m", message, "main^{tree}").strip()
                git(world.bare, "update-ref", f"refs/heads/{branch}", late)
            return await super().start(branch)

    async with executing(tmp_path) as world:
        known, taken = world.repository, await begun(world)
        tools = replace(world.tools, repository=Late(known.mirror, "main", known._limits))
        outcome = await Pipeline(tools).execute(taken)
        assert outcome.commit == git(world.bare, "rev-parse", taken.branch).strip()
        assert world.editor.tasks == []


async def test_progress_is_visible_live_and_saved_rarely(tmp_path: Path) -> None:
    async def edit(task: EditTask, progress: EditProgress) -> None:
        for number in range(50_000):
            progress.plan([PlanStep(title=f"Step {number} {'x' * 999}", status=StepStatus.IN_PROGRESS)] * 99)
            progress.activity(f"reading {number}")
        await asyncio.wait_for(seen.wait(), 30)

    seen = asyncio.Event()
    async with executing(tmp_path, ScriptedEditor(edit)) as world:
        job = await world.submit("one")

        async def shown() -> JobDetails | None:
            return (await world.store.get(job.id)).details

        told = await until(shown)
        assert told.activity == "reading 49999"
        assert len(told.plan) == 50
        assert len(told.plan[0].title) == 300
        seen.set()
        ended = details(await world.ended(job.id))
        assert (ended.activity, ended.plan) == (None, told.plan)


async def test_an_old_job_is_deleted_with_all_its_data(tmp_path: Path) -> None:
    async with executing(tmp_path) as world:
        merged = await world.done("one")
        world.pull_requests.end(PullRequestState.MERGED)
        await world.done("two", merged.id)
        still_open = await world.done("three")
        retention = world.retention(archive_after=timedelta(days=30), keep_for=timedelta(days=90))
        await retention.sweep()
        assert (await world.store.get(merged.id)).status is Status.COMPLETED
        world.now.ahead = timedelta(days=31)
        await retention.sweep()
        assert (await world.store.get(merged.id)).status is Status.ARCHIVED
        assert (world.data / "jobs" / merged.id / "home").exists()
        world.now.ahead = timedelta(days=31 + 91)
        await retention.sweep()
        for job in (merged, still_open):
            with pytest.raises(JobServerError, match="no such job"):
                await world.store.get(job.id)
        left = [path.name for folder in ("jobs", "logs") for path in (world.data / folder).iterdir()]
        assert left == []
        assert await world.repository.branches_of_jobs() == {}
        assert world.branches() == {"main", f"pagehand/{merged.id}-2", f"pagehand/{still_open.id}"}
        assert await world.store.old_branches() == []


async def test_what_is_here_of_jobs_that_were_deleted_elsewhere_is_removed(tmp_path: Path) -> None:
    async with executing(tmp_path) as world:
        kept = (await world.done("one")).id
        for name in (f"jobs/{'0' * 16}/home", f"logs/{'1' * 16}.log", f"logs/{kept}.log", "jobs/lost+found"):
            (world.data / name).mkdir(parents=True)
        await world.retention(archive_after=timedelta(days=30), keep_for=timedelta(days=90)).sweep()
        left = {path.name for folder in ("jobs", "logs") for path in (world.data / folder).iterdir()}
        assert left == {kept, f"{kept}.log", "lost+found"}


async def test_a_stop_while_the_log_is_stored_loses_no_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storing, may_go_on = asyncio.Event(), asyncio.Event()

    async def slow(pieces: AsyncIterator[bytes]) -> str:
        storing.set()
        await may_go_on.wait()
        return await write(pieces)

    async with executing(tmp_path) as world:
        write = world.files.write
        monkeypatch.setattr(world.files, "write", slow)
        job = await world.submit("one")
        await asyncio.wait_for(storing.wait(), 30)
        cancelled = await world.store.cancel(job.id)
        assert cancelled.running is not None
        world.runner.interrupt(cancelled.running)
        may_go_on.set()
        ended = await world.ended(job.id)
        assert (ended.status, bool(ended.pr_link)) == (Status.COMPLETED, True)
        assert details(ended).reason == "stopped by request, after the change had been pushed"
        assert "instruction " in world.log(job.id)


async def test_a_log_that_cannot_be_stored_waits_for_the_next_instruction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(_: object) -> str:
        raise StoreUnavailable("the disk is full")

    async with executing(tmp_path) as world:
        with monkeypatch.context() as patched:
            patched.setattr(world.files, "write", refused)
            job = await world.done("one")
        assert world.log(job.id) == ""
        await world.done("two", job.id)
        assert [line.split()[:2] for line in world.log(job.id).splitlines()] == [
            ["instruction", "1"],
            ["instruction", "2"],
        ]
        assert list((world.data / "logs").iterdir()) == []


PORT = QuestionField(title="Port", kind=FieldKind.CHOICE, options=(QuestionOption(label="80"),))
ASKED = Question("Which port?", (PORT,))


async def asks(task: EditTask, progress: EditProgress) -> EditResult:
    """Asks once, and again if it gets no answer."""
    reply = await progress.ask(ASKED, lambda text: text.isdigit())
    if reply is None:
        return EditResult("Not told.", question=ASKED.text, question_fields=ASKED.fields)
    (task.workspace.copy / "port.md").write_text(reply)
    return EditResult(f"Port {reply}.")


async def question_of(world: ExecutorWorld, job_id: str) -> AgentJob:
    """Waits until the job shows a question, and returns it."""

    async def check() -> AgentJob | None:
        job = await world.store.get(job_id)
        return job if job.details and job.details.question else None

    return await until(check)


async def test_the_next_message_answers_the_question_and_is_no_instruction(tmp_path: Path) -> None:
    async with executing(tmp_path, ScriptedEditor(asks)) as world:
        started = await world.submit("Describe the port")
        job = await question_of(world, started.id)
        assert job.status is Status.ACTIVE
        assert (details(job).question, details(job).question_fields) == ("Which port?", (PORT,))
        answered = await world.done("443", started.id)
        assert (answered.status, prompts(world)) == (Status.COMPLETED, ["Describe the port"])
        assert (details(answered).summary, details(answered).question) == ("Port 443.", None)
        again = await world.submit("Once more", started.id)
        assert (await question_of(world, again.id)).status is Status.ACTIVE
        await world.done("80", started.id)
        assert prompts(world) == ["Describe the port", "Once more"]
        assert [earlier.prompt for earlier in world.editor.tasks[1].conversation] == ["Describe the port", "443"]


async def test_a_message_that_is_no_answer_is_the_next_instruction(tmp_path: Path) -> None:
    """The agent continues without an answer; no message is swallowed."""
    async with executing(tmp_path, ScriptedEditor(asks), question_time_limit=60.0) as world:
        started = await world.submit("Describe the port")
        await question_of(world, started.id)
        await world.submit("Rather describe the lamp", started.id)
        await until_asked(world, 2)
        done = await world.done("8", started.id)
        assert prompts(world) == ["Describe the port", "Rather describe the lamp"]
        assert details(done).summary == "Port 8."


async def test_a_job_eventually_ends_with_its_unanswered_question(tmp_path: Path) -> None:
    """A later answer is an instruction, and continues in the same session."""
    async with executing(tmp_path, ScriptedEditor(asks), question_time_limit=0.05) as world:
        job = await world.done("Describe the port")
        assert job.status is Status.COMPLETED
        assert (details(job).question, details(job).question_fields) == ("Which port?", (PORT,))
        await world.done("443", job.id)
        assert prompts(world) == ["Describe the port", "443"]


async def test_an_answer_survives_a_restart_of_the_server(tmp_path: Path) -> None:
    """It was given to an agent that was killed: the next one asks again and gets it at once."""
    taken = asyncio.Event()

    async def asks_and_hangs(task: EditTask, progress: EditProgress) -> EditResult:
        result = await asks(task, progress)
        if not taken.is_set():
            taken.set()
            await asyncio.get_running_loop().create_future()
        return result

    async with executing(tmp_path, ScriptedEditor(asks_and_hangs)) as world:
        started = await world.submit("Describe the port")
        await question_of(world, started.id)
        await world.submit("443", started.id)
        await taken.wait()
        await world.restarted()
        job = await world.ended(started.id)
        assert details(job).summary == "Port 443."
        assert prompts(world) == ["Describe the port", "Describe the port"]


async def test_an_open_question_survives_a_restart(tmp_path: Path) -> None:
    """A reader meanwhile is not asked twice."""
    async with executing(tmp_path, ScriptedEditor(asks)) as world:
        started = await world.submit("Describe the port")
        await question_of(world, started.id)
        await world.runner.stop()
        job = await world.store.get(started.id)
        assert details(job).question == "Which port?"
        await world.restarted()
        await until_asked(world, 2)
        assert (await world.done("80", started.id)).details is not None


async def test_a_job_stopped_during_a_question_ends(tmp_path: Path) -> None:
    async with executing(tmp_path, ScriptedEditor(asks)) as world:
        started = await world.submit("Describe the port")
        await question_of(world, started.id)
        cancelled = await world.store.cancel(started.id)
        assert cancelled.running is not None
        world.runner.interrupt(cancelled.running)
        job = await world.ended(started.id)
        assert details(job).question is None


async def until_asked(world: ExecutorWorld, tasks: int) -> None:
    async def check() -> bool:
        return len(world.editor.tasks) >= tasks

    await until(check)
