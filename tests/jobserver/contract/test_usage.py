"""A job's model usage: in its details, in its log and at the end of its pull request."""

from pathlib import Path

from support.fakes.job_ports import ScriptedEditor, append_prompt
from support.worlds.executor_world import ExecutorWorld, executing

from bot.jobapi.models import AgentJob, Cost, Usage
from bot.jobserver.editors.interface import EditProgress, EditResult, EditTask
from bot.jobserver.errors import EditError
from bot.jobserver.usage import Money, Spent


async def thrifty(task: EditTask, progress: EditProgress) -> EditResult | None:
    """Uses 1,000 tokens, and fails if the prompt says so."""
    await append_prompt(task, progress)
    progress.spent(Spent(600, 100, Money(0.25, "USD")))
    progress.spent(Spent(300))
    if task.prompt == "fail":
        raise EditError("out of credit")
    return None


def usage(job: AgentJob) -> Usage | None:
    return job.details.usage if job.details else None


async def test_usage_covers_all_instructions_including_failed_ones(tmp_path: Path) -> None:
    """The model was called anyway."""
    async with executing(tmp_path, ScriptedEditor(thrifty)) as world:
        job = await world.done("fail")
        assert usage(job) == Usage(tokens_sent=900, tokens_answered=100, cost=Cost(amount=0.25, currency="USD"))
        again = await world.done("go on", job.id)
        assert usage(again) == Usage(tokens_sent=1800, tokens_answered=200, cost=Cost(amount=0.5, currency="USD"))
        assert description(world).endswith("Used: 1,800 tokens sent to the model, 200 answered; 0.50 USD.")
        assert world.folders.log(job.id).read_text().count("used: 900 tokens sent to the model, 100 answered") == 2


async def test_uncounted_usage_is_not_reported(tmp_path: Path) -> None:
    """The built-in editor calls no model."""
    async with executing(tmp_path, ScriptedEditor()) as world:
        job = await world.done("do it")
        assert usage(job) is None
        assert "Used" not in description(world)


def description(world: ExecutorWorld) -> str:
    return world.pull_requests.opened[-1].description
