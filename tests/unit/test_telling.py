"""Who is told of a job's end, and how loudly."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.notices.messages import NoticeMessage
from bot.domain.notices.posts import (
    JobActiveAgain,
    JobFailed,
    JobFinished,
    JobStarted,
    JobStopped,
    OutageEnded,
    PullRequestFound,
    QuestionAsked,
)
from bot.domain.surfaces import Surface, home_key, surface_of
from bot.domain.telling import (
    MAX_MENTIONED,
    Directly,
    InConversation,
    Telling,
    people_told,
    private_place,
    shown_in_channel,
    told_though_muted,
)
from bot.domain.threads import Thread, ThreadOptions, ThreadState

LINK = "https://git.example/pull/7"
END = JobFinished(LINK, new=True)
THREAD = Thread("th1", "T1", "C1", "U0ANA", "Do it", "docs", 0.0, state=ThreadState(participants=("U0BEN", "U0CAI")))
LOUD = Telling(broadcast=True)
QUIET = replace(THREAD, options=ThreadOptions(quiet=True))
MUTED = replace(THREAD, state=replace(THREAD.state, muted_by="U0BEN"))


@pytest.mark.parametrize(
    ("thread", "place"),
    [
        (replace(THREAD, ts="1.1", card_ts="1.1"), InConversation()),
        (replace(THREAD, ts="1.1", card_ts="1.1", has_replies=True), InConversation("1.1")),
        (replace(THREAD, ts="1.1", card_ts="2.1"), InConversation("1.1")),
        (replace(THREAD, root_ts="1.1"), InConversation()),
        (replace(THREAD, root_ts="1.1", has_replies=True), InConversation("1.1")),
        (replace(THREAD, has_replies=True), InConversation()),
    ],
)
def test_private_words_stand_in_the_thread_where_slack_shows_them(thread: Thread, place: InConversation) -> None:
    """Where a reply or the card stands below its first message; what was asked for on Home is told directly."""
    assert private_place(thread, Surface.CONVERSATION) == place
    assert private_place(thread, Surface.HOME) == Directly()


def test_a_retry_is_asked_for_where_its_button_is() -> None:
    assert surface_of(home_key("T1/1.2")) is Surface.HOME
    assert surface_of(f"retry/{home_key('T1/1.2')}") is Surface.HOME
    assert surface_of("retry/click/T1/1.2") is Surface.CONVERSATION


def test_who_asked_and_who_steered_are_told() -> None:
    """Who asked first, then the newest."""
    assert people_told(THREAD, Telling()) == ("U0ANA", "U0CAI", "U0BEN")


@pytest.mark.parametrize("thread", [QUIET, MUTED])
def test_a_quiet_or_muted_job_mentions_nobody(thread: Thread) -> None:
    """Nor is its end shown in the channel."""
    assert people_told(thread, LOUD) == ()
    assert not shown_in_channel(thread, END, LOUD)


def test_whose_single_reply_went_out_is_told_after_those_who_take_part() -> None:
    thread = replace(THREAD, state=replace(THREAD.state, let_through=("U0BEN", "U0DAN")))
    assert people_told(thread, Telling()) == ("U0ANA", "U0CAI", "U0BEN", "U0DAN")


def test_a_channel_can_do_without_mentions() -> None:
    """Whoever asked."""
    assert people_told(THREAD, Telling(mention=False)) == ()


@given(st.lists(st.sampled_from([f"U{number}" for number in range(60)]), max_size=50))
def test_each_person_is_mentioned_once_and_not_too_many(participants: list[str]) -> None:
    """Whoever steered most."""
    told = people_told(replace(THREAD, state=ThreadState(participants=tuple(participants))), Telling())
    assert told[0] == "U0ANA"
    assert len(set(told)) == len(told) <= MAX_MENTIONED


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (END, True),
        (JobFinished(LINK), True),
        (JobFinished(LINK, new=True, again=True), True),
        (JobFinished(LINK, again=True), False),
        (JobFinished(), False),
        (JobFailed(), False),
        (PullRequestFound(LINK), False),
    ],
)
def test_only_the_first_end_with_its_pull_request_is_shown_in_the_channel(
    message: NoticeMessage, *, shown: bool
) -> None:
    """And only where the channel has it so."""
    assert shown_in_channel(THREAD, message, LOUD) is shown
    assert not shown_in_channel(THREAD, message, Telling())
    assert not shown_in_channel(replace(THREAD, channel_id="D1"), message, LOUD)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (END, True),
        (JobFinished(), False),
        (JobStopped("U0BEN"), True),
        (JobFailed(), True),
        (PullRequestFound(LINK), True),
        (JobStarted("j1"), False),
        (JobActiveAgain(), False),
        (QuestionAsked("Which?"), False),
        (OutageEnded(), False),
    ],
)
def test_a_muted_thread_is_told_of_failures_and_pull_requests(message: NoticeMessage, *, told: bool) -> None:
    """And of a stop, since somebody has just asked for it."""
    assert told_though_muted(message) is told
