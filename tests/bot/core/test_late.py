"""What was written while Pagehand was away is not carried out by itself: its writer is asked once, privately, and
reminded once.
"""

from dataclasses import replace
from typing import Any

import pytest
from support.worlds.core_world import ANA, BEN, EVA, CoreWorld

from bot.domain.commands.thread_words import ThreadWord
from bot.domain.people.members import Member
from bot.domain.projects import Project, Projects
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import (
    Action,
    Arrival,
    HeldBecause,
    Person,
    Reply,
    Request,
    RequestKind,
    Surface,
    WayIn,
)
from bot.domain.threads.thread import ThreadOrigin
from bot.notices.answers import StatusRequested
from bot.notices.notice import Reaction
from bot.notices.questions import HeldAsked, JobOrReplyAsked, ProjectAsked, RequestRefused
from bot.scheduler.retention import DAY, HELD_DAYS, RetentionSweeper

JOB = "job-1"
LATE = Arrival.LATE


def at(seconds: float) -> str:
    return f"{1_700_000_000 + seconds:.6f}"


@pytest.fixture
async def ts(world: CoreWorld) -> str:
    """A running job, at a job API that can cancel."""
    world.job_api.cancels = True
    return await world.started()


def a_mention(text: str, message_ts: str, *, person: Person = BEN, **changed: Any) -> NewJob:
    key, way_in = f"message/C1/{message_ts}", WayIn.MENTION
    job = NewJob(person, "C1", text, key, way_in, thread_ts=message_ts, message_ts=message_ts, arrival=LATE)
    return replace(job, origin=ThreadOrigin.REQUEST, **changed)


def a_line(text: str, message_ts: str, **changed: Any) -> NewJob:
    """In Ben's direct message."""
    way_in, key = WayIn.DIRECT_MESSAGE, f"message/D1/{message_ts}"
    line = replace(a_mention(text, message_ts), channel_id="D1", way_in=way_in, source_key=key, may_be_reply=True)
    return replace(line, **changed)


async def late(world: CoreWorld, ts: str, text: str, written: str, **changed: Any) -> None:
    """Ben's reply, found in Slack's history."""
    await world.service.receive(replace(Reply(BEN, "C1", ts, written, text, arrival=LATE), **changed))
    await world.pass_time(10)


def questions(world: CoreWorld) -> list[tuple[str, str, RequestKind]]:
    asked = world.chat.private_as(HeldAsked)
    return [(each.person_id, each.text, each.wanted) for each in asked if each.because is HeldBecause.LATE]


async def answer(
    world: CoreWorld, kind: RequestKind = RequestKind.SEND_HELD, *, which: int = 0, person: Person = BEN, key: str = "a"
) -> None:
    """Presses a button of one of the questions."""
    request_id, now = world.chat.private_as(HeldAsked)[which].request_id, f"{world.clock.time:.6f}"
    await world.service.act(Action(person, kind, f"{key}/{which}", argument=request_id, at=now))
    await world.pass_time(20)


async def waiting(world: CoreWorld, person: Person = BEN) -> list[Request]:
    """What the person's Home lists."""
    held = await world.store.transact(lambda tx: tx.requests.waiting_for(person.id, limit=10))
    return [request for request, _ in held]


# -- replies ----------------------------------------------------------------------------------------------------------


async def test_a_late_reply_is_sent_once_its_writer_says_so(world: CoreWorld, ts: str) -> None:
    """Only the writer is asked, however often it is found, and only the writer can answer."""
    for _ in range(2):
        await late(world, ts, "Mend the index", at(1))
    assert (world.job_api.messages[JOB], questions(world)) == ([], [("UBEN", "Mend the index", RequestKind.FOLLOW_UP)])
    assert [each.text for each in await waiting(world)] == ["Mend the index"]
    assert await waiting(world, ANA) == []
    await answer(world, person=ANA, key="ana")
    assert world.job_api.messages[JOB] == []
    for number in range(2):
        await answer(world, key=f"a{number}")
    assert world.job_api.messages[JOB] == ["Mend the index"]
    assert world.chat.reactions[at(1)] is Reaction.ACCEPTED
    assert await waiting(world) == []


