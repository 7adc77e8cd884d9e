"""A job's use of its model: its budget, what its details tell of it, and the job server's metrics."""

import asyncio
import shlex
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.fakes.job_ports import ScriptedEditor, append_prompt
from support.oracles.promtool import faults_of
from support.worlds.agent_world import scripted
from support.worlds.executor_world import ExecutorWorld, details, executing, partial_files
from support.worlds.jobserver_world import JobServerWorld, jobs_in, make_bare, running, serving

from bot.jobapi.models import AgentJob, Cost, Mode, Status, Usage
from bot.jobserver.agents.choice import agent_editor
from bot.jobserver.editors.interface import EditProgress, EditResult, EditTask
from bot.jobserver.egress.proxy import Egress, EgressRefusals
from bot.jobserver.errors import EditError, JobServerError
from bot.jobserver.sandbox.choice import NoSandbox
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.settings.server import TokenBudget
from bot.jobserver.store.claims import Wanted, Worker
from bot.jobserver.store.database import Database
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.jobs import JobStore
from bot.jobserver.store.records import InstructionBacklog, JobTemplate, PromptRequest
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
    return job.status, details(job).reason, details(job).question


async def test_over_budget_work_is_kept_and_a_reply_continues_it(tmp_path: Path) -> None:
    """It gets the same budget again, in the same session."""
    editor = ScriptedEditor(greedy)
    async with executing(tmp_path, editor, budget=TokenBudget(job=100)) as world:
        job = await world.done("150 tokens")
        status, reason, question = outcome(job)
        assert (status, reason) == (Status.FAILED, "the job's budget of 100 tokens is used up")
        assert question is not None
        assert "This job has used 150 tokens" in question
        assert partial_files(job) == 1
        again = await world.done("continue", job.id)
        assert outcome(again) == (Status.COMPLETED, None, None)
        assert world.notes(f"pagehand/{job.id}") == "150 tokens\ncontinue\n"
        assert editor.tasks[-1].session == "session-1"
        third = await world.done("99 more", job.id)
        assert outcome(third)[0] is Status.COMPLETED
        assert outcome(await world.done("and more", job.id))[0] is Status.FAILED


@pytest.mark.parametrize("mode", [Mode.PLAN, Mode.ASK])
async def test_what_changes_nothing_is_within_the_budget(tmp_path: Path, mode: Mode) -> None:
    async with executing(tmp_path, ScriptedEditor(greedy), budget=TokenBudget(job=100)) as world:
        asked = await world.submitted(PromptRequest("150 tokens", mode=mode))
        job = await world.ended(asked.id)
        assert outcome(job)[:2] == (Status.FAILED, "the job's budget of 100 tokens is used up")
        assert partial_files(job) is None
        more = await world.submitted(PromptRequest("No.", job.id, mode=mode))
        assert outcome(await world.ended(more.id))[0] is Status.FAILED
        assert len(world.editor.tasks) == 1, "it is not even begun"


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
        assert partial_files(left) == 1
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
        agent_editor(settings, NoSandbox(), {"ANTHROPIC_API_KEY": "planted"}, Egress())


async def thrifty(task: EditTask, progress: EditProgress) -> EditResult | None:
    """Uses 1,000 tokens, and fails if the prompt says so."""
    await append_prompt(task, progress)
    progress.spent(Spent(600, 100, Cost(amount=0.25, currency="USD")))
    progress.spent(Spent(300))
    if task.prompt == "fail":
        raise EditError("out of credit")
    return None


def usage(job: AgentJob) -> Usage | None:
    return details(job).usage


async def test_usage_covers_all_instructions_including_failed_ones(tmp_path: Path) -> None:
    """The model was called anyway."""
    async with executing(tmp_path, ScriptedEditor(thrifty)) as world:
        job = await world.done("fail")
        assert usage(job) == Usage(tokens_sent=900, tokens_answered=100, cost=Cost(amount=0.25, currency="USD"))
        again = await world.done("go on", job.id)
        assert usage(again) == Usage(tokens_sent=1800, tokens_answered=200, cost=Cost(amount=0.5, currency="USD"))
        assert description(world).endswith("Used: 1,800 tokens sent to the model, 200 answered; 0.50 USD.")
        assert world.log(job.id).count("used: 900 tokens sent to the model, 100 answered") == 2


