"""The job server's metrics: what they count, and who may read them."""

import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.oracles.promtool import faults_of
from support.worlds.agent_world import scripted
from support.worlds.jobserver_world import JobServerWorld, make_bare, running

from bot.jobserver.egress.proxy import Egress, EgressRefusals
from bot.jobserver.store.database import Database
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.jobs import JobStore
from bot.jobserver.store.records import InstructionBacklog, JobTemplate, PromptRequest
from bot.jobserver.store.schema import STEPS

TOKEN = "planted-secret-metrics-token"


async def page_of(world: JobServerWorld) -> str:
    answer = await world.client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    return answer.raise_for_status().text


async def test_runs_are_counted_for_holders_of_the_token(tmp_path: Path) -> None:
    bare = make_bare(tmp_path / "r.git", {"docs/a.md": "# Start\n"})
    async with running(bare, tmp_path / "data", metrics_token=TOKEN) as world:
        await world.done('Replace "Start" with "Begin"')
        for wrong in ("", f"Bearer {TOKEN}x", f"Basic {TOKEN}"):
            answer = await world.client.get("/metrics", headers={"Authorization": wrong})
            assert (answer.status_code, "pagehand_jobserver" in answer.text) == (401, False)
        page = await page_of(world)
    assert 'pagehand_jobserver_runs_total{agent="builtin",outcome="done"} 1.0' in page
    assert 'pagehand_jobserver_runs_total{agent="builtin",outcome="failed"} 0.0' in page
    assert 'pagehand_jobserver_instructions{state="queued"} 0.0' in page
    assert "pagehand_jobserver_queued_seconds 0.0" in page
    assert "pagehand_jobserver_tokens_total 0.0" in page
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
    assert "pagehand_jobserver_tokens_total 36.0" in page
    assert 'pagehand_jobserver_runs_total{agent="other",outcome="done"} 1.0' in page


async def test_the_age_of_the_queue_is_that_of_its_oldest_instruction(tmp_path: Path) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    async with Database(tmp_path / "jobs.sqlite3", STEPS) as database:
        queue = InstructionQueue(database, now=lambda: at)
        jobs = JobStore(database, rate_limit=100, now=lambda: at)
        first = await jobs.submit(PromptRequest("docs", "one"), JobTemplate("r", "main", "m"))
        await queue.next_instruction(first.id)
        assert await queue.backlog() == InstructionBacklog(queued=0, running=1, oldest_seconds=0.0)
        for _ in range(2):
            at += timedelta(seconds=30)
            await jobs.submit(PromptRequest("docs", "more"), JobTemplate("r", "main", "m"))
        at += timedelta(seconds=5)
        assert await queue.backlog() == InstructionBacklog(queued=2, running=1, oldest_seconds=35.0)


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
