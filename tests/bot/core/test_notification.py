"""Who gets a message that cannot be posted in its place, and what is posted in a job's thread."""

import pytest
from support.worlds.core_world import ANA, EVA, CoreWorld

from bot.domain.delivery import MAX_FAULTS, person_mentioned
from bot.domain.projects import ChannelSettings
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import RequestKind, WayIn
from bot.domain.threads.thread import FollowUpCounts
from bot.errors import ChatNotAllowed, ChatRejected, ChatUncertain, ChatUnreachable, JobApiUnreachable
from bot.notices.answers import PostNotDelivered
from bot.notices.job import JobFinished
from bot.notices.notice import CardChanged

LINK = "https://git.example/1"


@pytest.mark.parametrize(("failed", "in_doubt"), [(4, 1), (0, 5)])
async def test_transient_doubts_do_not_lose_a_private_message(world: CoreWorld, failed: int, in_doubt: int) -> None:
    ts = await world.started()
    world.chat.fail(tell=[*[ChatUnreachable("down")] * failed, *[ChatUncertain("timeout")] * in_doubt])
    await world.reply(ts, "hack", "5.1", EVA, wait=120)
    assert world.chat.private_kinds() == [("UEVA", "request_refused")]


async def test_a_private_message_in_doubt_is_retried_for_a_minute(world: CoreWorld) -> None:
    world.chat.fail(tell=[ChatUncertain("timeout")] * 99)
    await world.ask(NewJob(ANA, "CPRIVATE", "Do it", "k", WayIn.COMMAND), wait=150)
    tries = world.chat.calls.count("tell")
    assert 5 <= tries <= 10
    await world.pass_time(600)
    assert world.chat.calls.count("tell") == tries


@pytest.mark.first(error=3)
@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (ChatUnreachable("not now"), 6),
        (ChatRejected("restricted_action"), 1),
        pytest.param(KeyError("repository"), MAX_FAULTS, marks=pytest.mark.promise("isolated")),
        (ChatUncertain("not now"), 6),
        (ChatNotAllowed("not now"), 6),
    ],
    ids=repr,
)
async def test_a_failing_message_is_given_up_and_reported_to_the_asker(
    world: CoreWorld, caplog: pytest.LogCaptureFixture, error: Exception, attempts: int
) -> None:
    """At once if no retry can help; the thread continues."""
    world.assemble(max_attempts=6)
    ts = await world.started()
    world.chat.fail(post=error)
    before = world.chat.calls.count("post")
    await world.show("completed", LINK, wait=400)
    assert world.chat.calls.count("post") - before == attempts
    (told,) = world.chat.private_as(PostNotDelivered)
    assert (told.person_id, told.post) == ("UANA", JobFinished(LINK, new=True, person_id="UANA"))
    assert "(job_finished) is given up" in caplog.text
    world.chat.recover()
    await world.reply(ts, "more", "1700000900.000100", wait=120)
    assert world.chat.said(ts) == ["job_started", "job_active_again"]


IN_THREAD = NewJob(ANA, "C1", "Do it", "k1", WayIn.MENTION, thread_ts="1.1", message_ts="1.2")


async def test_a_card_in_doubt_is_looked_for_in_the_thread_before_reposting(world: CoreWorld) -> None:
    """So that there is only one; since it was posted, the job may have been muted, stopped or withdrawn."""
    world.chat.lose(post_card=[ChatUncertain("timeout")])
    await world.ask(IN_THREAD, wait=30)
    assert world.chat.calls.count("find") == 1
    assert world.chat.calls.index("update_card") == world.chat.calls.index("find") + 1
    cards = [message for message in world.chat.messages if message.kind == "card_changed"]
    assert [card.thread_ts for card in cards] == ["1.1"]
    assert (await world.thread(cards[0].ts)).ts == "1.1"


async def test_nothing_waits_for_a_card_that_cannot_be_posted(world: CoreWorld) -> None:
    """People who have replied are told privately that there is no job, since there is no thread for it."""
    world.chat.fail(post_card=ChatRejected("thread_not_found"))
    await world.ask(IN_THREAD)
    await world.reply("1.1", "shorter", "1.3", wait=30)
    assert world.chat.messages == []
    assert world.job_api.created == []
    assert ("UANA", "card_not_posted") in world.chat.private_kinds()
    (told,) = world.chat.private_as(PostNotDelivered)
    assert told.post.kind == "request_rejected"


async def test_the_card_counts_sent_and_waiting_follow_ups(world: CoreWorld) -> None:
    """Even if nothing else on it changes."""
    ts = await world.started()
    thread_id = (await world.thread(ts)).id
    await world.reply(ts, "shorter", "5.1", wait=5)
    assert world.chat.follow_ups[thread_id] == FollowUpCounts(sent=1)
    world.job_api.faults = [JobApiUnreachable("down") for _ in range(200)]
    await world.reply(ts, "and longer", "6.1", wait=30)
    assert world.chat.follow_ups[thread_id] == FollowUpCounts(sent=1, waiting=1)
    world.job_api.faults = []
    await world.pass_time(300)
    assert world.chat.follow_ups[thread_id] == FollowUpCounts(sent=2)


async def test_a_job_that_ends_at_once_gets_one_post(world: CoreWorld) -> None:
    """Its start notice was held; the same after a follow-up."""
    world.configure(hold_back=5.0)
    ts = await world.started()
    await world.show("completed", LINK, wait=10)
    assert world.chat.said(ts) == ["job_finished"]


async def test_muting_drops_the_start_that_is_held(world: CoreWorld) -> None:
    world.configure(hold_back=5.0)
    ts = await world.started()
    await world.press_card(RequestKind.MUTE, ts, key="m1", wait=30)
    assert world.chat.said(ts) == []


async def test_a_job_with_three_follow_ups_gets_eight_posts_and_four_mentions(
    world: CoreWorld,
) -> None:
    """A line for each start, without a mention, and one post for each end, if each takes some time."""
    world.configure(hold_back=5.0)
    ts = await world.started()
    for turn in range(4):
        if turn:
            await world.reply(ts, f"and {turn}", f"{turn + 4}.1")
            world.job_api.show("job-1", "active")
        await world.pass_time(60)
        await world.show("completed", f"{LINK}/{turn}", wait=60)
    thread = await world.thread(ts)
    told = [
        (
            posted.kind,
            person_mentioned(thread, posted.message, ChannelSettings())
            if isinstance(posted.message, JobFinished)
            else "",
        )
        for posted in world.chat.messages
        if not isinstance(posted.message, CardChanged)
    ]
    begins, ends = [("job_active_again", "")], [("job_finished", "UANA")]
    assert told == [("job_started", ""), *ends, *(begins + ends) * 3]
