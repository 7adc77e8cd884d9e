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
