"""The slash command and the modal: leading options, errors at their field, text that is never lost."""

import pytest
from support.worlds.ways_in_world import LINK, WaysInWorld

from bot.slack.rendering.words.forms import PROMPT_MISSING


@pytest.mark.parametrize("options", ["quiet project:docs", "project:docs quiet"])
async def test_command_options_may_be_in_any_order(world: WaysInWorld, options: str) -> None:
    """The agent does not get them; with `quiet` nobody is mentioned at the end."""
    await world.ana.command("docs", "/docs", f"{options} Fix the guides")
    created, card = await world.job("Fix the guides"), await world.card("asked: Fix the guides\n")
    assert created.prompt == "Fix the guides"
    world.job_api.show(created.job_id, "completed", LINK)
    ended = await world.said("Done.", thread_ts=card.ts)
    assert LINK in ended.text
    assert world.ana.mention not in ended.text


async def test_the_requester_is_mentioned_unless_quiet(world: WaysInWorld) -> None:
    """Once, at the end."""
    job = await world.finished()
    ended = await world.said("Done.", thread_ts=job.ts)
    assert ended.text.count(world.ana.mention) == 1


async def test_an_invalid_option_starts_nothing_and_is_explained(world: WaysInWorld) -> None:
    """Privately and at once."""
    answer = await world.ana.command("docs", "/docs", "quiet quiet Fix the guides")
    assert "is there twice" in answer.text
    await world.begun("Another one")
    assert [created.prompt for created in world.job_api.created] == ["Another one"]


async def test_the_bare_command_opens_the_modal_of_its_channel(world: WaysInWorld) -> None:
    """It asks for no project if there is only one; the prompt can be as long as Slack's input allows."""
    assert (await world.ana.command("docs", "/docs")).ok
    view = await world.modal(world.ana, "New job")
    assert [block["block_id"] for block in view.blocks if block["type"] == "input"] == ["prompt", "telling"]
    long = "Line & <one>\n" + "word " * 590
    await world.ana.views.enter("prompt", long)
    await world.ana.views.enter("telling", "quiet")
    assert (await world.ana.views.submit()).ok
    created, card = await world.job(long.strip()), await world.card("asked: Line &amp; &lt;one&gt;")
    world.job_api.show(created.job_id, "completed", LINK)
    assert world.ana.mention not in (await world.said("Done.", thread_ts=card.ts)).text


async def test_an_error_appears_at_its_field_and_loses_no_text(world: WaysInWorld) -> None:
    """The modal stays open until the error is corrected."""
    await world.ana.command("docs", "/docs")
    view = await world.modal(world.ana, "New job")
    await world.ana.views.enter("prompt", "\n ")
    assert (await world.ana.views.submit()).errors == {"prompt": PROMPT_MISSING}
    await world.ana.views.enter("prompt", "Fix the guides")
    assert world.ana.views.top == view
    assert (await world.ana.views.submit()).ok
    assert world.workspace.views.modal(world.ana.id) is None
    await world.job("Fix the guides")


async def test_the_draft_of_a_closed_modal_is_restored_until_it_is_sent(world: WaysInWorld) -> None:
    """Only to its author."""
    await world.ana.command("docs", "/docs")
    await world.modal(world.ana, "New job")
    await world.ana.views.enter("prompt", "Fix the guides")
    await world.ana.views.close()
    await world.app.until_true(lambda: _drafts(world))
    await world.ana.command("docs", "/docs")
    view = await world.modal(world.ana, "New job")
    assert view.values["prompt"]["prompt"]["value"] == "Fix the guides"
    await world.ben.command("docs", "/docs")
    assert (await world.modal(world.ben, "New job")).values["prompt"]["prompt"]["value"] is None
    assert (await world.ana.views.submit()).ok
    await world.job("Fix the guides")
    await world.app.until_true(lambda: _no_drafts(world))


async def _drafts(world: WaysInWorld) -> bool:
    return bool(await world.app.sql("SELECT 1 FROM drafts"))


async def _no_drafts(world: WaysInWorld) -> bool:
    return not await _drafts(world)


async def test_the_global_shortcut_asks_for_the_channel(world: WaysInWorld) -> None:
    """The job is started there."""
    assert (await world.ana.global_shortcut("new_task")).ok
    await world.modal(world.ana, "New job")
    await world.ana.views.enter("prompt", "Fix the guides")
    assert list((await world.ana.views.submit()).errors) == ["channel"]
    await world.ana.views.enter("channel", "docs")
    assert (await world.ana.views.submit()).ok
    await world.card("asked: Fix the guides\n")
