"""Which messages in a Slack thread go to its job, and what starts one."""

from dataclasses import replace

import pytest
from support.worlds.core_world import ANA, BEN, CoreWorld

from bot.domain.commands import ThreadWord
from bot.domain.delivery import InConversation
from bot.domain.messages import ThreadMessage
from bot.domain.permissions import Refusal
from bot.domain.projects import ReplyMode
from bot.domain.requests.request import Action, Person, Reply, RequestKind, WayIn
from bot.errors import JobApiRejected
from bot.notices.answers import HelpRequested
from bot.notices.notice import Reaction
from bot.notices.questions import ReplyHeld, StopAsked

CLEO = Person("UCLEO", "T1")
ROOT = "1700000000.000100"
AT = [f"170000000{n}.000200" for n in range(1, 10)]


def said(person: Person, text: str, at: str, *, thread_ts: str = ROOT, mentions: bool = True) -> Reply:
    return Reply(person, "C1", thread_ts, at, text, mentions_us=mentions)


async def conversation(world: CoreWorld) -> str:
    """A job requested by a mention in other people's conversation; returns its id."""
    world.reading.threads[ROOT] = [ThreadMessage("Cleo", "The guide is wrong", ROOT)]
    assert await world.receive(said(ANA, "Fix it", AT[0]))
    await world.settle()
    return "job-1"


async def test_in_an_existing_thread_only_mentions_reach_the_job(world: CoreWorld) -> None:
    """And the next mention includes the messages since the last one, without those that the agent has."""
    await conversation(world)
    world.reading.threads[ROOT] += [ThreadMessage("Ana", "Fix it", AT[0]), ThreadMessage("Cleo", "Both guides", AT[1])]
    assert await world.receive(said(CLEO, "Both guides", AT[1], mentions=False))
    assert await world.receive(said(BEN, "and do that", AT[2]))
    await world.pass_time(5)
    (sent,) = world.job_api.messages["job-1"]
    assert sent.startswith("and do that\n\n")
    assert "> Both guides" in sent
    assert "The guide is wrong" not in sent
    assert world.chat.reactions == {AT[2]: Reaction.ACCEPTED}
    assert world.chat.private == []


async def test_a_mention_includes_what_was_written_before_it(world: CoreWorld) -> None:
    before, after = ThreadMessage("Cleo", "The guide is wrong", ROOT), ThreadMessage("Cleo", "Never mind", AT[1])
    world.reading.threads[ROOT] = [before, after]
    await world.receive(said(ANA, "Fix it", AT[0]), wait=5)
    (prompt,) = world.job_api.created
    assert ("The guide is wrong" in prompt, "Never mind" in prompt) == (True, False)


async def test_a_failed_mention_leaves_its_context_to_the_next(world: CoreWorld) -> None:
    """The job API rejects it while another is being sent."""
    job = await conversation(world)
    world.reading.threads[ROOT].append(ThreadMessage("Cleo", "Use chapter 7", AT[2]))
    await world.receive(said(ANA, "First", AT[3]))
    await world.receive(said(BEN, "Second", AT[5]))
    await world.prepare()
    world.job_api.faults = [JobApiRejected("no")]
    await world.pass_time(60)
    (sent,) = world.job_api.messages[job]
    assert sent.startswith("Second\n")
    assert "> Use chapter 7" in sent


async def test_a_retry_includes_the_same_context(world: CoreWorld) -> None:
    """Later messages are not part of the repeated request."""
    await conversation(world)
    (card,) = (posted for posted in world.chat.messages if posted.kind == "card_changed")
    await world.show("failed", wait=5)
    world.reading.threads[ROOT] += [ThreadMessage("Ana", "Fix it", AT[0]), ThreadMessage("Cleo", "Too bad", AT[1])]
    await world.press(RequestKind.RETRY, ANA, "", key="p1", thread_id=(await world.thread(card.ts)).id, wait=5)
    first, again = world.job_api.created
    assert again == first


async def test_two_concurrent_mentions_become_a_job_and_a_follow_up(world: CoreWorld) -> None:
    await world.receive(said(ANA, "Fix it", AT[0]))
    await world.receive(said(BEN, "and the manual", AT[1]), wait=5)
    assert [prompt.partition("\n")[0] for prompt in world.job_api.created] == ["Fix it"]
    assert [prompt.partition("\n")[0] for prompt in world.job_api.messages["job-1"]] == ["and the manual"]


