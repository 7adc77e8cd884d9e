"""The ways in: mentions, the command, modals, shortcuts, direct messages and Home, and the introduction."""

import pytest
from support.worlds.app_world import until
from support.worlds.ways_in_world import LINK, WaysInWorld, labels, text_of

from bot.notices.said import ButtonId
from bot.slack.rendering.blocks import HAND_OVER
from bot.slack.rendering.home import (
    HOME_DEFAULTS,
    HOME_EXAMPLE,
    HOME_NEWER,
    HOME_OLDER,
    HOME_RETRY,
    HOME_START,
)
from bot.workspace.model.entities import Message, Upload


async def test_a_message_delivered_as_two_events_starts_one_job(world: WaysInWorld) -> None:
    """Its channel and ts identify it, in any order; the same for a follow-up."""
    world.workspace.faults.envelope("reorder", "events_api")
    asked = await world.ana.say("docs", f"{world.bot} Fix the guides")
    created = await world.job("Fix the guides")
    await world.said("Started.", thread_ts=asked.ts)
    await world.ben.say("docs", f"And the manual, {world.bot}", thread_ts=asked.ts)
    await world.steered(created.job_id, "And the manual,")
    await world.workspace.deliveries.settled()
    assert sorted(_events_of(world, asked)) == ["app_mention", "message"]
    (card,) = world.cards()
    assert (card.thread_ts, len(world.job_api.created)) == (asked.ts, 1)


def _events_of(world: WaysInWorld, message: Message) -> list[str]:
    """Returns the kinds of the events about a message."""
    payloads = [record.envelope.payload for record in world.workspace.deliveries.records]
    return [payload["event"]["type"] for payload in payloads if payload.get("event", {}).get("ts") == message.ts]


async def _conversation(world: WaysInWorld) -> Message:
    root = await world.ben.say("docs", "The port in the guide is wrong, @ana")
    await world.ana.say("docs", "Is it <8443>?", thread_ts=root.ts)
    await world.ben.say("docs", "Yes", thread_ts=root.ts)
    return root


async def test_a_mention_in_a_thread_includes_the_thread(world: WaysInWorld) -> None:
    """Oldest first, names instead of ids, separated from the request; the answer is there."""
    root = await _conversation(world)
    await world.ana.say("docs", f"{world.bot} fix that", thread_ts=root.ts)
    prompt = (await world.job("fix that")).prompt
    lines = ["fix that", "BEGINNING OF CONTEXT", "ben, ", "> The port in the guide is wrong, @ana", "ana, "]
    lines += ["> Is it <8443>?", "> Yes", "END OF CONTEXT"]
    places = [prompt.rindex(line) if line.startswith("END") else prompt.index(line) for line in lines]
    assert places == sorted(places)
    assert "<@U" not in prompt
    assert prompt.count("fix that") == 1
    assert (await world.card()).thread_ts == root.ts


@pytest.mark.first(channel=1)
@pytest.mark.parametrize(("channel", "seen_as"), [("docs", "docs"), ("pagehand", "ana")])
async def test_a_forwarded_message_without_words_is_asked_about(world: WaysInWorld, channel: str, seen_as: str) -> None:
    """Privately; its button opens the form with the message included."""
    said = await world.ben.say("general", "The port is 8443")
    sent = await world.ana.forward("general", said.ts, channel, text=world.bot if channel == "docs" else "")
    asked = await world.private_message(world.ana, "What should I do with this message?")
    assert world.job_api.created == []
    assert (await world.ana.press(channel, asked.ts, HAND_OVER)).ok
    await world.modal(world.ana, "Hand to Pagehand")
    await world.ana.views.enter("prompt", "Write that down")
    assert (await world.ana.views.submit()).ok
    assert "The port is 8443" in (await world.job("Write that down")).prompt
    await world.said("Started.", channel=seen_as, thread_ts=sent.ts)


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


async def test_the_draft_of_a_closed_modal_is_restored_until_it_is_sent(world: WaysInWorld) -> None:
    """Only to its author."""
    await world.ana.command("docs", "/docs")
    await world.modal(world.ana, "New job")
    await world.ana.views.enter("prompt", "Fix the guides")
    await world.ana.views.close()
    await until(lambda: _drafts(world))
    await world.ana.command("docs", "/docs")
    view = await world.modal(world.ana, "New job")
    assert view.values["prompt"]["prompt"]["value"] == "Fix the guides"
    await world.ben.command("docs", "/docs")
    assert (await world.modal(world.ben, "New job")).values["prompt"]["prompt"]["value"] is None
    assert (await world.ana.views.submit()).ok
    await world.job("Fix the guides")
    await until(lambda: _no_drafts(world))


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


DIRECT = "pagehand"


async def test_a_direct_message_starts_a_job_and_replies_steer_it(world: WaysInWorld) -> None:
    """All in its thread, without a mention; thanks outside it get a heart, and start nothing."""
    asked = await world.ana.say(DIRECT, "Fix the guides")
    created, card = await world.job("Fix the guides"), await world.card("asked: Fix the guides\n", channel="ana")
    assert card.thread_ts == asked.ts
    await world.said("Started.", channel="ana", thread_ts=asked.ts)
    reply = await world.ana.say(DIRECT, "And the manual", thread_ts=asked.ts)
    await world.steered(created.job_id, "And the manual")
    await world.marked(reply, "white_check_mark")
    world.job_api.show(created.job_id, "completed", LINK)
    assert LINK in (await world.said("Done.", channel="ana", thread_ts=asked.ts)).text
    await world.marked(await world.ana.say(DIRECT, "Thanks a lot!"), "heart")
    assert len(world.job_api.created) == 1


