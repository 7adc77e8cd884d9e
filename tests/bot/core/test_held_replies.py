"""Replies whose people were asked whether they are for the agent: the question is repeated, or ends with a message."""

from dataclasses import replace

import pytest
from support.worlds.core_world import ANA, BEN, CoreWorld

from bot.domain.commands.thread_words import ThreadWord
from bot.domain.projects import ChannelSettings, Project, Projects, ReplyMode
from bot.domain.requests.request import Reply, RequestKind
from bot.notices.questions import ReplyHeld
from bot.scheduler.retention import DAY, HELD_DAYS, RetentionSweeper

AT = [f"170000000{n}.000200" for n in range(1, 10)]


@pytest.fixture
async def ts(world: CoreWorld) -> str:
    """The thread of Ana's job, with a reply of Ben's that waits for his answer."""
    world.projects = Projects((Project("docs"),), any_channel=ChannelSettings(replies=ReplyMode.PARTICIPANTS))
    world.assemble()
    ts = await world.started()
    await world.reply(ts, "mine", AT[0], BEN)
    await world.settle()
    return ts


def asked(world: CoreWorld) -> list[tuple[str, str]]:
    return [(held.person_id, held.text) for held in world.chat.private_as(ReplyHeld)]


async def status(world: CoreWorld, ts: str, at: str, **by: str) -> None:
    person = replace(BEN, **by)
    await world.service.receive(Reply(person, "C1", ts, at, "", word=ThreadWord.STATUS))
    await world.settle()


async def test_an_edit_asks_again_with_the_edited_words(world: CoreWorld, ts: str) -> None:
    """Once for each version; whichever question is answered, the newest text is sent."""
    edit = Reply(BEN, "C1", ts, AT[0], "mine, please", edited_at=AT[1])
    for _ in range(2):
        await world.service.revise(edit)
        await world.settle()
    assert asked(world) == [("UBEN", "mine"), ("UBEN", "mine, please")]
    first = world.chat.private_as(ReplyHeld)[0].request_id
    await world.press(RequestKind.SEND_HELD, BEN, first, key="p1")
    await world.pass_time(5)
    assert world.job_api.messages["job-1"] == ["mine, please"]


async def test_an_edit_that_mentions_pagehand_is_sent_to_the_agent(world: CoreWorld, ts: str) -> None:
    await world.service.revise(Reply(BEN, "C1", ts, AT[0], "mine, please", edited_at=AT[1], mentions_us=True))
    await world.pass_time(5)
    assert world.job_api.messages["job-1"] == ["mine, please"]
    assert len(asked(world)) == 1


async def test_a_status_request_repeats_questions_about_replies(world: CoreWorld, ts: str) -> None:
    """Each time, the newest five of that person."""
    await status(world, ts, AT[1])
    await status(world, ts, AT[1])
    await status(world, ts, AT[2], id=ANA.id)
    assert asked(world) == [("UBEN", "mine")] * 2
    for number in range(6):
        await world.reply(ts, f"and {number}", f"17000001{number}0.000200", BEN)
    await world.settle()
    before = len(asked(world))
    await status(world, ts, AT[3])
    assert asked(world)[before:] == [("UBEN", f"and {number}") for number in range(1, 6)]


async def test_an_answered_question_is_not_repeated(world: CoreWorld, ts: str) -> None:
    await world.press(RequestKind.DISCARD_HELD, BEN, world.chat.private_as(ReplyHeld)[0].request_id, key="p1")
    await status(world, ts, AT[1])
    assert len(asked(world)) == 1


async def test_an_unanswered_question_about_a_reply_expires_with_an_explanation(world: CoreWorld, ts: str) -> None:
    """One message for everything that its person wrote there."""
    await world.reply(ts, "and this", AT[1], BEN)
    await world.settle()
    world.clock.advance(HELD_DAYS * DAY + 60)
    for _ in range(2):
        await RetentionSweeper(world.store, days=90).sweep()
        await world.settle()
    assert world.chat.private_kinds()[-1] == ("UBEN", "action_answered")
    assert world.chat.answers() == ["held_expired"]
    await world.press(RequestKind.SEND_HELD, BEN, world.chat.private_as(ReplyHeld)[0].request_id, key="p1")
    await world.settle()
    assert world.job_api.messages["job-1"] == []
