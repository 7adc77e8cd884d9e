"""Mentions: a job from a root message, in an existing thread, and beside another job."""

import pytest
from support.worlds.ways_in_world import LINK, WaysInWorld

from bot.domain.commands.thread_words import ThreadWord
from bot.slack.rendering.blocks import HAND_OVER
from bot.workspace.model.entities import Message


async def test_a_mention_starts_a_job_in_its_own_thread(world: WaysInWorld) -> None:
    """The card is below the requesting message; replies there need no mention."""
    asked = await world.ana.say("docs", f"{world.bot} quiet Fix the guides")
    created, card = await world.job("Fix the guides"), await world.card("asked: Fix the guides\n")
    assert (created.prompt, card.thread_ts) == ("Fix the guides", asked.ts)
    await world.said("Started.", thread_ts=asked.ts)
    await world.ben.say("docs", "And the manual", thread_ts=asked.ts)
    await world.steered(created.job_id, "And the manual")
    world.job_api.show(created.job_id, "completed", LINK)
    await world.said("Done.", thread_ts=asked.ts)


async def test_a_message_delivered_as_two_events_starts_one_job(world: WaysInWorld) -> None:
    """Its channel and ts identify it, in any order; the same for a follow-up."""
    world.workspace.faults.reorder_envelope("events_api")
    asked = await world.ana.say("docs", f"{world.bot} Fix the guides")
    created = await world.job("Fix the guides")
    await world.said("Started.", thread_ts=asked.ts)
    await world.ben.say("docs", f"And the manual, {world.bot}", thread_ts=asked.ts)
    await world.steered(created.job_id, "And the manual,")
    await world.workspace.deliveries.settled()
    assert sorted(_events_of(world, asked)) == ["app_mention", "message"]
    assert len(world.cards()) == len(world.job_api.created) == 1


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


async def test_in_an_existing_thread_only_mentions_are_follow_ups(world: WaysInWorld) -> None:
    """There is one job, whoever mentions it."""
    root = await _conversation(world)
    await world.ana.say("docs", f"{world.bot} fix that", thread_ts=root.ts)
    created = await world.job("fix that")
    await world.said("Started.", thread_ts=root.ts)
    await world.ben.say("docs", "I would have done it", thread_ts=root.ts)
    await world.ben.say("docs", f"{world.bot} in the manual, too", thread_ts=root.ts)
    await world.steered(created.job_id, "in the manual, too")
    assert len(world.job_api.created) == 1


async def test_new_in_a_jobs_thread_starts_another(world: WaysInWorld) -> None:
    """Later replies go to the newest."""
    job = await world.begun()
    await world.ana.say("docs", f"{world.bot} {ThreadWord.NEW} Translate the guides", thread_ts=job.ts)
    second = await world.job("Translate the guides")
    card = await world.card("asked: Translate the guides\n")
    assert (card.thread_ts, len(world.cards())) == (job.ts, 2)
    await world.until(lambda: _started(world, job.ts) == 2, "the start of the second")
    await world.ben.say("docs", "into French", thread_ts=job.ts)
    await world.steered(second.job_id, "into French")
    assert world.job_api.follow_ups(job.id) == []


def _started(world: WaysInWorld, ts: str) -> int:
    return sum("Started." in message.text for message in world.messages(thread_ts=ts))


async def test_forwarded_messages_and_link_previews_are_included_as_text(world: WaysInWorld) -> None:
    """Their authors are named."""
    said = await world.ben.say("general", "The port is 8443")
    root = await world.ben.forward("general", said.ts, "docs", text="Look at this")
    await world.ana.say("docs", f"{world.bot} write that down", thread_ts=root.ts)
    prompt = (await world.job("write that down")).prompt
    assert "> Look at this" in prompt
    assert "> The port is 8443" in prompt
    assert "A message of ben" in prompt


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


async def test_a_mention_without_words_is_helped_privately(world: WaysInWorld) -> None:
    """It starts nothing, and nobody else sees the help."""
    await world.ana.say("docs", world.bot)
    await world.private_message(world.ana, "Pagehand hands documentation tasks")
    assert world.ben.ephemerals("docs") == []
    assert world.job_api.created == []
