"""A plan first, or only an answer: by every way in, and with our own job server."""

import json
from pathlib import Path

import pytest
from support.servers.fake_job_api import Operation
from support.worlds.jobserver_world import KEY, make_bare, running
from support.worlds.ways_in_world import OpenWorld, WaysInWorld, labels

from bot.notices.said import ButtonId


async def ask_by(world: WaysInWorld, way: str) -> None:
    """Asks for a plan."""
    ana, words = world.ana, "plan: Fix the guides"
    match way:
        case "command":
            await ana.command("docs", "/docs", words)
        case "mention":
            await ana.say("docs", f"{world.bot} {words}")
        case "direct message":
            await ana.say("pagehand", words)
        case "!new":
            job = await world.begun("Fix another one")
            await ana.say("docs", f"!new {words}", thread_ts=job.ts)
        case "form":
            await ana.command("docs", "/docs", "plan:")
            await world.modal(ana, "New job")
            await ana.views.enter("prompt", "Fix the guides", dispatch=False)
            assert (await ana.views.submit()).ok
        case _:
            message = await ana.say("docs", "It is wrong")
            await ana.shortcut("docs", message.ts, "hand_to_pagehand")
            await world.modal(ana, "Hand to Pagehand")
            await ana.views.enter("prompt", "Fix the guides", dispatch=False)
            await ana.views.enter("plan", ["plan"])
            assert (await ana.views.submit()).ok


@pytest.mark.first(way=3)
@pytest.mark.parametrize("way", ["command", "mention", "direct message", "!new", "form", "message shortcut"])
async def test_every_way_in_can_ask_for_a_plan(open_world: OpenWorld, way: str) -> None:
    world = await open_world(JOB_API_MODES="true")
    await ask_by(world, way)
    created = world.job_api.created
    await world.job_api.until(lambda: created and created[-1].prompt.startswith("Fix the guides"))
    *_, attempt = [each for each in world.job_api.attempts if each.operation is Operation.CREATE]
    assert json.loads(attempt.body)["mode"] == "plan"


async def test_without_the_ability_nothing_is_sent_and_the_person_is_told(open_world: OpenWorld) -> None:
    world = await open_world()
    await world.ana.command("docs", "/docs", "plan: Fix the guides")
    await world.private_message(world.ana, "this project's agent can't show a plan first")
    assert world.job_api.created == []


async def test_a_mention_with_options_that_cannot_be_read_is_answered(open_world: OpenWorld) -> None:
    world = await open_world(JOB_API_MODES="true")
    begins = await world.ben.say("docs", "It is wrong")
    await world.ana.say("docs", f"{world.bot} mode: paln Fix it", thread_ts=begins.ts)
    await world.private_message(world.ana, "I can't read the options")
    assert world.job_api.created == []


async def test_an_answer_of_our_job_server_is_made_a_change(open_world: OpenWorld, tmp_path: Path) -> None:
    """It is one post; a reply goes on asking, and changes pages from the press on."""
    repository = make_bare(tmp_path / "r.git", {"docs/start.md": "# Start\n\nThe colour is red.\n"})
    async with running(repository, tmp_path / "data", sandbox="bubblewrap") as server:
        world = await open_world(JOB_API_URL=server.url, JOB_API_KEY=KEY, JOB_API_MODES="true")
        asked = await world.ana.say("docs", f'{world.bot} ask: Replace "colour" with "color"')
        answer = await world.said("Here's the answer.", thread_ts=asked.ts)
        assert labels(answer) == ["Make it a change"]
        await world.ana.say("docs", "What can you do?", thread_ts=asked.ts)
        await world.until(lambda: len(_answers(world, asked.ts)) == 2, "another answer")
        assert (await world.ben.press("docs", answer.ts, ButtonId.MAKE_CHANGE)).ok
        await world.ana.say("docs", 'Replace "colour" with "color"', thread_ts=asked.ts)
        await world.said("Here's the pull request", thread_ts=asked.ts)


def _answers(world: WaysInWorld, ts: str) -> list[str]:
    return [message.text for message in world.messages(thread_ts=ts) if "Here's the answer." in message.text]