@pytest.mark.full
async def test_a_line_during_a_job_can_be_a_reply_or_a_job(world: WaysInWorld) -> None:
    """There is a button for each; the question is at the line."""
    await world.ana.say(DIRECT, "Fix the guides")
    created = await world.job("Fix the guides")
    await world.ana.say(DIRECT, "And the manual")
    asked = await world.private_message(world.ana, "And the manual")
    assert labels(asked) == ["New job", "Add to the one above"]
    assert (await world.ana.press(DIRECT, asked.ts, ButtonId.SEND_HELD)).ok
    await world.steered(created.job_id, "And the manual")
    await world.ana.say(DIRECT, "Fix the index")
    asked = await world.private_message(world.ana, "Fix the index")
    assert (await world.ana.press(DIRECT, asked.ts, ButtonId.DISCARD_HELD)).ok
    await world.job("Fix the index")
    assert len(world.job_api.created) == 2


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
    assert (await world.ben.views.submit()).ok, "the example is in it"
    await world.card("Fix the typos", channel="general")
    assert [message.ts for message in world.messages("general") if "Hello, I'm" in message.text] == [hello.ts]


@pytest.mark.full
async def test_a_person_without_jobs_sees_how_to_start_one(world: WaysInWorld) -> None:
    """With an example that can be pressed, and a button."""
    await world.ben.views.open_home()
    await world.home(world.ben, "You haven't asked for a job yet")
    await world.ben.views.press(HOME_EXAMPLE)
    form = await world.modal(world.ben, "New job")
    assert "Fix the typos" in text_of(form.blocks)
    await world.ben.views.close()
    await world.ben.views.press(HOME_START)
    await world.modal(world.ben, "New job")
    await world.ben.views.enter("prompt", "Fix the guides")
    await world.ben.views.enter("channel", "docs")
    assert (await world.ben.views.submit()).ok
    async with world.app.hurrying():
        await world.home(world.ben, "Fix the guides", without="You haven't asked")


@pytest.mark.full
async def test_home_is_updated_with_its_jobs(world: WaysInWorld) -> None:
    """State, pull request and permalink; after a failure, a retry."""
    async with world.app.hurrying():
        await world.ana.views.open_home()
        job = await world.begun()
        await world.home(world.ana, "Active: the agent is at work")
        world.job_api.show(job.id, "completed", LINK)
        home = await world.home(world.ana, f"<{LINK}|pull request>")
        assert "|thread>" in text_of(home.blocks)
        failed = await world.begun("Fix the manual")
        world.job_api.show(failed.id, "failed")
        await world.home(world.ana, "*Failed*")
        assert (await world.ana.views.press(HOME_RETRY)).ok
        await world.job_api.until(lambda: len(world.job_api.created) == 3)
    assert world.job_api.created[2].prompt == "Fix the manual"


@pytest.mark.full
async def test_jobs_are_shown_newest_first_ten_a_page(world: WaysInWorld) -> None:
    """With buttons to the other pages and back."""
    for number in range(11):
        await world.ana.command("docs", "/docs", f"Job number {number:02}")
    await world.job_api.until(lambda: len(world.job_api.created) == 11)
    await world.ana.views.open_home()
    home = text_of((await world.home(world.ana, "Job number 10", without="Job number 00")).blocks)
    assert home.index("Job number 10") < home.index("Job number 01")
    await world.ana.views.press(HOME_OLDER)
    home_with_oldest = await world.home(world.ana, "Job number 00", without="Job number 10")
    assert labels(home_with_oldest)[0] == "Newer"
    await world.ana.views.press(HOME_NEWER)
    await world.home(world.ana, "Job number 10", without="Job number 00")


async def test_personal_defaults_are_saved_and_applied(world: WaysInWorld) -> None:
    """Silently, from the next job on."""
    await world.ana.views.open_home()
    await world.home(world.ana, "When a job ends: you are mentioned")
    await world.ana.views.press(HOME_DEFAULTS)
    await world.modal(world.ana, "Your defaults")
    await world.ana.views.enter("telling", "quiet")
    assert (await world.ana.views.submit()).ok
    await world.home(world.ana, "When a job ends: nobody is mentioned")
    job = await world.finished()
    assert world.ana.mention not in (await world.said("Done.", thread_ts=job.ts)).text


def post(world: WaysInWorld, user_id: str, text: str, *, thread_ts: str | None = None) -> Message:
    """Posts as an app does."""
    state = world.workspace.state
    channel = state.find_channel("docs")
    assert channel is not None
    message = Message(channel.id, "", user_id, text, thread_ts=thread_ts, bot_id="B0OTHER01", app_id="A0OTHER01")
    return state.post(message)


def mention(world: WaysInWorld, text: str) -> str:
    return f"<@{world.workspace.app.bot_user_id}> {text}"


@pytest.mark.promise("ways in")
async def test_a_person_asks_and_steers_by_a_tool(world: WaysInWorld) -> None:
    asked = post(world, world.ana.id, mention(world, "Fix the guides"))
    created = await world.job("Fix the guides")
    await world.said("Started.", thread_ts=asked.ts)
    post(world, world.ana.id, "And the manual", thread_ts=asked.ts)
    await world.steered(created.job_id, "And the manual")
    assert len(world.cards()) == len(world.job_api.created) == 1
