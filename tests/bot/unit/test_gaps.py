"""When nobody listened, what is read because of that, and what of it is late."""

import pytest

from bot.domain.gaps import (
    BEAT,
    DAY,
    LIVE_SECONDS,
    WEEK,
    Gap,
    Listening,
    PastMessage,
    missed,
    resumed_at,
    threads_with_news,
)
from bot.domain.requests.request import Arrival

pytestmark = pytest.mark.promise("nothing missed")

NOW = 1_700_000_000.0
BOT = "U0BOT"


def ts(seconds_ago: float) -> str:
    return f"{NOW - seconds_ago:.6f}"


def a_gap(channel: str = "C1", thread: str = "1.000001", *, since: float = 600.0, until: float = 60.0) -> Gap:
    """A gap from and until so many seconds ago."""
    return Gap(channel, thread, NOW - since, NOW - until)


def handled(gap: Gap, *messages: PastMessage) -> list[tuple[str, bool, bool, Arrival]]:
    found = missed(messages, gap, NOW, bot_user_id=BOT)
    return [(each.message.ts, each.written, each.edited, each.arrival) for each in found]


@pytest.mark.parametrize(
    ("known", "now", "resumed"),
    [
        (None, Listening(90.0, 100.0), 90.0),
        (Listening(10.0, 95.0), Listening(10.0, 100.0), None),
        (Listening(10.0, 95.0), Listening(97.0, 100.0), 97.0),
        (Listening(10.0, 95.0), Listening(10.0, 95.0 + 3 * BEAT), None),
        (Listening(10.0, 95.0), Listening(10.0, 96.0 + 3 * BEAT), 96.0 + 3 * BEAT),
        (Listening(10.0, 95.0), Listening(10.0, 150.0, repeated_for=60.0), None),
        (Listening(10.0, 95.0), Listening(10.0, 156.0, repeated_for=60.0), 156.0),
    ],
    ids=["first", "goes on", "connected again", "as late as it may be", "frozen", "Slack repeats it", "frozen longer"],
)
def test_a_process_that_did_not_note_itself_in_time_did_not_listen(
    known: Listening | None, now: Listening, resumed: float | None
) -> None:
    assert resumed_at(known, now) == resumed


def test_what_was_written_or_edited_in_the_gap_is_handled() -> None:
    gap = a_gap()
    before, inside, after = PastMessage(ts(700)), PastMessage(ts(300)), PastMessage(ts(-10))
    edited = PastMessage(ts(3_000), edited_at=ts(200))
    both = PastMessage(ts(400), edited_at=ts(350))
    assert handled(gap, before, inside, after, edited, both) == [
        (inside.ts, True, False, Arrival.LIVE),
        (edited.ts, False, True, Arrival.LIVE),
        (both.ts, True, True, Arrival.LIVE),
    ]


def test_slacks_clock_may_differ_a_little() -> None:
    gap = a_gap()
    assert len(handled(gap, PastMessage(ts(650)), PastMessage(ts(5)))) == 2


@pytest.mark.parametrize(("age", "arrival"), [(LIVE_SECONDS - 1, Arrival.LIVE), (LIVE_SECONDS + 1, Arrival.LATE)])
def test_what_is_older_than_a_quarter_of_an_hour_is_late(age: float, arrival: Arrival) -> None:
    gap = a_gap(since=7_200.0)
    assert handled(gap, PastMessage(ts(age))) == [(ts(age), True, False, arrival)]
    assert handled(gap, PastMessage(ts(7_000), edited_at=ts(age)))[0][3] is arrival


def test_after_a_restored_backup_everything_is_late() -> None:
    gap = Gap("C1", "1.000001", NOW - 600, NOW, asks=True)
    assert handled(gap, PastMessage(ts(10)))[0][3] is Arrival.LATE


def test_our_own_messages_are_left_out() -> None:
    assert handled(a_gap(), PastMessage(ts(300), author_id=BOT)) == []


@pytest.mark.parametrize(("channel", "found"), [("C1", 1), ("D1", 2)])
def test_outside_threads_of_channels_only_mentions_are_handled(channel: str, found: int) -> None:
    messages = (PastMessage(ts(300), text="hello"), PastMessage(ts(290), text=f"<@{BOT}> hello"))
    assert len(handled(a_gap(channel, ""), *messages)) == found


@pytest.mark.parametrize(("channel", "thread", "reach"), [("C1", "", DAY), ("C1", "1.000001", WEEK), ("D1", "", WEEK)])
def test_it_reads_a_day_back_in_channels_and_a_week_elsewhere(channel: str, thread: str, reach: float) -> None:
    long_ago = a_gap(channel, thread, since=reach + 3_600)
    assert long_ago.is_cut(NOW)
    assert not a_gap(channel, thread, since=reach - 3_600).is_cut(NOW)
    mention = f"<@{BOT}> do it"
    messages = (PastMessage(ts(reach + 600), text=mention), PastMessage(ts(reach - 600), text=mention))
    assert [each[0] for each in handled(long_ago, *messages)] == [messages[1].ts]


def test_a_thread_is_read_from_an_hour_before_for_edits_and_a_channel_from_a_week_for_its_threads() -> None:
    assert float(a_gap().oldest(NOW)) == NOW - 600 - 60 - 3_600
    assert float(a_gap("C1", "").oldest(NOW)) == NOW - WEEK
    assert a_gap(since=NOW + 10).oldest(NOW)  # no time before the epoch


def test_threads_with_replies_since_the_gap_are_read_too() -> None:
    quiet, going_on, without = PastMessage("1.1", latest_reply=ts(700)), PastMessage("2.1", latest_reply=ts(300)), "3.1"
    assert threads_with_news((quiet, going_on, PastMessage(without)), a_gap("C1", ""), NOW) == ["2.1"]
