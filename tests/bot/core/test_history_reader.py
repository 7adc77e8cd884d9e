"""What was missed is read in Slack's history within its limits, whatever Slack answers."""

from dataclasses import replace
from typing import Any

import pytest
from support.fakes.history import FakeHistory, FakeMissedEvents
from support.worlds.core_world import ANA, BEN, CoreWorld

from bot.domain.gaps.gap import DAY, MOST_MISSED, MOST_PAGES, WEEK, Gap, Listening
from bot.domain.gaps.past_message import PastMessage
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import Arrival, WayIn
from bot.errors import (
    ChatMissingScope,
    ChatNotInChannel,
    ChatRateLimited,
    ChatRejected,
    ChatUncertain,
)
from bot.notices.job import HistoryUnread
from bot.notices.questions import StopAsked
from bot.scheduler.history_reader import HistoryReader
from bot.scheduler.worker import WorkerSettings

BOT = "UBOT"


class Reading:
    """A history reader over the world's database."""

    def __init__(self, world: CoreWorld) -> None:
        self.world, self.history, self.events = world, FakeHistory(), FakeMissedEvents()
        self.reader = self.another("one")

    def another(self, owner: str) -> HistoryReader:
        settings = WorkerSettings(owner, self.world.clock, lease=30.0, call_timeout=8.0, on_commit=lambda _: None)
        reading = self.world.reading
        return HistoryReader(self.world.store, self.history, self.events, reading, settings, bot_user_id=BOT)

    @property
    def now(self) -> float:
        return self.world.clock.time

    def ts(self, ago: float) -> str:
        return f"{self.now - ago:.6f}"

    def write(self, channel: str, thread: str, words: str, ago: float, **changes: Any) -> PastMessage:
        message = PastMessage(self.ts(ago), ANA.id, words, **changes)
        self.history.written.setdefault((channel, thread), []).append(message)
        return message

    async def missed(self, channel: str = "", thread: str = "", *, since: float = 600.0, **changes: Any) -> Gap:
        gap = replace(Gap(channel, thread, self.now - since, self.now), **changes)
        await self.world.store.transact(lambda tx: tx.gaps.add([gap], newest=self.now))
        return gap

    async def read(self, reader: HistoryReader | None = None) -> None:
        """Reads until nothing is due."""
        reader = reader or self.reader
        while items := await reader.claim(10):
            for item in items:
                await reader.process(item, self.now)

    async def left(self) -> int:
        """Returns how many gaps are left, due or not."""
        self.world.clock.time += 10_000
        left = await self.world.store.transact(lambda tx: tx.gaps.claim("nobody", lease=0.0, limit=100))
        self.world.clock.time -= 10_000
        return len(left)


@pytest.fixture
def reading(world: CoreWorld) -> Reading:
    return Reading(world)


async def a_job(world: CoreWorld) -> Any:
    return await world.thread(await world.started("do"))


async def test_everything_is_read_once_the_newest_first_and_a_thread_in_order(reading: Reading) -> None:
    reading.history.ids = ("C1", "C2")
    root = reading.write("C2", "", f"<@{BOT}> do", 400, latest_reply=reading.ts(100))
    for ago, words in ((300, "one"), (200, "two"), (100, "three")):
        reading.write("C2", root.ts, words, ago)
    reading.write("C1", "", "hello", 200)
    await reading.missed()
    await reading.read()
    assert reading.events.words == [f"<@{BOT}> do", "one", "two", "three"]
    assert {missed.arrival for _, missed in reading.events.handled} == {Arrival.LIVE}
    assert await reading.left() == 0


async def test_two_instances_read_it_once(reading: Reading) -> None:
    reading.write("C1", "1.000001", "one", 100)
    await reading.missed("C1", "1.000001")
    (item,) = await reading.reader.claim(10)
    await reading.read(reading.another("two"))
    await reading.reader.process(item, reading.now)
    assert reading.events.words == ["one"]


async def test_whoever_lost_its_claim_hands_nothing_on(reading: Reading) -> None:
    reading.write("C1", "1.000001", "one", 100)
    await reading.missed("C1", "1.000001")
    (item,) = await reading.reader.claim(10)
    reading.world.clock.time += 31
    await reading.read(reading.another("two"))
    await reading.reader.process(item, reading.now)
    assert reading.events.words == ["one"]


@pytest.mark.parametrize(
    ("fault", "after"),
    [
        (ChatRateLimited("ratelimited", retry_after=70.0), 70.0),
        (ChatUncertain("no_answer_in_time"), 2.0),
    ],
    ids=["429", "no answer"],
)
async def test_it_is_read_later_if_slack_does_not_answer_now(reading: Reading, fault: Exception, after: float) -> None:
    reading.write("C1", "1.000001", "one", 100)
    await reading.missed("C1", "1.000001")
    reading.history.faults = [fault]
    await reading.read()
    reading.world.clock.time += after - 1
    await reading.read()
    assert reading.events.words == []
    reading.world.clock.time += 1
    await reading.read()
    assert reading.events.words == ["one"]
    assert reading.reader.warning() == ""


