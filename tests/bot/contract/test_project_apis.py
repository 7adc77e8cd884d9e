"""Several projects over real HTTP: each call goes to its own job API, and a fault of one does not affect others."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr
from support.servers.fake_job_api import KEY, FakeJobApiServer, refusing
from support.worlds.jobserver_world import KEY as SERVER_KEY
from support.worlds.jobserver_world import make_bare, running, until

from bot.errors import JobApiBusy, JobApiUnreachable, JobGone, NoSuchProject
from bot.jobapi.client import HttpJobApi
from bot.jobapi.models import Job, PromptCall, Requester
from bot.jobapi.settings import JobApiSettings


def docs_at(url: str, *, key: str = KEY, can_cancel: bool = False) -> tuple[str, JobApiSettings]:
    return "docs", JobApiSettings(base_url=url, api_key=SecretStr(key), can_cancel=can_cancel)


@asynccontextmanager
async def two_projects() -> AsyncIterator[tuple[HttpJobApi, FakeJobApiServer, FakeJobApiServer]]:
    """`guides` and `api`, each at its own server; both are called docs there."""
    guides, api = FakeJobApiServer(), FakeJobApiServer()
    async with AsyncExitStack() as stack:
        for server in (guides, api):
            await server.start()
            stack.push_async_callback(server.stop)
        apis = HttpJobApi({"guides": docs_at(guides.url), "api": docs_at(api.url, can_cancel=True)})
        stack.push_async_callback(apis.aclose)
        yield apis, guides, api


async def test_each_call_goes_to_the_job_api_of_its_project() -> None:
    """It is found by the project's name; the project's id is in the address."""
    async with two_projects() as (apis, guides, api):
        job = await apis.create("guides", PromptCall("Fix it", "k1"))
        await apis.send_message("guides", job.id, PromptCall("And that", "k2"))
        assert (await apis.get("guides", job.id)).id == job.id
        assert (guides.follow_ups(job.id), api.created) == (["And that"], [])
        with pytest.raises(JobGone):
            await apis.get("api", job.id)
        assert (apis.can_cancel("guides"), apis.can_cancel("api"), apis.can_cancel("old")) == (False, True, False)


async def test_a_busy_project_holds_back_only_itself() -> None:
    """Even if the job APIs use the same id for both projects."""
    async with two_projects() as (apis, guides, _):
        guides.fail(refusing(429, retry_after="60"))
        for prompt in ("Fix it", "Fix that"):
            with pytest.raises(JobApiBusy):
                await apis.create("guides", PromptCall(prompt, prompt))
        assert len(guides.attempts) == 1
        await apis.create("api", PromptCall("Fix it", "k"))


async def test_an_outage_of_one_project_does_not_affect_others() -> None:
    """Its connections are separate."""
    async with two_projects() as (apis, guides, api):
        await guides.stop()
        with pytest.raises(JobApiUnreachable):
            await apis.create("guides", PromptCall("Fix it", "k1"))
        await apis.create("api", PromptCall("Fix it", "k2"))
        assert len(api.created) == 1


async def test_a_project_removed_from_settings_is_named_as_the_reason() -> None:
    """Nothing is sent, and the job is not called gone, since nobody was asked."""
    async with two_projects() as (apis, guides, api):
        calls: list[Callable[[], object]] = [
            lambda: apis.create("old", PromptCall("Fix it", "k")),
            lambda: apis.send_message("old", "job-1", PromptCall("Fix it", "k")),
            lambda: apis.get("old", "job-1"),
            lambda: apis.cancel("old", "job-1", idempotency_key="k"),
            lambda: apis.get("docs", "job-1"),
        ]
        for call in calls:
            with pytest.raises(NoSuchProject, match="settings do not have this project"):
                await call()  # type: ignore[misc]  # each is a coroutine
        assert (guides.attempts, api.attempts) == ([], [])


@pytest.mark.parametrize("who", [None, Requester("Robin", "UROBIN")])
async def test_our_job_server_cancels_a_job(tmp_path: Path, who: Requester | None) -> None:
    """Cancelling is idempotent; the job's reason names who stopped it."""
    make_bare(tmp_path / "r.git", {"docs/start.md": "# Start\n"})
    command = '["sh", "-c", "sleep 600"]'
    async with running(tmp_path / "r.git", tmp_path / "data", editor="command", command=command) as world:
        api = HttpJobApi({"docs": docs_at(world.url, key=SERVER_KEY, can_cancel=True)})
        job = await api.create("docs", PromptCall("Wait", "k1"))
        assert not job.ended
        for key in ("k2", "k2", "k3"):
            await api.cancel("docs", job.id, idempotency_key=key, requester=who)

        async def ended() -> Job | None:
            found = await api.get("docs", job.id)
            return found if found.ended else None

        stopped = await until(ended)
        assert (stopped.status, stopped.pr_link) == ("completed", None)
        assert stopped.details is not None
        assert ("Robin" in str(stopped.details.reason)) == (who is not None)
        with pytest.raises(JobGone):
            await api.cancel("docs", "nowhere", idempotency_key="k4")
        await api.aclose()


async def test_our_job_server_discards_partial_work(tmp_path: Path) -> None:
    """Discarding is idempotent; without partial work it is no error."""
    make_bare(tmp_path / "r.git", {"docs/start.md": "# Start\n"})
    command = '["sh", "-c", "echo half > half.md; exit 1"]'
    async with running(tmp_path / "r.git", tmp_path / "data", editor="command", command=command) as world:
        api = HttpJobApi({"docs": docs_at(world.url, key=SERVER_KEY)})
        job = await api.create("docs", PromptCall("Fail", "k1"))

        async def ended() -> Job | None:
            found = await api.get("docs", job.id)
            return found if found.ended else None

        failed = await until(ended)
        assert failed.details is not None
        assert (failed.status, failed.details.partial_files) == ("failed", 1)
        for key in ("k2", "k2", "k3"):
            discarded = await api.discard("docs", job.id, idempotency_key=key)
            assert discarded.details is not None
            assert (discarded.status, discarded.details.partial_files) == ("failed", 0)
        with pytest.raises(JobGone):
            await api.discard("docs", "nowhere", idempotency_key="k4")
        await api.aclose()
