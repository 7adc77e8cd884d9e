"""What was written while Pagehand was away is not carried out by itself: its writer is asked once, privately, and
reminded once."""

from dataclasses import replace
from typing import Any

import pytest
from support.fakes.history import FakeHistory, FakeMissedEvents
from support.worlds.core_world import ANA, BEN, EVA, CoreWorld

from bot.domain.commands import ThreadWord
from bot.domain.delivery import MAX_FAULTS
from bot.domain.gaps import DAY, MOST_MISSED, MOST_PAGES, WEEK, Gap, Listening, PastMessage
from bot.domain.jobs.job import Problem
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
from bot.errors import (
    ChatMissingScope,
    ChatNotInChannel,
    ChatRateLimited,
    ChatRejected,
    ChatUncertain,
    StoreUnavailable,
)
from bot.notices.answers import StatusRequested
from bot.notices.job import HistoryUnread
from bot.notices.notice import Reaction
from bot.notices.questions import HeldAsked, JobOrReplyAsked, ReplyEdited, RequestRefused, StopAsked
from bot.scheduler.history_reader import HistoryReader
from bot.scheduler.retention import HELD_DAYS, RetentionSweeper
from bot.scheduler.worker import WorkerSettings

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
    await world.receive(replace(Reply(BEN, "C1", ts, written, text, arrival=LATE), **changed), wait=10)


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


@pytest.mark.first(arrival=1)
@pytest.mark.parametrize("arrival", list(Arrival))
async def test_an_edited_late_reply_is_asked_about_again(world: CoreWorld, ts: str, arrival: Arrival) -> None:
    """And sent in its newest words, once."""
    await late(world, ts, "Mend the index", at(1))
    await late(world, ts, "Mend the glossary", at(1), edited_at=at(60), arrival=arrival)
    assert [text for _, text, _ in questions(world)] == ["Mend the index", "Mend the glossary"]
    await answer(world)
    assert world.job_api.messages[JOB] == ["Mend the glossary"]


async def test_a_late_edit_does_not_send_what_was_taken_back(world: CoreWorld, ts: str) -> None:
    await world.receive(Reply(BEN, "C1", ts, at(1), "Mend the index"))
    await world.revise(Reply(BEN, "C1", ts, at(1), "", edited_at=at(2), withdrawn=True))
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


async def test_a_late_stop_withdraws_nothing_until_its_writer_says_so(world: CoreWorld, ts: str) -> None:
    """Then it is a stop of now."""
    await late(world, ts, "", at(5), word=ThreadWord.STOP)
    await world.reply(ts, "Mend the index", at(1), ANA, wait=10)
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
    await world.receive(Reply(ANA, "C1", ts, at(50), "", word=ThreadWord.STOP), wait=20)
    assert await waiting(world) == []


@pytest.mark.parametrize(
    ("word", "outcome"),
    [(ThreadWord.MUTE, ["muted"]), (ThreadWord.RETRY, ["not_to_be_retried"]), (ThreadWord.STOP, [])],
)
async def test_a_late_word_is_done_or_not(world: CoreWorld, ts: str, word: ThreadWord, outcome: list[str]) -> None:
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


async def begin(world: CoreWorld, way: str, ts: str) -> None:
    """A late message that asks for a job."""
    in_thread = Reply(BEN, "C1", at(0.5), at(1), "Write a page", mentions_us=True, arrival=LATE)
    match way:
        case "a mention":
            await world.ask(a_mention("Write a page", at(1)))
        case "a mention in a thread":
            await world.receive(in_thread)
        case "new":
            await world.receive(replace(in_thread, thread_ts=ts, word=ThreadWord.NEW))
        case _:
            await world.ask(a_line("Write a page", at(1)))
    await world.pass_time(30)


@pytest.mark.full
@pytest.mark.parametrize("way", ["a mention", "a mention in a thread", "new", "a direct message"])
@pytest.mark.parametrize("yes", [True, False])
async def test_a_late_request_starts_nothing_before_a_yes(world: CoreWorld, ts: str, way: str, *, yes: bool) -> None:
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
    await world.ask(a_mention("Write a page", at(1)))
    await world.ask(a_mention("Write two", at(2)), wait=0)
    for text, written in (("Write a short page", at(1)), ("", at(2))):
        edit = Reply(BEN, "C1", "", written, text, edited_at=at(60), withdrawn=not text, mentions_us=bool(text))
        await world.revise(edit)
    await world.pass_time(30)
    assert (world.job_api.created, world.chat.messages) == ([], [])
    assert [text for _, text, _ in questions(world)] == ["Write a page", "Write two", "Write a short page"]
    for which in range(2):
        await answer(world, which=which)
    assert world.job_api.created == ["Write a short page"]


