"""Messages written while a card is being posted could be replies to it. Once it is known where the card
is, those for another thread are handled or answered: nothing that was acknowledged is lost.
"""

from dataclasses import replace

import pytest
from support.worlds.core_world import ANA, BEN, CoreWorld

from bot.domain.commands.thread_words import ThreadWord
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import Reply, WayIn
from bot.domain.threads.thread import ThreadOrigin
from bot.errors import ChatRejected
from bot.notices.answers import HelpRequested, StatusRequested

ROOT = "1700000000.000900"
"""A root message that Slack has not delivered yet."""
AT = ("1700000001.000100", "1700000002.000100", "1700000003.000100")


def said(ts: str, text: str = "", word: ThreadWord | None = None) -> Reply:
    return Reply(ANA, "C1", ROOT, ts, text, word=word)


async def deliver_mention(world: CoreWorld) -> None:
    """Delivers the root message."""
    asked = NewJob(BEN, "C1", "Fix it", f"message/C1/{ROOT}", WayIn.MENTION, thread_ts=ROOT, message_ts=ROOT)
    await world.service.start(replace(asked, origin=ThreadOrigin.REQUEST))


async def test_replies_that_arrive_before_the_threads_mention_reach_its_job(world: CoreWorld) -> None:
    """If another card is being posted, it waits for that; then it is handled."""
    await world.start()
    assert await world.service.receive(said(AT[0], "and the manual"))
    assert await world.service.receive(said(AT[1], word=ThreadWord.STATUS))
    assert await world.service.receive(said(AT[2], "Fix that, too", ThreadWord.NEW))
    await deliver_mention(world)
    await world.pass_time(60)
    assert world.job_api.created == ["Do it", "Fix it", "Fix that, too"]
    assert {job: words for job, words in world.job_api.messages.items() if words} == {"job-2": ["and the manual"]}
    assert len(world.chat.private_as(StatusRequested)) == 1


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("word", [word for word in ThreadWord if word is not ThreadWord.HELP])
async def test_a_control_word_in_a_thread_without_a_job_is_answered(
    world: CoreWorld, word: ThreadWord, *, archived: bool
) -> None:
    """Once, whether the card was posted or could not be."""
    await world.start()
    for _ in range(2):
        assert await world.service.receive(said(AT[0], "Fix it" if word is ThreadWord.NEW else "", word))
    if archived:
        world.chat.joined.clear()
        world.chat.fault = no_room
    await world.pass_time(60)
    assert world.chat.answers() == ["no_job_there"]
    assert world.job_api.created == ([] if archived else ["Do it"])


async def test_help_in_a_thread_without_a_job_is_shown(world: CoreWorld) -> None:
    await world.start()
    assert await world.service.receive(said(AT[0], word=ThreadWord.HELP))
    await world.pass_time(60)
    assert len(world.chat.private_as(HelpRequested)) == 1


async def test_a_mention_added_by_a_late_edit_is_explained(world: CoreWorld) -> None:
    """As if no card were being posted."""
    await world.start()
    late = replace(said(AT[0], "Fix it"), mentions_us=True, edited_at="1700001000.000100")
    assert await world.service.revise(late)
    await world.pass_time(60)
    assert world.chat.answers() == ["edited_too_late"]
    assert world.job_api.created == ["Do it"]


async def test_talk_between_people_before_the_mention_is_ignored(world: CoreWorld) -> None:
    await world.start()
    await world.service.receive(said(AT[0], "Lunch?"))
    await world.service.receive(replace(said(AT[1]), withdrawn=True, edited_at=AT[2]))
    await world.pass_time(60)
    assert world.chat.answers() == []
    assert world.job_api.created == ["Do it"]
    assert world.job_api.messages["job-1"] == []


async def test_no_reply_waits_for_a_card_in_a_known_thread(world: CoreWorld) -> None:
    """The card of a mention is posted in the mention's own thread, so nothing else can be a reply to it."""
    await deliver_mention(world)
    await world.prepare()
    assert not await world.service.receive(replace(said(AT[0], "Lunch?"), thread_ts="1700000000.000950"))


def no_room(call: str, _thread: object) -> None:
    if call == "post_card":
        raise ChatRejected("is_archived")
