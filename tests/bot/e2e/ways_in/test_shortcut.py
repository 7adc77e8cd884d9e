"""The message shortcut: a message, and optionally its thread, are handed over as shown, without secrets."""

from support.worlds.ways_in_world import LINK, WaysInWorld

from bot.workspace.model.files import Upload

SECRET = "ghp" + "_" + "a1B2" * 9
SHORTCUT = "hand_to_pagehand"


async def test_a_masked_secret_stays_in_slack_and_the_answer_is_in_the_thread(world: WaysInWorld) -> None:
    """The masking is mentioned; the shown text is sent as edited."""
    question = await world.ben.say("docs", f"The port in the guide is wrong. My key: {SECRET}")
    assert (await world.ana.shortcut("docs", question.ts, SHORTCUT)).ok
    view = await world.modal(world.ana, "Hand to Pagehand")
    shown = view.values["context/message/0"]["context/message/0"]["value"]
    assert "[masked: GitHub token]" in shown
    assert "Hidden, so that it stays in Slack: GitHub token." in str(view.blocks)
    await world.ana.views.enter("prompt", "Fix the port")
    await world.ana.views.enter("context/message/0", f"{shown}\nIt is 8443.")
    assert (await world.ana.views.submit()).ok
    created = await world.job("Fix the port")
    assert "> The port in the guide is wrong." in created.prompt
    assert "It is 8443." in created.prompt
    card = await world.card("asked: Fix the port\n")
    assert card.thread_ts == question.ts
    world.job_api.show(created.job_id, "completed", LINK)
    await world.said("Done.", thread_ts=question.ts)
    everything = f"{world.job_api.attempts} {[call.args for call in world.workspace.web_api.calls]}"
    assert SECRET not in everything


async def test_the_whole_thread_is_included_when_chosen(world: WaysInWorld) -> None:
    """Oldest first, with names, and the files of the message."""
    root = await world.ana.say("docs", "Who knows about ports?")
    reply = await world.ben.say("docs", "I do", thread_ts=root.ts, files=[Upload("ports.md", b"# Ports\n\n8443\n")])
    await world.ana.shortcut("docs", reply.ts, SHORTCUT)
    await world.modal(world.ana, "Hand to Pagehand")
    await world.ana.views.enter("prompt", "Write that down")
    await world.ana.views.enter("scope", "thread")
    await world.until(lambda: _with_thread(world), "the thread in the modal")
    assert (await world.ana.views.submit()).ok
    prompt = (await world.job("Write that down")).prompt
    assert (
        prompt.index("ana, ")
        < prompt.index("> Who knows about ports?")
        < prompt.index("ben, ")
        < prompt.index("> I do")
    )
    assert "# Ports\n\n8443\n" in prompt
    assert (await world.card()).thread_ts == root.ts


def _with_thread(world: WaysInWorld) -> bool:
    top = world.ana.views.top
    return top is not None and "Who knows about ports?" in str(top.blocks)


async def test_only_mentions_count_in_the_thread_of_a_handed_over_message(world: WaysInWorld) -> None:
    """It is another conversation."""
    question = await world.ben.say("docs", "The port is wrong")
    await world.ana.shortcut("docs", question.ts, SHORTCUT)
    await world.modal(world.ana, "Hand to Pagehand")
    await world.ana.views.enter("prompt", "Fix the port")
    await world.ana.views.submit()
    created = await world.job("Fix the port")
    await world.said("Started.", thread_ts=question.ts)
    await world.ben.say("docs", "Thank you", thread_ts=question.ts)
    await world.ben.say("docs", f"{world.bot} in the manual as well", thread_ts=question.ts)
    await world.steered(created.job_id, "in the manual as well")
