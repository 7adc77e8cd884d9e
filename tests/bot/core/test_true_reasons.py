"""Whatever blocks a request, the thread and the card show the same, true reason."""

import pytest
from support.worlds.core_world import ANA, BEN, CoreWorld

from bot.domain.jobs.job import Problem
from bot.domain.requests.request import RequestKind
from bot.errors import (
    JobApiBusy,
    JobApiFailed,
    JobApiRejected,
    JobApiUncertain,
    JobApiUnreadable,
)
from bot.notices.notice import Notice
from bot.notices.requests import RequestRejected, RequestUncertain
from bot.slack.rendering.cards import card
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.notices import messages

pytestmark = pytest.mark.promise("done or explained")

NO_LONGER = "no longer has this job"


async def card_of(world: CoreWorld, ts: str) -> str:
    """The card's current text in Slack."""
    return card(world.chat.cards[(await world.thread(ts)).id], MessageContext()).text


async def words_of(world: CoreWorld, ts: str) -> list[str]:
    """The texts of the thread's replies in Slack."""
    thread = await world.thread(ts)
    posted = [message for message in world.chat.messages if message.thread_ts == ts]
    notices = [Notice(at, message.key, thread.id, message.message, 0.0) for at, message in enumerate(posted)]
    return [messages(thread, notice, MessageContext())[0].text for notice in notices]


async def test_a_job_seen_archived_before_sending_is_not_asked(world: CoreWorld) -> None:
    ts = await world.started()
    await world.reply(ts, "More", "5.1")
    world.job_api.show("job-1", "archived")
    world.clock.advance(30)
    await world.step(world.outbox)
    await world.step(world.job_poller)
    await world.pass_time(30)
    assert world.job_api.messages == {}
    assert world.chat.said(ts) == ["job_started", "job_archived", "request_rejected"]
    assert "this job is archived" in (await words_of(world, ts))[-1]


@pytest.mark.first(status=2)
@pytest.mark.parametrize(
    ("status", "told"),
    [
        (402, "wasn't sent: the agent has to be paid for first. Ask whoever installed Pagehand to do that"),
        (403, "a firewall in front of the agent refused these words. Change them and send it again;"),
        (451, "was refused for legal reasons, for good."),
    ],
)
@pytest.mark.parametrize("kind", [RequestKind.START, RequestKind.FOLLOW_UP])
async def test_a_refusal_says_whose_move_it_is(world: CoreWorld, status: int, told: str, kind: RequestKind) -> None:
    """What only waits for a payment can be sent again, as it was."""
    refused = JobApiRejected("no", words="by <law>", status=status)
    if kind is RequestKind.START:
        world.job_api.faults = [refused]
        ts = await world.started()
        assert ("by &lt;law&gt;" in await card_of(world, ts)) is True
    else:
        ts = await world.started()
        world.job_api.faults = [refused]
        await world.reply(ts, "More", "5.1")
        world.clock.advance(1.2)
        await world.step(world.request_sender)
    await world.pass_time(30)
    said = next(words for words in await words_of(world, ts) if told in words)
    assert ">by &lt;law&gt;" in said
    assert world.job_api.created == [] or world.job_api.messages["job-1"] == []
    (rejected,) = world.chat.posted_as(RequestRejected)
    await world.press_send_again(ANA, rejected.request.request_id, key="click/1", wait=30)
    assert world.chat.answers() == ["sent_again" if status == 402 else "already_accepted"]
    sent = [*world.job_api.created, *world.job_api.messages.get("job-1", [])]
    assert sent == ["Do it", "More"][: (status == 402) + (kind is RequestKind.FOLLOW_UP)]
    assert ("wasn't sent" in await card_of(world, ts)) is False


async def test_a_failing_server_is_not_called_silent(world: CoreWorld) -> None:
    """It answered, but what it did before is unknown."""
    world.job_api.faults = [JobApiFailed("The job API failed (500).")]
    ts = await world.started()
    (told,) = await words_of(world, ts)
    assert "The agent's server failed, so I can't tell if this started." in told
    assert "press *Send again*" in told
    assert "I can't tell if this started" in await card_of(world, ts)


