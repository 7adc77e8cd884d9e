"""A stop withdraws what was written before it, is done when the job has ended, and its outcome is posted once."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

import pytest
from support.worlds.core_world import ANA, BEN, EVA, CoreWorld

from bot.domain.commands import ThreadWord
from bot.domain.jobs.stopping import STOP_WORDS
from bot.domain.messages import SlackFile
from bot.domain.people import Member
from bot.domain.projects import ReplyMode
from bot.domain.requests.new_jobs import request_id, source_key_of
from bot.domain.requests.request import (
    Action,
    Attachments,
    HeldBecause,
    Person,
    Reply,
    RequestKind,
    RequestState,
    WayIn,
)
from bot.errors import ChatUnreachable, JobApiRejected, JobApiUncertain, JobApiUnreachable
from bot.jobapi.models import Job, Requester
from bot.notices.job import AgentAskedToStop, JobFinished, JobStillStopping, JobStopped
from bot.notices.notice import Reaction
from bot.notices.questions import HeldAsked, ReplyHeld
from bot.notices.requests import RequestRejected

pytestmark = pytest.mark.promise("stops")

JOB, LINK = "job-1", "https://example.org/pull/1"


def at(seconds: float) -> str:
    return f"{1_700_000_100 + seconds:.6f}"


@pytest.fixture
async def ts(world: CoreWorld) -> str:
    """A running job, at a job API that can cancel."""
    world.job_api.cancels = True
    return await world.started()


async def stop(
    world: CoreWorld,
    ts: str,
    *,
    person: Person = ANA,
    key: str = "stop",
    said: str = "",
    wait: float | None = None,
) -> None:
    """Somebody stops the job: recorded and prepared."""
    thread, way_in = await world.thread(ts), WayIn.WORD if said else WayIn.BUTTON
    action = Action(person, RequestKind.STOP, key, channel_id="C1", thread_id=thread.id, at=said, way_in=way_in)
    await world.service.act(action)
    await world.step(world.request_preparer)
    world.clock.advance(1.5)
    await world.wait(wait)


async def pressed(world: CoreWorld, ts: str, when: str) -> None:
    thread = await world.thread(ts)
    await world.service.act(Action(ANA, RequestKind.STOP, f"press/{when}", thread_id=thread.id, at=when))
    await world.step(world.request_preparer)


async def reacted(world: CoreWorld, ts: str, when: str) -> None:
    reaction = Action(ANA, RequestKind.STOP, f"reaction/{when}", channel_id="C1", card_ts=ts, at=when)
    await world.service.act(replace(reaction, way_in=WayIn.REACTION))
    await world.step(world.request_preparer)


async def said(world: CoreWorld, ts: str, when: str, *, wait: float | None = None) -> None:
    await world.receive(Reply(ANA, "C1", ts, when, "", word=ThreadWord.STOP))
    await world.step(world.request_preparer)
    await world.wait(wait)


WAYS = {"a button": pressed, "a reaction": reacted, "a word": said}


class Slow:
    """A job API that accepts a cancel at once, and ends the job only when told to."""

    def __init__(self, world: CoreWorld) -> None:
        self._job_api, self.keys = world.job_api, list[str]()
        world.job_api.cancel = self.cancel  # type: ignore[method-assign]  # the fake's own

    async def cancel(
        self, project: str, job_id: str, *, idempotency_key: str, requester: Requester | None = None
    ) -> Job:
        self.keys.append(idempotency_key)
        return self._job_api.jobs[job_id]


async def test_a_stop_cancels_a_cancellable_job(world: CoreWorld, ts: str) -> None:
    """Its end is posted as that of the stop, and not also as an ordinary one."""
    await stop(world, ts, person=BEN, said=at(1), wait=60)
    assert world.job_api.cancelled == [JOB]
    assert world.chat.said() == ["job_started", "job_stopped"]
    (message,) = world.chat.posted_as(JobStopped)
    assert (message.person_id, message.link) == (BEN.id, "")
    assert world.chat.reactions[at(1)] is Reaction.ACCEPTED


async def test_a_pull_request_from_before_the_stop_is_reported_with_its_end(world: CoreWorld, ts: str) -> None:
    """One that comes late is posted as usual."""
    world.job_api.show(JOB, "active", LINK)
    await stop(world, ts, wait=60)
    (message,) = world.chat.posted_as(JobStopped)
    assert (message.link, message.new) == (LINK, True)
    assert world.chat.said() == ["job_started", "job_stopped"]


async def test_what_is_written_during_a_stop_is_sent_after_it(world: CoreWorld, ts: str) -> None:
    """Once the job has ended."""
    slow = Slow(world)
    await stop(world, ts, wait=0)
    await world.reply(ts, "Meanwhile", at(2), wait=5)
    assert len(slow.keys) > 1
    assert len(set(slow.keys)) == len(slow.keys), "the same key would get the same answer"
    assert world.job_api.messages[JOB] == []
    await world.show("completed", wait=5)
    assert world.job_api.messages[JOB] == ["Meanwhile"]
    assert world.chat.said()[:2] == ["job_started", "job_stopped"]
    await world.show("completed", LINK, wait=60)
    assert world.chat.said()[-1] == "job_finished"
    (message,) = world.chat.posted_as(JobFinished)
    assert not message.again, "it was stopped before, and not finished"


async def test_a_stop_waits_for_a_request_in_flight(world: CoreWorld, ts: str) -> None:
    """It stops work that began before it."""
    await world.reply(ts, "Before", at(1))
    await world.step(world.request_preparer)
    world.clock.advance(1.5)
    being_sent = await world.claim(world.request_sender)
    await stop(world, ts)
    assert await world.request_sender.claim(10) == []
    await being_sent.process(wait=5)
    assert (world.job_api.messages[JOB], world.job_api.cancelled) == (["Before"], [JOB])


async def test_an_end_polled_first_is_reported_as_stopped(world: CoreWorld, ts: str) -> None:
    """Even before the cancel is answered."""
    await stop(world, ts)
    being_sent = await world.claim(world.request_sender)
    world.job_api.show(JOB, "completed", LINK)
    world.clock.advance(5)
    await world.step(world.job_poller)
    await being_sent.process(wait=60)
    assert world.chat.said() == ["job_started", "job_stopped"]


@pytest.mark.first(killed=1)
@pytest.mark.parametrize("killed", [True, False], ids=["its process died", "its answer was lost"])
async def test_a_cancel_in_doubt_is_repeated(world: CoreWorld, ts: str, *, killed: bool) -> None:
    """However the job API handles repeated keys: a cancel is safe to repeat, so nobody is asked."""
    await stop(world, ts)
    if killed:
        await world.request_sender.claim(10)
        world.restart("two")
    else:
        world.job_api.after = [JobApiUncertain("timeout")]
    await world.pass_time(60)
    assert world.job_api.cancelled
    assert world.chat.said() == ["job_started", "job_stopped"]


async def test_a_stop_that_did_not_arrive_does_not_claim_the_end(world: CoreWorld, ts: str) -> None:
    """The job finished while it was out of reach, so there was nothing left to stop."""
    await stop(world, ts)
    world.job_api.faults = [JobApiUnreachable("down")]
    await world.step(world.request_sender)
    world.job_api.show(JOB, "completed", LINK)
    world.clock.advance(4.0)
    await world.step(world.job_poller)
    await world.pass_time(60)
    assert world.chat.said() == ["job_started", "job_finished"]
    assert world.job_api.cancelled == []
    assert world.chat.answers() == ["nothing_to_stop"]


@pytest.mark.full
async def test_a_stop_without_a_visible_end_blocks_nothing_for_good(world: CoreWorld, ts: str) -> None:
    """It is posted, and so is the end when it comes."""
    slow = Slow(world)
    await stop(world, ts, wait=60)
    assert world.chat.said() == ["job_started", "job_still_stopping"]
    asked = len(slow.keys)
    await world.show("completed", wait=60)
    assert world.chat.said() == ["job_started", "job_still_stopping", "job_stopped"]
    assert len(slow.keys) == asked
    assert [type(each.message) for each in world.chat.messages].count(JobStillStopping) == 1


async def test_a_refused_stop_is_reported_and_the_job_continues(world: CoreWorld, ts: str) -> None:
    """The end is like any other."""
    await stop(world, ts)
    world.job_api.faults = [JobApiRejected("405")]
    await world.step(world.request_sender)
    await world.pass_time(20)
    await world.show("completed", LINK, wait=60)
    assert world.chat.said() == ["job_started", "request_rejected", "job_finished"]


async def test_without_cancel_the_agent_is_asked_to_stop(world: CoreWorld, ts: str) -> None:
    """The thread is told that this is all Pagehand can do; the end is posted when it comes."""
    world.job_api.cancels = False
    await world.reply(ts, "Waits", at(1))
    await stop(world, ts, person=BEN)
    await world.step(world.request_sender)
    assert world.job_api.messages[JOB] == [STOP_WORDS]
    await world.pass_time(20)
    assert world.job_api.messages[JOB] == [STOP_WORDS, "Waits"]
    await world.show("completed", wait=60)
    assert world.chat.said() == ["job_started", "agent_asked_to_stop", "job_finished"]
    (message,) = world.chat.posted_as(AgentAskedToStop)
    assert message.person_id == BEN.id


async def test_an_agent_that_may_have_been_asked_is_not_asked_again(world: CoreWorld, ts: str) -> None:
    """A message that may have arrived is never repeated automatically."""
    world.job_api.cancels = False
    await stop(world, ts)
    world.job_api.after = [JobApiUncertain("timeout")]
    await world.pass_time(60)
    assert world.job_api.messages[JOB] == [STOP_WORDS]
    assert "request_uncertain" in world.chat.said()


# -- what a stop withdraws --------------------------------------------------------------------------------------------


def asked(world: CoreWorld) -> list[tuple[str, str]]:
    """Who was asked whether to send something anyway."""
    questions = world.chat.private_as(HeldAsked)
    return [(each.person_id, each.text) for each in questions if each.because is HeldBecause.STOPPED]


def request_of(world: CoreWorld, text: str) -> str:
    return next(each.request_id for each in world.chat.private_as(HeldAsked) if each.text == text)


async def anyway(world: CoreWorld, text: str, *, person: Person = BEN, key: str = "anyway") -> None:
    await world.press(RequestKind.SEND_HELD, person, request_of(world, text), key=key, wait=20)


async def not_prepared(world: CoreWorld, ts: str) -> None:
    world.reading.faults = [ChatUnreachable("hiccup")]
    await world.receive(Reply(BEN, "C1", ts, at(1), "Before"))
    await world.step(world.request_preparer)


async def prepared(world: CoreWorld, ts: str) -> None:
    await world.reply(ts, "Before", at(1), BEN)


async def asked_about(world: CoreWorld, ts: str) -> None:
    """Whether it is for the agent."""
    world.count_replies(ReplyMode.PARTICIPANTS)
    await world.reply(ts, "Before", at(1), BEN, wait=0)


async def with_a_file(world: CoreWorld, ts: str) -> None:
    """Which is still to be uploaded."""
    world.job_api.files_taken = True
    file = SlackFile("F1", "page.bin", "application/octet-stream", 10)
    await world.receive(Reply(BEN, "C1", ts, at(1), "Before", attachments=Attachments(files=(file,))))
    await world.prepare()


async def merged(world: CoreWorld, ts: str) -> None:
    """With another one, in a call that did not arrive."""
    world.configure(merge_seconds=3.0)
    await world.reply(ts, "Before", at(1), BEN)
    await world.reply(ts, "as well", at(2), BEN)
    world.clock.advance(5)
    world.job_api.faults = [JobApiUnreachable("down")]
    await world.step(world.request_sender)


Written = Callable[[CoreWorld, str], Awaitable[None]]


@pytest.mark.first(written=4)
@pytest.mark.parametrize(
    ("written", "way"),
    [
        (prepared, "a button"),
        (prepared, "a reaction"),
        *((written, "a word") for written in (not_prepared, prepared, asked_about, with_a_file, merged)),
    ],
)
async def test_a_stop_withdraws_what_was_written_before(world: CoreWorld, ts: str, written: Written, way: str) -> None:
    """Its writer is asked whether to send it anyway, and it is sent only then."""
    await written(world, ts)
    await WAYS[way](world, ts, at(50))
    await world.pass_time(120)
    assert world.job_api.messages[JOB] == []
    assert world.job_api.cancelled == [JOB]
    assert asked(world) == [("UBEN", text) for text in (["Before", "as well"] if written is merged else ["Before"])]
    assert at(1) not in world.chat.reactions
    await anyway(world, "Before")
    assert [message.splitlines()[0] for message in world.job_api.messages[JOB]] == ["Before"]
    assert world.chat.reactions[at(1)] is Reaction.ACCEPTED


@pytest.mark.parametrize("is_sent", [True, False])
async def test_a_reply_that_was_being_prepared_when_a_stop_withdrew_it_is_sent_once(
    world: CoreWorld, ts: str, *, is_sent: bool
) -> None:
    """Slack is slow to tell what it takes; meanwhile its writer has it sent anyway, by the same process."""
    await world.receive(Reply(BEN, "C1", ts, at(1), "Before"))
    being_prepared = await world.claim(world.request_preparer)
    await said(world, ts, at(50), wait=30)
    await world.press(RequestKind.SEND_HELD, BEN, request_of(world, "Before"), key="anyway")
    while not (being_sent := [*await world.request_sender.claim(10)]):
        await world.step(world.request_preparer)
        world.clock.advance(0.5)
    send = partial(world.request_sender.process, being_sent[0], world.clock.monotonic())
    for each in (send, being_prepared.process) if is_sent else (being_prepared.process, send):
        await each()
    await world.pass_time(60)
    assert world.job_api.messages[JOB] == ["Before"]


@pytest.mark.first(delivered=1)
@pytest.mark.parametrize("delivered", ["before the stop is checked", "after it"])
async def test_a_reply_slack_delivers_late_is_withdrawn_by_a_stop(world: CoreWorld, ts: str, delivered: str) -> None:
    """What counts is when it was written; a reply that was written after the stop is sent."""
    world.reading.faults = [ChatUnreachable("hiccup")] * (delivered == "before the stop is checked")
    await said(world, ts, at(50))
    for text, written in (("Before", at(1)), ("After", at(51))):
        await world.receive(Reply(BEN, "C1", ts, written, text))
    await world.pass_time(60)
    assert (world.job_api.messages[JOB], asked(world)) == (["After"], [("UBEN", "Before")])


@pytest.mark.first(written=2)
@pytest.mark.parametrize("written", ["before the stop is recorded", "after it", "and taken back before it"])
async def test_nobody_is_asked_about_a_reply_that_will_be_refused(world: CoreWorld, ts: str, written: str) -> None:
    reply = Reply(EVA, "C1", ts, at(1), "Before")
    if written != "after it":
        await world.receive(reply)
    if written == "and taken back before it":
        await world.revise(replace(reply, text="", edited_at=at(2), withdrawn=True))
    await said(world, ts, at(50))
    if written == "after it":
        await world.receive(reply)
    if written == "and taken back before it":
        await world.revise(replace(reply, edited_at=at(3)))
    await world.pass_time(60)
    assert (world.job_api.messages[JOB], asked(world)) == ([], [])
    refused = await world.store.transact(lambda tx: tx.requests.get(request_id(source_key_of(reply))))
    assert refused is not None
    assert refused.state is RequestState.REJECTED


@pytest.mark.first(fault=1)
@pytest.mark.parametrize("fault", ["down", "paused past its lease"])
async def test_a_reply_that_comes_back_unsent_after_a_stop_is_withdrawn(world: CoreWorld, ts: str, fault: str) -> None:
    """It was on its way when the job was stopped. What is sent anyway is not withdrawn again."""
    await world.reply(ts, "Before", at(1), BEN)
    world.clock.advance(1.5)
    being_sent = await world.claim(world.request_sender)
    await said(world, ts, at(50))
    if fault == "down":
        world.job_api.faults = [JobApiUnreachable(fault)]
    else:
        world.clock.advance(25)
    await being_sent.process(wait=60)
    assert (world.job_api.messages[JOB], asked(world)) == ([], [("UBEN", "Before")])
    world.job_api.faults_of["send_message"] = [JobApiUnreachable("down")]
    await anyway(world, "Before")
    assert (world.job_api.messages[JOB], len(asked(world))) == (["Before"], 1)


async def test_a_reply_that_may_have_arrived_is_repeated_in_spite_of_a_stop(world: CoreWorld, ts: str) -> None:
    """At a job API that does a repeated request once, and before the stop, which ends its work."""
    world.configure(idempotent=True)
    await world.reply(ts, "Before", at(1), BEN)
    world.clock.advance(1.5)
    being_sent = await world.claim(world.request_sender)
    await said(world, ts, at(50))
    world.job_api.faults = [JobApiUncertain("no answer")]
    await being_sent.process(wait=60)
    assert (world.job_api.messages[JOB], world.job_api.cancelled, asked(world)) == (["Before"], [JOB], [])


async def test_a_refused_stop_withdraws_nothing(world: CoreWorld, ts: str) -> None:
    world.reading.members["UANA"] = Member("UANA", "Ana", "T1", is_guest=True)
    await world.receive(Reply(BEN, "C1", ts, at(1), "Before"))
    await said(world, ts, at(50), wait=30)
    assert (world.job_api.messages[JOB], asked(world)) == (["Before"], [])


@pytest.mark.full
async def test_a_stop_of_a_job_that_does_nothing_says_what_it_did(world: CoreWorld, ts: str) -> None:
    """Only if something was waiting; there is no call to the job API."""
    await world.show("completed", wait=120)
    await world.reply(ts, "Before", at(1), BEN)
    await said(world, ts, at(50), wait=30)
    assert (world.job_api.messages[JOB], world.job_api.cancelled) == ([], [])
    assert (world.chat.answers(), asked(world)) == (["waiting_stopped"], [("UBEN", "Before")])
    await said(world, ts, at(60), wait=30)
    assert world.chat.answers() == ["waiting_stopped", "nothing_to_stop"]


async def test_a_press_before_a_stop_sends_nothing_after_it(world: CoreWorld, ts: str) -> None:
    """The press waited for Slack when the job was stopped; pressed again, it counts."""
    await asked_about(world, ts)
    (held,) = world.chat.private_as(ReplyHeld)
    world.reading.faults = [ChatUnreachable("hiccup")]
    await world.press(RequestKind.SEND_HELD, BEN, held.request_id, key="p1")
    world.clock.advance(0.1)
    await said(world, ts, at(50), wait=60)
    assert (world.job_api.messages[JOB], world.chat.answers()) == ([], ["stopped_since"])
    await anyway(world, "Before")
    assert world.job_api.messages[JOB] == ["Before"]


async def test_a_job_stopped_before_it_was_sent_keeps_its_replies_for_a_retry(world: CoreWorld) -> None:
    world.job_api.faults = [JobApiUnreachable("down")] * 100
    ts = await world.started()
    await world.reply(ts, "Before", at(1), BEN)
    await said(world, ts, at(50))
    world.job_api.faults.clear()
    await world.pass_time(30)
    assert (world.job_api.created, asked(world)) == ([], [("UBEN", "Before")])
    assert [(each.reason, each.stopped_by) for each in world.chat.posted_as(RequestRejected)] == [("stopped", "UANA")]
    await world.press_card(RequestKind.RETRY, ts, key="r1", wait=30)
    await anyway(world, "Before")
    assert world.job_api.messages[JOB] == ["Before"]