@pytest.mark.parametrize(
    "fault",
    [ChatRejected("channel_not_found"), ChatNotInChannel("not_in_channel"), ChatMissingScope(("groups:history",))],
    ids=str,
)
async def test_what_slack_does_not_show_is_one_line_in_log_and_health(
    reading: Reading, fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    reading.history.written["C1", "1.000001"] = []
    await reading.missed("C1", "1.000001")
    reading.history.faults = [fault]
    await reading.read()
    assert await reading.left() == 0
    lines = [record.getMessage() for record in caplog.records if "could not all be read" in record.getMessage()]
    assert lines == [reading.reader.warning()]
    reading.world.clock.time += DAY + 1
    assert reading.reader.warning() == ""


async def test_a_message_that_cannot_be_recorded_holds_up_the_others_for_three_attempts(reading: Reading) -> None:
    bad = reading.write("C1", "1.000001", "bad", 200)
    reading.write("C1", "1.000001", "good", 100)
    reading.events.bad = {bad.ts}
    await reading.missed("C1", "1.000001")
    for _ in range(3):
        await reading.read()
        reading.world.clock.time += 10
    assert reading.events.words == ["good"]
    assert await reading.left() == 0


async def test_replies_to_a_card_wait_until_it_is_known_which_job_it_is_of(reading: Reading) -> None:
    """It was posted, and the process died before it was told so."""
    world = reading.world
    await world.service.start(NewJob(ANA, "C1", "Do it", "k1", WayIn.COMMAND))
    await world.step(world.request_preparer)
    reading.write("C1", reading.ts(0), "one", 0)
    await reading.missed("C1", reading.ts(0))
    await reading.read()
    assert reading.events.words == []
    await world.settle()
    world.clock.time += 10
    await reading.read()
    assert reading.events.words == ["one"]


async def test_of_a_thread_with_ten_thousand_replies_a_bounded_number_is_handled(reading: Reading) -> None:
    thread = await a_job(reading.world)
    for number in range(10_000):
        reading.write(thread.channel_id, thread.ts, str(number), 500 - number / 100)
    await reading.missed(thread.channel_id, thread.ts)
    await reading.read()
    assert len(reading.events.handled) <= MOST_MISSED + reading.history.page_size
    assert reading.events.words[:2] == ["0", "1"]
    assert await told(reading.world, HistoryUnread) == [HistoryUnread(since=reading.now - 600, until=reading.now)]


async def test_of_a_channel_with_any_number_of_messages_a_bounded_number_is_read(reading: Reading) -> None:
    for number in range(6_000):
        reading.write("C1", "", "talk", 500 - number / 100)
    await reading.missed("C1")
    await reading.read()
    assert len(reading.history.asked) == MOST_PAGES
    assert "too much" in reading.reader.warning()


@pytest.mark.parametrize("since", [WEEK - DAY, WEEK + DAY])
async def test_a_job_thread_says_once_what_was_too_long_ago(reading: Reading, since: float) -> None:
    thread = await a_job(reading.world)
    await reading.missed(thread.channel_id, thread.ts, since=since)
    await reading.read()
    assert len(await told(reading.world, HistoryUnread)) == (since > WEEK)


async def test_a_reaction_for_a_stop_is_asked_about_once_while_the_job_is_at_work(reading: Reading) -> None:
    thread = await a_job(reading.world)
    card = replace(
        reading.write(thread.channel_id, thread.ts, "card", 5_000), ts=thread.card_ts, author_id=BOT, stops=(BEN.id,)
    )
    reading.history.written[thread.channel_id, thread.ts] = [replace(card, ts=thread.card_ts)]
    for _ in range(2):
        await reading.missed(thread.channel_id, thread.ts, since=reading.now)
        await reading.read()
    assert await told(reading.world, StopAsked) == [StopAsked(BEN.id)]


async def test_what_is_already_on_a_card_at_the_first_start_is_not_asked_about(reading: Reading) -> None:
    thread = await a_job(reading.world)
    card = PastMessage(thread.card_ts, BOT, "card", stops=(BEN.id,))
    reading.history.written[thread.channel_id, thread.ts] = [card]
    await reading.missed(thread.channel_id, thread.ts, since=reading.now, first=True)
    await reading.read()
    await reading.missed(thread.channel_id, thread.ts, since=reading.now)
    await reading.read()
    assert await told(reading.world, StopAsked) == []


async def test_the_first_start_reads_no_channels(reading: Reading) -> None:
    reading.history.ids = ("C1",)
    await reading.world.store.transact(lambda tx: tx.gaps.listens("one", Listening(0.0, 0.0)))
    await reading.read()
    assert reading.history.asked == []


async def told(world: CoreWorld, kind: type[Any]) -> list[Any]:
    """Returns the messages of this kind that are owed to the only thread, or were delivered."""
    await world.settle()
    return [
        each
        for each in (*(post.message for post in world.chat.messages), *world.chat.private)
        if isinstance(each, kind)
    ]