async def test_a_late_reply_that_was_recorded_live_is_known(world: CoreWorld, ts: str) -> None:
    await world.reply(ts, "Mend the index", at(1), BEN)
    await late(world, ts, "Mend the index", at(1))
    assert (world.job_api.messages[JOB], questions(world)) == (["Mend the index"], [])


async def test_a_late_reply_goes_to_the_job_that_is_alive(world: CoreWorld, ts: str) -> None:
    await late(world, ts, "Mend the index", at(1))
    world.job_api.show(JOB, "failed")
    await world.pass_time(60)
    await world.press(RequestKind.RETRY, ANA, "", key="r1", thread_id=(await world.thread(ts)).id)
    await world.pass_time(30)
    await answer(world)
    assert (world.job_api.messages[JOB], world.job_api.messages["job-2"]) == ([], ["Mend the index"])


async def test_a_late_reply_that_is_discarded_or_deleted_is_not_sent(world: CoreWorld, ts: str) -> None:
    await late(world, ts, "Discard me", at(1))
    await late(world, ts, "Delete me", at(2))
    await answer(world, RequestKind.DISCARD_HELD)
    await late(world, ts, "", at(2), edited_at=at(90), withdrawn=True)
    assert await waiting(world) == []
    for which in range(2):
        await answer(world, which=which, key="again")
    assert world.job_api.messages[JOB] == []
    assert world.chat.answers() == ["held_discarded", "nothing_new", "nothing_new"]


@pytest.mark.parametrize("arrival", list(Arrival))
async def test_an_edited_late_reply_is_asked_about_again(world: CoreWorld, ts: str, arrival: Arrival) -> None:
    """And sent in its newest words, once."""
    await late(world, ts, "Mend the index", at(1))
    await late(world, ts, "Mend the glossary", at(1), edited_at=at(60), arrival=arrival)
    assert [text for _, text, _ in questions(world)] == ["Mend the index", "Mend the glossary"]
    await answer(world)
    assert world.job_api.messages[JOB] == ["Mend the glossary"]


async def test_a_late_edit_changes_what_is_on_its_way_and_is_offered_for_what_was_sent(
    world: CoreWorld, ts: str
) -> None:
    """As a live one is: nothing is sent because of it that would not have been sent anyway."""
    await world.reply(ts, "Sent", at(1), BEN)
    await world.pass_time(10)
    await world.reply(ts, "Waiting", at(2), BEN)
    for text, written in (("Sent, mended", at(1)), ("Waiting, mended", at(2))):
        await world.service.revise(Reply(BEN, "C1", ts, written, text, edited_at=at(60), arrival=LATE))
    await world.pass_time(20)
    assert (world.job_api.messages[JOB], questions(world)) == (["Sent", "Waiting, mended"], [])
    assert ("UBEN", "reply_edited") in world.chat.private_kinds()


async def test_a_late_edit_does_not_send_what_was_taken_back(world: CoreWorld, ts: str) -> None:
    await world.service.receive(Reply(BEN, "C1", ts, at(1), "Mend the index"))
    await world.service.revise(Reply(BEN, "C1", ts, at(1), "", edited_at=at(2), withdrawn=True))
    await late(world, ts, "Mend it after all", at(1), edited_at=at(60))
    assert (world.job_api.messages[JOB], len(questions(world))) == ([], 1)
    await answer(world)
    assert world.job_api.messages[JOB] == ["Mend it after all"]


async def test_late_words_between_people_and_of_outsiders_ask_nothing(world: CoreWorld, ts: str) -> None:
    """Somebody of another workspace is refused, and emoji mean nothing here."""
    await late(world, ts, ":+1:", at(1))
    await late(world, ts, "Mend the index", at(2), person=EVA)
    assert (world.job_api.messages[JOB], questions(world)) == ([], [])
    assert [refused.person_id for refused in world.chat.private_as(RequestRefused)] == ["UEVA"]


async def test_who_may_not_any_more_is_refused_at_the_answer(world: CoreWorld, ts: str) -> None:
    await late(world, ts, "Mend the index", at(1))
    world.reading.members["UBEN"] = Member("UBEN", "Ben", "T1", is_guest=True)
    await answer(world)
    assert (world.job_api.messages[JOB], len(world.chat.private_as(RequestRefused))) == ([], 1)


