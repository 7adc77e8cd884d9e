"""An invitation to a channel: Pagehand introduces itself once, with a button to try it."""

from support.worlds.ways_in_world import WaysInWorld

from bot.notices.said import ButtonId


async def test_an_introduction_offers_an_example_to_the_inviter(world: WaysInWorld) -> None:
    """Once, even if it is removed and invited again."""
    await world.ana.invite("general", world.bot)
    hello = await world.said("Hello, I'm", channel="general")
    assert len(hello.text.splitlines()) == 3
    world.workspace.channels.remove_bot("general")
    await world.ana.invite("general", world.bot)
    assert (await world.ben.press("general", hello.ts, ButtonId.OPEN_FORM)).ok
    form = await world.modal(world.ben, "New job")
    assert [block["block_id"] for block in form.blocks if block["type"] == "input"] == ["prompt", "telling"]
    await world.ben.views.enter("prompt", "Fix the guides")
    assert (await world.ben.views.submit()).ok
    await world.card("Fix the guides", channel="general")
    assert [message.ts for message in world.messages("general") if "Hello, I'm" in message.text] == [hello.ts]


async def test_joining_a_channel_for_a_job_posts_no_introduction(world: WaysInWorld) -> None:
    await world.begun(channel="general")
    await world.app.settled()
    assert not [message for message in world.messages("general") if "Hello, I'm" in message.text]
