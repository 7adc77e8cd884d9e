"""What people put into messages besides typed words, through the whole bot: real Slack calls, job API and database."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.worlds.app_world import AppWorld, a_world

from bot.slack.rendering.ephemeral_texts import RECORDED
from bot.workspace.model.entities import Message

ROWS = [["Service", "Port"], ["web", "8080"]]
TABLE = "| Service | Port |\n| --- | --- |\n| web | 8080 |"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[AppWorld]:
    async with a_world(f"sqlite:///{tmp_path}/pagehand.sqlite3") as made:
        yield made


def pasted(*blocks: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"id": 1, "blocks": list(blocks), "fallback": "[no preview available]"}]


def table() -> dict[str, Any]:
    return {"type": "table", "rows": [[{"type": "raw_text", "text": cell} for cell in row] for row in ROWS]}


def write(world: AppWorld, text: str, attachments: list[dict[str, Any]], thread_ts: str | None = None) -> Message:
    """Posts a message of Ana's with something that only Slack's own composer puts into one."""
    state = world.workspace.state
    channel = state.find_channel("docs")
    assert channel is not None
    ana = world.workspace.people["ana"].id
    return state.post(Message(channel.id, "", ana, text, attachments=attachments, thread_ts=thread_ts))


async def test_pasted_tables_reach_the_agent(world: AppWorld) -> None:
    """With a mention, as a reply that is nothing else, and as what stands above a mention."""
    await world.start()
    bot = world.workspace.app.bot_user_id
    first = write(world, f"<@{bot}> List these", pasted(table()))
    prompt = f"List these\n\n{TABLE}"
    await world.fake_job_api.until(lambda: prompt in [job.prompt for job in world.fake_job_api.created])
    write(world, "", pasted(table()), first.ts)
    await world.until_steered(world.fake_job_api.job_of(prompt), TABLE)
    above = write(world, "What we sell", pasted(table()))
    write(world, f"<@{bot}> Sort them", [], above.ts)
    quoted = TABLE.replace("\n", "\n> ")
    await world.fake_job_api.until(
        lambda: any("Sort them" in job.prompt and quoted in job.prompt for job in world.fake_job_api.created)
    )


@pytest.mark.full
async def test_the_writer_of_something_unreadable_is_told(world: AppWorld) -> None:
    """Even if the reply holds nothing else."""
    await world.start()
    (job,) = await world.begin("Write it")
    write(world, "", pasted({"type": "call"}), await world.card("Write it"))
    await world.fake_job_api.until(lambda: world.fake_job_api.follow_ups(job))
    (sent,) = world.fake_job_api.follow_ups(job)
    assert "Attached file: a part of the message (call)" in sent
    await world.workspace.changes.wait_for(
        lambda: any("Neither content nor link: a part of the message" in told.text for told in world.thread("Write it"))
    )


@pytest.mark.full
async def test_talk_and_options_in_signs_of_other_keyboards(world: AppWorld) -> None:
    """What is between people stays there, and the task goes as it was written."""
    await world.start()
    ana = world.workspace.people["ana"]
    await ana.command("docs", "/docs", "quiet\u3000\u76f4\u3057\u3066\uff1aA\u00a0B")
    prompt = "\u76f4\u3057\u3066\uff1aA\u00a0B"
    await world.fake_job_api.until(lambda: prompt in [job.prompt for job in world.fake_job_api.created])
    card = await world.card(prompt)
    await ana.say("docs", "\uff0f\uff0f between us", thread_ts=card)
    await ana.say("docs", "Also the FAQ", thread_ts=card)
    await world.until_steered(world.fake_job_api.job_of(prompt), "Also the FAQ")


async def test_a_known_guest_is_refused_instead_of_told_that_work_begins(world: AppWorld) -> None:
    """The first time Slack has to be asked; the command does not wait for that."""
    await world.start()
    gia = world.workspace.people["gia"]
    docs = world.workspace.state.find_channel("docs")
    assert docs is not None
    if gia.id not in docs.members:
        world.workspace.state.join(docs, gia.id)
    assert (await gia.command("docs", "/docs", "Fix it")).text == RECORDED
    await world.workspace.changes.wait_for(lambda: any("guests" in told.text for told in gia.ephemerals("docs")))
    refused = (await gia.command("docs", "/docs", "Fix it now")).text
    assert refused.startswith("No job was started: guests of this workspace can't use Pagehand.")
    assert (await world.ask("Fix it as a member")).text == RECORDED
    assert world.card_ts("Fix it now") == ""