async def test_a_stop_withdraws_a_late_reply_too(world: CoreWorld, ts: str) -> None:
    """Its writer is asked again, with the reason."""
    await late(world, ts, "Mend the index", at(1))
    await world.service.receive(Reply(ANA, "C1", ts, at(50), "", word=ThreadWord.STOP))
    await world.pass_time(20)
    assert world.chat.private_as(HeldAsked)[-1].because is HeldBecause.STOPPED
    await world.pass_time(40)
    await answer(world)
    assert world.job_api.messages[JOB] == ["Mend the index"]


# -- words for Pagehand -----------------------------------------------------------------------------------------------


async def test_a_late_stop_withdraws_nothing_until_its_writer_says_so(world: CoreWorld, ts: str) -> None:
    """Then it is a stop of now."""
    await late(world, ts, "", at(5), word=ThreadWord.STOP)
    await world.reply(ts, "Mend the index", at(1), ANA)
    await world.pass_time(10)
    assert (world.job_api.messages[JOB], world.job_api.cancelled) == (["Mend the index"], [])
    assert questions(world) == [("UBEN", "", RequestKind.STOP)]
    await world.reply(ts, "and the glossary", at(6), ANA)
    await answer(world)
    await world.pass_time(30)
    assert (world.job_api.messages[JOB], world.job_api.cancelled) == (["Mend the index"], [JOB])
    assert world.chat.private_as(HeldAsked)[-1].text == "and the glossary"
    assert await waiting(world) == []


async def test_a_late_stop_needs_no_answer_after_another_stop(world: CoreWorld, ts: str) -> None:
    await late(world, ts, "", at(5), word=ThreadWord.STOP)
    await world.service.receive(Reply(ANA, "C1", ts, at(50), "", word=ThreadWord.STOP))
    await world.pass_time(20)
    assert await waiting(world) == []


@pytest.mark.parametrize(
    ("word", "outcome"),
    [(ThreadWord.MUTE, ["muted"]), (ThreadWord.RETRY, ["not_to_be_retried"]), (ThreadWord.STOP, [])],
)
async def test_a_late_word_is_done_or_left_undone(
    world: CoreWorld, ts: str, word: ThreadWord, outcome: list[str]
) -> None:
    for written in (at(5), at(6)):
        await late(world, ts, "", written, word=word)
    assert world.chat.answers() == []
    await answer(world, RequestKind.DISCARD_HELD, which=0)
    await answer(world, which=1)
    assert world.chat.answers() == ["left_undone", *outcome]
    assert world.job_api.cancelled == [JOB] * (word is ThreadWord.STOP)


async def test_a_late_question_about_the_state_is_answered(world: CoreWorld, ts: str) -> None:
    """It changes nothing."""
    await late(world, ts, "", at(5), word=ThreadWord.STATUS)
    assert (len(world.chat.private_as(StatusRequested)), questions(world)) == (1, [])


# -- jobs -------------------------------------------------------------------------------------------------------------


async def begin(world: CoreWorld, way: str, ts: str) -> None:
    """A late message that asks for a job."""
    in_thread = Reply(BEN, "C1", at(0.5), at(1), "Write a page", mentions_us=True, arrival=LATE)
    match way:
        case "a mention":
            await world.service.start(a_mention("Write a page", at(1)))
        case "a mention in a thread":
            await world.service.receive(in_thread)
        case "new":
            await world.service.receive(replace(in_thread, thread_ts=ts, word=ThreadWord.NEW))
        case _:
            await world.service.start(a_line("Write a page", at(1)))
    await world.pass_time(30)


@pytest.mark.parametrize("way", ["a mention", "a mention in a thread", "new", "a direct message"])
@pytest.mark.parametrize("yes", [True, False])
async def test_a_late_request_starts_nothing_before_its_writer_says_so(
    world: CoreWorld, ts: str, way: str, *, yes: bool
) -> None:
    """Nothing is posted until then, and nothing at all after a no."""
    world.chat.public.add("D1")
    posts = len(world.chat.messages)
    await begin(world, way, ts)
    assert (world.job_api.created, len(world.chat.messages)) == (["Do it"], posts)
    assert questions(world) == [("UBEN", "Write a page", RequestKind.START)]
    await answer(world, RequestKind.SEND_HELD if yes else RequestKind.DISCARD_HELD)
    assert world.job_api.created == ["Do it", *["Write a page"] * yes]
    assert (len(world.chat.messages) > posts) is yes
    assert await waiting(world) == []
    await answer(world, key="again")
    assert len(world.job_api.created) == 1 + yes


