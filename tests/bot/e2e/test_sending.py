"""Rapid replies, stops and several projects through the whole bot: real Slack calls, job API and database."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.servers.fake_job_api import KEY, PROJECT, FakeJobApiServer
from support.worlds.app_world import AppWorld, Instance, a_world

from bot.domain.jobs.stopping import STOP_WORDS
from bot.domain.notices.messages import Reaction
from bot.domain.requests.request import Action, Person, RequestKind


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[AppWorld]:
    async with a_world(f"sqlite:///{tmp_path}/pagehand.sqlite3") as made:
        yield made


async def stop(world: AppWorld, instance: Instance, prompt: str) -> None:
    """Stops the job as Ana."""
    thread = await world.state(prompt)
    ana = Person(world.workspace.people["ana"].id, thread.team_id)
    await instance.app.service.act(Action(ana, RequestKind.STOP, f"stop/{prompt}", thread_id=thread.id))


async def test_rapid_replies_are_one_message_with_a_mark_each(world: AppWorld) -> None:
    """Later replies are sent separately."""
    await world.start(PAGEHAND_MERGE_SECONDS="2")
    (job,) = await world.begin("Write it")
    rapid = [await world.reply("Write it", words) for words in ("And that.", "And this.", "And all.")]
    await world.fake_job_api.until(lambda: world.fake_job_api.follow_ups(job))
    later = await world.reply("Write it", "Later.")
    await world.until_steered(job, "And that.\n\nAnd this.\n\nAnd all.", "Later.")
    for message in (*rapid, later):
        await world.until_marked(message, Reaction.ACCEPTED)


async def test_a_stop_cancels_the_job_and_waiting_replies_follow(world: AppWorld) -> None:
    """The end is announced once, as that of the stop."""
    instance = await world.start(JOB_API_CANCEL="true")
    (job,) = await world.begin("Write it")
    await stop(world, instance, "Write it")
    await world.until_said("Write it", "started", "stopped")
    assert set(world.fake_job_api.cancelled) == {job}
    assert "Stopped by" in world.thread("Write it")[-1].text
    await world.reply("Write it", "Go on")
    await world.until_steered(job, "Go on")
    world.complete(job)
    await world.until_said("Write it", "started", "stopped", "active", "completed")
    await world.settled()
    await world.check()


async def test_without_cancel_the_agent_is_asked_to_stop_and_the_thread_says_so(world: AppWorld) -> None:
    """It says plainly that this is best effort."""
    instance = await world.start()
    (job,) = await world.begin("Write it")
    await stop(world, instance, "Write it")
    await world.until_steered(job, STOP_WORDS)
    await world.until_said("Write it", "started", "stop")
    assert "I can't stop this job from here" in world.thread("Write it")[-1].text


async def test_each_project_has_its_own_job_api_and_health(world: AppWorld, tmp_path: Path) -> None:
    """An outage of one does not affect the other."""
    away = FakeJobApiServer()
    (tmp_path / "key").write_text(KEY)
    file = tmp_path / "projects.toml"
    file.write_text(
        f"""
        [[projects]]
        name = "guides"
        project = "{PROJECT}"
        words = ["write"]

        [[projects]]
        name = "api"
        project = "{PROJECT}"
        url = "{away.url}"
        key_file = "key"
        words = ["say it"]
        """
    )
    instance = await world.start(PAGEHAND_PROJECTS=str(file), JOB_API_PROJECT="")
    (job,) = await world.begin("Write it")
    thread = await world.state("Write it")
    assert thread.project == "guides"
    assert (await instance.edges.job_api.get("guides", job)).id == job
    parts = instance.app.health.report()["parts"]
    assert isinstance(parts, dict)
    assert {"job API of guides": "works", "job API of api": "works"}.items() <= parts.items()

    await world.ask("Say it")

    async def shows() -> bool:
        parts = instance.app.health.report()["parts"]
        assert isinstance(parts, dict)
        assert parts["job API of guides"] == parts["job poller"] == "works"
        return str(parts["job API of api"]).startswith("has not worked")

    await world.until_true(shows)
    assert (await world.state("Say it")).project == "api"
    assert [each.prompt for each in world.fake_job_api.created] == ["Write it"]