@pytest.mark.parametrize("sent", [True, False], ids=["sent", "taken back"])
async def test_a_late_edit_of_a_request_starts_nothing(world: CoreWorld, *, sent: bool) -> None:
    """New words for a running job are offered; for one that was taken back, they are asked about."""
    await world.ask(a_mention("Write a page", at(1), arrival=Arrival.LIVE))
    if not sent:
        await world.revise(Reply(BEN, "C1", "", at(1), "", edited_at=at(2), withdrawn=True))
    await world.pass_time(10)
    edit = Reply(BEN, "C1", "", at(1), "Write two", edited_at=at(20), mentions_us=True, arrival=LATE)
    await world.revise(edit, wait=10)
    assert world.job_api.created == ["Write a page"] * sent
    assert [each.text for each in world.chat.private_as(ReplyEdited)] == ["Write two"] * sent
    assert [text for _, text, _ in questions(world)] == ["Write two"] * (not sent)


async def test_home_shows_that_a_late_request_was_left_undone(world: CoreWorld) -> None:
    await world.ask(a_mention("Write a page", at(1)), wait=10)
    await answer(world, RequestKind.DISCARD_HELD)
    (thread,) = await world.store.transact(lambda tx: tx.threads.of_person("UBEN", offset=0, limit=5))
    assert thread.state.failure.problem is Problem.WITHDRAWN


async def test_a_late_line_in_a_direct_message_asks_what_it_is(world: CoreWorld) -> None:
    """While a job is running there, that is the question, and there is no second one."""
    world.chat.public.add("D1")
    await world.ask(a_line("Do it", at(1), arrival=Arrival.LIVE), wait=10)
    await world.ask(a_line("and more", at(2)), wait=10)
    assert (len(world.chat.private_as(JobOrReplyAsked)), questions(world)) == (1, [])
    assert world.job_api.created == ["Do it"]


def reminders(world: CoreWorld) -> list[str]:
    return [each.text for each in world.chat.private_as(HeldAsked) if each.asked_on is Surface.HOME]


async def test_an_unanswered_question_comes_once_more_as_a_direct_message(world: CoreWorld, ts: str) -> None:
    """After an hour, with the words of then; and it delays nothing in the thread meanwhile."""
    await late(world, ts, "Mend the index", at(1))
    await late(world, ts, "Mend the glossary", at(1), edited_at=at(30))
    await world.show("completed", wait=60)
    assert "job_finished" in [message.kind for message in world.chat.messages]
    assert reminders(world) == []
    await world.pass_time(3_600)
    assert reminders(world) == ["Mend the glossary"]
    await world.pass_time(2 * DAY)
    assert len(reminders(world)) == 1
    await answer(world)
    assert world.job_api.messages[JOB] == ["Mend the glossary"]


async def test_a_reminder_outlasts_a_database_that_is_away(world: CoreWorld, ts: str) -> None:
    """However often its question cannot be read, it is no fault of the reminder's."""
    await late(world, ts, "Mend the index", at(1))
    faults, transact = [StoreUnavailable("locked") for _ in range(MAX_FAULTS + 1)], world.store.transact

    async def away(work: Any) -> Any:
        if faults and "_tell" in getattr(work, "__qualname__", ""):
            raise faults.pop()
        return await transact(work)

    world.store.transact = away  # type: ignore[method-assign, assignment]  # the fault is put in for the test
    await world.pass_time(3_700)
    await world.pass_time(60)
    assert faults == []
    assert reminders(world) == ["Mend the index"]


@pytest.mark.first(kind=1)
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
    await RetentionSweeper(world.store).sweep()
    await world.settle()
    assert await waiting(world) == await waiting(world, ANA) == []
    assert world.chat.answers() == ["held_expired", "held_expired"]
    await answer(world)
    assert world.job_api.messages[JOB] == []


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


@pytest.mark.parametrize("fault", [ChatRejected("invalid_cursor"), ChatRateLimited("ratelimited", retry_after=70.0)])
async def test_what_was_read_of_a_thread_is_passed_on_though_its_next_page_is_not_shown(
    reading: Reading, fault: Exception
) -> None:
    for ago, words in ((300, "one"), (200, "two"), (100, "three")):
        reading.write("C1", "1.000001", words, ago)
    reading.history.page_size, reading.history.faults = 2, [None, fault]
    await reading.missed("C1", "1.000001")
    await reading.read()
    assert reading.events.words == ["one", "two"]


async def test_a_message_that_cannot_be_recorded_holds_up_the_others_for_three_attempts(reading: Reading) -> None:
    bad = reading.write("C1", "1.000001", "bad", 200)
    reading.write("C1", "1.000001", "good", 100)
    reading.events.bad = {bad.ts}
    reading.history.faults = [ChatRateLimited("ratelimited", retry_after=5.0)] * 3  # which are no attempts
    await reading.missed("C1", "1.000001")
    for handled in ([], [], [], [], [], ["good"]):
        await reading.read()
        assert reading.events.words == handled
        reading.world.clock.time += 10
    assert await reading.left() == 0


async def test_replies_to_a_card_wait_until_it_is_known_which_job_it_is_of(reading: Reading) -> None:
    """It was posted, and the process died before it was told so."""
    world = reading.world
    await world.ask(NewJob(ANA, "C1", "Do it", "k1", WayIn.COMMAND))
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