@pytest.mark.first(channel=1)
@pytest.mark.parametrize("channel", ["C1", "D1"])
async def test_a_request_in_a_thread_while_a_card_is_in_flight_is_not_lost(world: CoreWorld, channel: str) -> None:
    """It could be a reply to that card, whose place is still unknown."""
    world.chat.public.add("D1")
    await world.start(channel=channel)
    asked = Reply(BEN, channel, "1700000000.000900", AT[0], "Fix it")
    assert await world.receive(replace(asked, mentions_us=channel == "C1", in_direct_message=channel == "D1"))
    assert world.job_api.created == []
    await world.pass_time(5)
    assert world.job_api.created == ["Do it", "Fix it"]


async def test_in_participants_mode_others_are_asked_first(world: CoreWorld) -> None:
    """Once for each reply; sending one makes nobody a participant, but they are told of the end."""
    world.count_replies(ReplyMode.PARTICIPANTS)
    ts = await world.started()
    await world.reply(ts, "first", AT[0])
    for _ in range(2):
        await world.reply(ts, "shorter", AT[1], BEN)
    await world.pass_time(5)
    assert world.job_api.messages["job-1"] == ["first"]
    (held,) = world.chat.private_as(ReplyHeld)
    assert (held.person_id, held.text) == ("UBEN", "shorter")
    await world.press(RequestKind.SEND_HELD, CLEO, held.request_id, key="p1")
    await world.press(RequestKind.SEND_HELD, BEN, held.request_id, key="p2")
    await world.press(RequestKind.SEND_HELD, BEN, held.request_id, key="p3")
    await world.reply(ts, "much shorter", AT[2], BEN, wait=5)
    assert world.job_api.messages["job-1"] == ["first", "shorter"]
    assert world.chat.reactions == {AT[0]: Reaction.ACCEPTED, AT[1]: Reaction.ACCEPTED}
    assert world.chat.answers() == ["held_sent", "nothing_new"]
    assert world.chat.refusals() == [("UCLEO", Refusal.NOT_THE_WRITER)]
    assert len(world.chat.private_as(ReplyHeld)) == 2
    assert (await world.thread(ts)).state.people.participants == ()


async def test_who_has_all_replies_sent_is_not_asked_again(world: CoreWorld) -> None:
    world.count_replies(ReplyMode.PARTICIPANTS)
    ts = await world.started()
    await world.reply(ts, "shorter", AT[0], BEN, wait=0)
    (held,) = world.chat.private_as(ReplyHeld)
    await world.press(RequestKind.SEND_ALL_HELD, BEN, held.request_id, key="p1", wait=0)
    await world.reply(ts, "much shorter", AT[1], BEN, wait=5)
    assert world.job_api.messages["job-1"] == ["shorter", "much shorter"]
    assert len(world.chat.private_as(ReplyHeld)) == 1


async def test_a_muted_job_receives_no_replies_and_says_so_for_each(world: CoreWorld) -> None:
    ts = await world.started()
    await word(world, ts, ThreadWord.MUTE, AT[0])
    await world.settle()
    for _ in range(2):
        await world.reply(ts, "among us", AT[1], BEN)
    await world.settle()
    await word(world, ts, ThreadWord.UNMUTE, AT[2])
    await world.reply(ts, "for the agent", AT[3], BEN, wait=5)
    assert world.job_api.messages["job-1"] == ["for the agent"]
    assert world.chat.answers() == ["muted", "reply_not_sent_muted", "unmuted"]


async def word(world: CoreWorld, ts: str, said: ThreadWord, at: str, *by: Person, text: str = "") -> None:
    """Writes a control word in a thread."""
    await world.receive(Reply(by[0] if by else ANA, "C1", ts, at, text, word=said))
    await world.prepare()


