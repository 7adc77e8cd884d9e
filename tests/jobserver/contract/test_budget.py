"""A job whose budget is used up: its work is kept, and its thread is asked."""

import asyncio
import shutil
from pathlib import Path

import pytest
from support.fakes.job_ports import ScriptedEditor, append_prompt
from support.worlds.executor_world import executing

from bot.jobapi.models import AgentJob, Status
from bot.jobserver.agents.choice import agent_editor
from bot.jobserver.editors.interface import EditProgress, EditResult, EditTask
from bot.jobserver.errors import JobServerError
from bot.jobserver.sandbox.choice import NoSandbox
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.settings.limits import TokenBudget
from bot.jobserver.usage import Spent


async def greedy(task: EditTask, progress: EditProgress) -> EditResult | None:
    """Writes, uses as many tokens as the prompt begins with, and would continue beyond the budget."""
    await append_prompt(task, progress)
    progress.session("session-1")
    tokens = int(task.prompt.split()[0]) if task.prompt[0].isdigit() else 1
    progress.spent(Spent(tokens))
    if tokens >= 100:
        await asyncio.Event().wait()
    return None


def outcome(job: AgentJob) -> tuple[str, str | None, str | None]:
    assert job.details is not None
    return job.status, job.details.reason, job.details.question


async def test_over_budget_work_is_kept_and_a_reply_continues_it(tmp_path: Path) -> None:
    """It gets the same budget again, in the same session."""
    editor = ScriptedEditor(greedy)
    async with executing(tmp_path, editor, budget=TokenBudget(job=100)) as world:
        job = await world.done("150 tokens")
        status, reason, question = outcome(job)
        assert (status, reason) == (Status.FAILED, "the job's budget of 100 tokens is used up")
        assert question is not None
        assert "This job has used 150 tokens" in question
        assert job.details is not None
        assert job.details.partial_work is not None
        again = await world.done("continue", job.id)
        assert outcome(again) == (Status.COMPLETED, None, None)
        assert world.notes(f"pagehand/{job.id}") == "150 tokens\ncontinue\n"
        assert editor.tasks[-1].session == "session-1"
        third = await world.done("99 more", job.id)
        assert outcome(third)[0] is Status.COMPLETED
        assert outcome(await world.done("and more", job.id))[0] is Status.FAILED


async def test_a_message_from_before_the_budget_question_is_no_answer(tmp_path: Path) -> None:
    """It is not started, its words are not lost, and the next reply continues with both."""
    editor = ScriptedEditor(greedy)
    async with executing(tmp_path, editor, budget=TokenBudget(job=100)) as world:
        job = await world.submit("150 tokens")
        await world.submit("and this", job.id)
        ended = await world.ended(job.id)
        assert outcome(ended)[0] is Status.FAILED
        assert len(editor.tasks) == 1
        assert outcome(await world.done("continue", job.id))[0] is Status.COMPLETED
        assert editor.tasks[-1].session is None  # so the agent is told everything again
        assert [each.prompt for each in editor.tasks[-1].conversation] == ["150 tokens", "and this"]


async def test_a_no_leaves_the_work_as_it_is(tmp_path: Path) -> None:
    """The work is kept, and nothing is asked again."""
    editor = ScriptedEditor(greedy)
    async with executing(tmp_path, editor, budget=TokenBudget(job=100)) as world:
        job = await world.done("150 tokens")
        left = await world.done("No.", job.id)
        assert outcome(left) == (Status.FAILED, "the job's budget of 100 tokens is used up", None)
        assert left.details is not None
        assert left.details.partial_work is not None
        assert len(editor.tasks) == 1
        assert outcome(await world.done("continue", job.id))[0] is Status.COMPLETED


async def test_the_daily_budget_survives_a_restart_and_covers_all_jobs(tmp_path: Path) -> None:
    """Nothing starts before the next day, whatever anybody replies."""
    editor = ScriptedEditor(greedy)
    async with executing(tmp_path, editor, budget=TokenBudget(day=100)) as world:
        assert outcome(await world.done("60 tokens"))[0] is Status.COMPLETED
    again = tmp_path / "again"
    again.mkdir()
    shutil.copy(tmp_path / "jobs.sqlite3", again)
    async with executing(again, editor, budget=TokenBudget(day=100)) as world:
        job = await world.done("60 more")
        assert outcome(job)[0] is Status.COMPLETED
        refused = await world.done("one more", job.id)
        status, reason, question = outcome(refused)
        assert (status, question) == (Status.FAILED, None)
        assert reason is not None
        assert reason.startswith("today's budget of all jobs, 100 tokens, is used up")


def test_a_budget_that_cannot_be_measured_is_refused(tmp_path: Path) -> None:
    """Without the relay there would be no limit."""
    settings = JobServerSettings(
        repository=str(tmp_path), api_key="planted-key-of-sixteen", agent="claude", editor="agent",
        sandbox="none", egress="open", budget="job=2M",
    )  # fmt: skip
    with pytest.raises(JobServerError, match="BUDGET counts what the model relay passes on"):
        agent_editor(settings, NoSandbox(), {"ANTHROPIC_API_KEY": "planted"})