def description(world: ExecutorWorld) -> str:
    return world.pull_requests.opened[-1].description


TOKEN = "planted-secret-metrics-token"


async def page_of(world: JobServerWorld) -> str:
    answer = await world.client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    return answer.raise_for_status().text


async def test_runs_are_counted_for_holders_of_the_token(tmp_path: Path) -> None:
    async with serving(tmp_path, {"docs/a.md": "# Start\n"}, metrics_token=TOKEN) as world:
        await world.done('Replace "Start" with "Begin"')
        for wrong in ("", f"Bearer {TOKEN}x", f"Basic {TOKEN}"):
            answer = await world.client.get("/metrics", headers={"Authorization": wrong})
            assert (answer.status_code, "pagehand_jobserver" in answer.text) == (401, False)
        page = await page_of(world)
    assert 'pagehand_jobserver_runs_total{agent="builtin",outcome="done",project="docs"} 1.0' in page
    assert 'pagehand_jobserver_runs_total{agent="builtin",outcome="failed",project="docs"} 0.0' in page
    assert 'pagehand_jobserver_instructions{project="docs",state="queued"} 0.0' in page
    assert 'pagehand_jobserver_queued_seconds{project="docs"} 0.0' in page
    assert 'pagehand_jobserver_tokens_total{project="docs"} 0.0' in page
    assert "Begin" not in page
    assert faults_of(page) == ""


TELLS_USAGE = """
def turn(agent, text):
    Path("docs/a.md").write_text("# Begin\\n")
    return {"stopReason": "end_turn", "usage": {
        "totalTokens": 36, "inputTokens": 10, "outputTokens": 6, "cachedReadTokens": 15, "cachedWriteTokens": 5}}
"""


async def test_tokens_reported_by_an_agent_are_counted(tmp_path: Path) -> None:
    bare = make_bare(tmp_path / "r.git", {"docs/a.md": "# Start\n"})
    agent = shlex.join(scripted(tmp_path, TELLS_USAGE).command)
    async with running(bare, tmp_path / "data", agent=agent, metrics_token=TOKEN) as world:
        job = await world.done("Write a.md")
        page = await page_of(world)
    assert job["details"]["usage"] == {"tokensSent": 30, "tokensAnswered": 6, "cost": None}
    assert 'pagehand_jobserver_tokens_total{project="docs"} 36.0' in page
    assert 'pagehand_jobserver_runs_total{agent="other",outcome="done",project="docs"} 1.0' in page


async def test_the_age_of_the_queue_is_that_of_its_oldest_instruction(tmp_path: Path) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    async with Database(jobs_in(tmp_path), now=lambda: at) as database:
        queue, jobs = InstructionQueue(database), JobStore(database, "docs", rate_limit=100)
        await jobs.submit(PromptRequest("one"), JobTemplate("r", "main", "m"))
        await queue.claim(Worker("w"), Wanted(["docs"]))
        assert await queue.backlog() == {"docs": InstructionBacklog(queued=0, running=1, oldest_seconds=0.0)}
        for _ in range(2):
            at += timedelta(seconds=30)
            await jobs.submit(PromptRequest("more"), JobTemplate("r", "main", "m"))
        at += timedelta(seconds=5)
        assert await queue.backlog() == {"docs": InstructionBacklog(queued=2, running=1, oldest_seconds=35.0)}


async def test_without_a_token_there_are_no_metrics(tmp_path: Path) -> None:
    async with running(make_bare(tmp_path / "r.git", {"a.md": "a"}), tmp_path / "data") as world:
        assert (await world.client.get("/metrics")).status_code == 404


async def test_refusals_are_counted_when_a_run_ends() -> None:
    counted = list[int]()
    egress, refusals = Egress(count=counted.append), EgressRefusals()
    async with egress.opened(refusals):
        for host in ("a.example", "b.example", "a.example"):
            refusals.refused(host)
        assert counted == []
    with pytest.raises(KeyError):
        async with egress.opened(refusals):
            raise KeyError
    assert counted == [3, 3]