async def test_an_error_called_success_is_asked_about_in_its_words(world: CoreWorld) -> None:
    """It is not repeated, even if the server runs a repeated key once."""
    world.configure(idempotent=True)
    world.job_api.faults = [JobApiUnreadable("no id", words="out of credit")]
    ts = await world.started()
    await world.pass_time(100)
    (told,) = await words_of(world, ts)
    assert "The agent's server failed, so I can't tell if this started." in told
    assert ">out of credit" in told
    assert world.job_api.created == []


async def test_a_wrong_address_is_not_blamed_on_the_request(world: CoreWorld) -> None:
    world.job_api.faults = [JobApiRejected("308", status=308)]
    ts = await world.started()
    (refused,) = await words_of(world, ts)
    assert "redirects to another address" in refused
    assert "Ask whoever installed Pagehand" in refused
    assert "Change it" not in refused


@pytest.mark.full
@pytest.mark.parametrize("lasts", [False, True], ids=["once", "for good"])
async def test_a_404_to_a_message_and_the_card_always_agree(world: CoreWorld, *, lasts: bool) -> None:
    ts = await world.started()
    await world.reply(ts, "More", "5.1")
    world.clock.advance(1.2)
    await world.step(world.outbox)
    jobs = dict(world.job_api.jobs)
    world.job_api.jobs.clear()
    await world.step(world.request_sender)
    if not lasts:
        world.job_api.jobs.update(jobs)
    for _ in range(200):  # a request that is tried again just before two minutes have passed waits 75 s more
        world.clock.advance(1.0)
        await world.settle()
        told = any(NO_LONGER in words for words in await words_of(world, ts))
        shown = await card_of(world, ts)
        assert told == (NO_LONGER in shown) == ("Active" not in shown)
    told_of = {"job_disappeared", "request_rejected"} if lasts else set()
    assert world.chat.said(ts)[:1] == ["job_started"]
    assert set(world.chat.said(ts)[1:]) <= told_of
    assert ("request_rejected" in world.chat.said(ts)) is lasts
    assert world.job_api.messages == ({} if lasts else {"job-1": ["More"]})
    assert (NO_LONGER in await card_of(world, ts)) is lasts
    assert ((await world.thread(ts)).state.failure.problem is Problem.GONE) is lasts


async def test_a_start_beyond_the_quota_says_so_in_thread_and_card(world: CoreWorld) -> None:
    limited = JobApiBusy("429", words="100 uses an hour & no more", retry_after=1_200.0)
    world.job_api.faults = [limited]
    ts = await world.started()
    await world.settle()
    (told,) = await words_of(world, ts)
    for shown in (told, await card_of(world, ts)):
        assert "hourly limit is used up, at least until <!date^1700001240^{time}|22:34 UTC>" in shown
        assert "100 uses an hour &amp; no more" in shown
        assert "can't reach" not in shown
    await world.pass_time(1_300)
    assert world.chat.said(ts) == ["outage_started", "outage_ended", "job_started"]
    assert "limit" not in await card_of(world, ts)


async def test_a_press_delivered_twice_has_one_answer_and_one_effect(world: CoreWorld) -> None:
    world.job_api.after = [JobApiUncertain("timeout"), JobApiUncertain("timeout")]
    ts = await world.started()
    await world.pass_time(60)
    assert world.job_api.created == ["Do it"], "nobody has pressed yet"
    request = world.chat.posted_as(RequestUncertain)[-1].request.request_id
    await world.press_send_again(ANA, request, key="click/1")
    await world.press_send_again(ANA, request, key="click/1", wait=5)
    assert world.chat.said(ts) == ["request_uncertain", "request_uncertain"]
    await world.press_send_again(ANA, request, key="click/1", wait=5)
    assert world.job_api.created == ["Do it", "Do it"]
    assert world.chat.answers() == ["sent_again"]
    await world.press_send_again(BEN, request, key="click/2")
    await world.press_send_again(ANA, request, key="click/3", wait=5)
    assert world.chat.said(ts) == ["request_uncertain", "request_uncertain", "job_started"]
    assert world.chat.answers() == ["sent_again", "sent_again", "already_accepted"]
