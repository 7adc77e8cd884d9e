"""The job server's metrics: what they count, and who may read them."""

import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.worlds.jobserver_world import make_bare, running

from bot.jobserver.egress.refusals import EgressRefusals
from bot.jobserver.egress.run_egress import Connected
from bot.jobserver.metrics import CountedEgress

TOKEN = "planted-secret-metrics-token"


def faults_of(page: str) -> str:
    """What promtool has to say against the metrics."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian's package prometheus): the format was not checked by it")
    command = [promtool, "check", "metrics"]
    return subprocess.run(command, input=page, capture_output=True, text=True, check=False).stderr


async def test_runs_are_counted_for_whoever_has_the_token(tmp_path: Path) -> None:
    bare = make_bare(tmp_path / "r.git", {"docs/a.md": "# Start\n"})
    async with running(bare, tmp_path / "data", metrics_token=TOKEN) as world:
        await world.done('Replace "Start" with "Begin"')
        for wrong in ("", f"Bearer {TOKEN}x", f"Basic {TOKEN}"):
            answer = await world.client.get("/metrics", headers={"Authorization": wrong})
            assert (answer.status_code, "pagehand_jobserver" in answer.text) == (401, False)
        answer = await world.client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    assert 'pagehand_jobserver_runs_total{agent="builtin",outcome="done"} 1.0' in answer.text
    assert 'pagehand_jobserver_runs_total{agent="builtin",outcome="failed"} 0.0' in answer.text
    assert 'pagehand_jobserver_instructions{state="queued"} 0.0' in answer.text
    assert "Begin" not in answer.text
    assert faults_of(answer.text) == ""


async def test_without_a_token_there_are_none(tmp_path: Path) -> None:
    async with running(make_bare(tmp_path / "r.git", {"a.md": "a"}), tmp_path / "data") as world:
        assert (await world.client.get("/metrics")).status_code == 404


class RefusesAll:
    """Egress that refuses two hosts while a run goes on, one of them again."""

    @asynccontextmanager
    async def opened(self, refusals: EgressRefusals) -> AsyncIterator[Connected]:
        for host in ("a.example", "b.example", "a.example"):
            refusals.refused(host)
        yield lambda program: program


async def test_refusals_are_counted_when_a_run_ends_however_it_does() -> None:
    counted = list[int]()
    egress = CountedEgress(RefusesAll(), counted.append)
    async with egress.opened(EgressRefusals()):
        assert counted == []
    with pytest.raises(KeyError):
        async with egress.opened(EgressRefusals()):
            raise KeyError
    assert counted == [3, 3]