async def test_a_probable_control_word_is_asked_about_and_not_sent(world: CoreWorld) -> None:
    """Once for each message."""
    ts = await world.started()
    for _ in range(2):
        await word(world, ts, ThreadWord.HELP, AT[0], BEN, text="stop")
    await world.pass_time(5)
    assert world.job_api.messages == {}
    assert world.chat.private == [HelpRequested("UBEN", ThreadWord.STOP)]


async def test_private_messages_appear_in_a_thread_once_it_has_replies(world: CoreWorld) -> None:
    """Before that, they are in the channel: Slack shows none in a thread without replies."""
    await world.start()
    await world.step(world.outbox)
    ts = world.chat.messages[-1].ts
    thread = await world.thread(ts)
    await world.press(RequestKind.SHOW_JOB_ID, BEN, "", key="p1", thread_id=thread.id)
    await world.step(world.outbox)
    await word(world, ts, ThreadWord.HELP, AT[0], BEN)
    await world.step(world.outbox)
    await word(world, ts, ThreadWord.STATUS, AT[1], BEN)
    await world.settle()
    await world.press(RequestKind.SHOW_JOB_ID, BEN, "", key="p2", thread_id=thread.id, wait=0)
    assert world.chat.private_places == [*[InConversation()] * 2, *[InConversation(ts)] * 2]


async def test_new_starts_another_job_in_the_thread_that_gets_the_replies(world: CoreWorld) -> None:
    """An edit of a reply to the earlier job stays with that job."""
    ts = await world.started()
    await world.reply(ts, "for the first", AT[0], wait=5)
    await word(world, ts, ThreadWord.NEW, AT[1], BEN, text="Another")
    await world.pass_time(5)
    await world.reply(ts, "for the second", AT[2])
    await world.revise(Reply(ANA, "C1", ts, AT[0], "gone", edited_at=AT[3], withdrawn=True), wait=5)
    assert world.job_api.created == ["Do it", "Another"]
    assert world.job_api.messages == {"job-1": ["for the first"], "job-2": ["for the second"]}
    cards = [posted for posted in world.chat.messages if posted.kind == "card_changed"]
    assert [(await world.thread(card.ts)).number for card in cards] == [0, 1]


async def test_after_a_withdrawn_job_a_mention_starts_another(world: CoreWorld) -> None:
    """In the same thread."""
    await world.receive(said(ANA, "Fix it", AT[0]))
    await world.revise(replace(said(ANA, "", AT[0]), edited_at=AT[1], withdrawn=True), wait=5)
    await world.receive(said(BEN, "Fix that", AT[2]), wait=5)
    assert world.job_api.created == ["Fix that"]


@pytest.mark.parametrize("person", [ANA, BEN], ids=["who asked", "somebody else"])
async def test_a_stop_reaction_by_a_non_participant_asks_for_confirmation(world: CoreWorld, person: Person) -> None:
    """Nothing happens until they confirm."""
    ts = await world.started()
    world.job_api.cancels = True
    reaction = Action(person, RequestKind.STOP, "reaction/1", channel_id="C1", card_ts=ts, way_in=WayIn.REACTION)
    await world.service.act(reaction)
    await world.pass_time(5)
    assert world.job_api.cancelled == (["job-1"] if person is ANA else [])
    assert [each.person_id for each in world.chat.private_as(StopAsked)] == ([] if person is ANA else ["UBEN"])
    await world.press_card(RequestKind.STOP, ts, person, key="meant", wait=5)
    assert world.job_api.cancelled == ["job-1"]


# -- direct messages --------------------------------------------------------------------------------------------------


async def test_a_direct_message_reply_in_a_thread_without_a_job_requests_one(world: CoreWorld) -> None:
    """The conversation is included; the next reply is for that job."""
    world.chat.public.add("D1")
    world.reading.threads[ROOT] = [ThreadMessage("Pagehand", "The page on installing changed", ROOT)]
    reply = Reply(ANA, "D1", ROOT, AT[0], "try again please", in_direct_message=True)
    for _ in range(2):
        assert await world.receive(reply)
        await world.pass_time(5)
    await world.receive(replace(reply, message_ts=AT[1], text="and the manual"), wait=5)
    (created,) = world.job_api.created
    assert created.startswith("try again please\n\n")
    assert "> The page on installing changed" in created
    assert world.job_api.messages["job-1"] == ["and the manual"]