async def test_a_late_request_can_be_edited_and_deleted(world: CoreWorld) -> None:
    """Neither posts anything, and an edit is asked about."""
    await world.service.start(a_mention("Write a page", at(1)))
    await world.service.start(a_mention("Write two", at(2)))
    await world.settle()
    for text, written in (("Write a short page", at(1)), ("", at(2))):
        edit = Reply(BEN, "C1", "", written, text, edited_at=at(60), withdrawn=not text, mentions_us=bool(text))
        await world.service.revise(edit)
    await world.pass_time(30)
    assert (world.job_api.created, world.chat.messages) == ([], [])
    assert [text for _, text, _ in questions(world)] == ["Write a page", "Write two", "Write a short page"]
    for which in range(2):
        await answer(world, which=which)
    assert world.job_api.created == ["Write a short page"]


async def test_a_late_request_without_a_project_asks_which_after_the_yes(world: CoreWorld) -> None:
    world.projects = Projects((Project("guides"), Project("manual")))
    world.assemble()
    await world.service.start(a_mention("Write a page", at(1)))
    await world.pass_time(30)
    assert world.chat.private_as(ProjectAsked) == []
    await answer(world)
    assert [asked.person_id for asked in world.chat.private_as(ProjectAsked)] == ["UBEN"]


async def test_a_late_line_in_a_direct_message_asks_what_it_is(world: CoreWorld) -> None:
    """While a job is running there, that is the question, and there is no second one."""
    world.chat.public.add("D1")
    await world.service.start(a_line("Do it", at(1), arrival=Arrival.LIVE))
    await world.pass_time(10)
    await world.service.start(a_line("and more", at(2)))
    await world.pass_time(10)
    assert (len(world.chat.private_as(JobOrReplyAsked)), questions(world)) == (1, [])
    assert world.job_api.created == ["Do it"]


# -- the reminder -----------------------------------------------------------------------------------------------------


def reminders(world: CoreWorld) -> list[str]:
    return [each.text for each in world.chat.private_as(HeldAsked) if each.asked_on is Surface.HOME]


async def test_an_unanswered_question_comes_once_more_as_a_direct_message(world: CoreWorld, ts: str) -> None:
    """After an hour, with the words of then; and it delays nothing in the thread meanwhile."""
    await late(world, ts, "Mend the index", at(1))
    await late(world, ts, "Mend the glossary", at(1), edited_at=at(30))
    world.job_api.show(JOB, "completed")
    await world.pass_time(60)
    assert "job_finished" in [message.kind for message in world.chat.messages]
    assert reminders(world) == []
    await world.pass_time(3_600)
    assert reminders(world) == ["Mend the glossary"]
    await world.pass_time(2 * DAY)
    assert len(reminders(world)) == 1
    await answer(world)
    assert world.job_api.messages[JOB] == ["Mend the glossary"]


@pytest.mark.parametrize("kind", [RequestKind.SEND_HELD, RequestKind.DISCARD_HELD])
async def test_an_answered_question_has_no_reminder(world: CoreWorld, ts: str, kind: RequestKind) -> None:
    await late(world, ts, "Mend the index", at(1))
    await answer(world, kind)
    await world.pass_time(4_000)
    assert reminders(world) == []


async def test_a_question_that_nobody_answers_expires(world: CoreWorld, ts: str) -> None:
    await late(world, ts, "Mend the index", at(1))
    await late(world, ts, "", at(5), word=ThreadWord.STOP, person=ANA)
    world.clock.advance((HELD_DAYS + 1) * DAY)
    await RetentionSweeper(world.store, days=90.0).sweep()
    await world.settle()
    assert await waiting(world) == await waiting(world, ANA) == []
    assert world.chat.answers() == ["held_expired", "held_expired"]
    await answer(world)
    assert world.job_api.messages[JOB] == []
