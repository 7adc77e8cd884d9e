"""Who is notified of a job's end, and how prominently."""

from dataclasses import replace

import pytest

from bot.domain.notification import (
    Directly,
    InConversation,
    NotificationSettings,
    announced_though_muted,
    person_mentioned,
    private_place,
    shown_in_channel,
)
from bot.domain.requests.request import Surface
from bot.domain.threads.thread import Participation, Thread, ThreadOptions, ThreadState
from bot.notices.answers import JobIdRequested
from bot.notices.job import (
    JobActiveAgain,
    JobFailed,
    JobFinished,
    JobSilent,
    JobStarted,
    JobStatusChanged,
    JobStopped,
    PullRequestFound,
    QuestionAsked,
)
from bot.notices.notice import NoticeContent
from bot.notices.requests import OutageEnded

LINK = "https://git.example/pull/7"
END = JobFinished(LINK, new=True)
THREAD = Thread(
    "th1",
    "T1",
    "C1",
    "U0ANA",
    "Do it",
    "docs",
    0.0,
    state=ThreadState(people=Participation(participants=("U0BEN", "U0CAI"))),
)
LOUD = NotificationSettings(broadcast=True)
QUIET = replace(THREAD, options=ThreadOptions(quiet=True))
MUTED = replace(THREAD, state=replace(THREAD.state, people=replace(THREAD.state.people, muted_by="U0BEN")))


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
def test_private_notices_go_to_threads_that_slack_shows(thread: Thread, place: InConversation) -> None:
    """If a reply or the card is below its root message; answers to Home go to the direct message."""
    assert private_place(thread, JobIdRequested("U0ANA")) == place
    assert private_place(thread, JobIdRequested("U0ANA", asked_on=Surface.HOME)) == Directly()


def test_an_end_mentions_the_waiting_person() -> None:
    """One person: the others have written in the thread, so Slack notifies them."""
    assert person_mentioned(THREAD, END, NotificationSettings()) == "U0ANA"
    assert person_mentioned(THREAD, replace(END, person_id="U0BEN"), NotificationSettings()) == "U0BEN"
    assert person_mentioned(THREAD, JobFailed(link=LINK, person_id="U0BEN"), NotificationSettings()) == "U0BEN"
    assert person_mentioned(THREAD, JobStopped("U0BEN"), NotificationSettings()) == "U0ANA"


def test_a_link_beside_an_end_mentions_nobody() -> None:
    """The end does. A job archived without an end has not mentioned anybody yet."""
    assert person_mentioned(THREAD, PullRequestFound(LINK), NotificationSettings()) == ""
    assert person_mentioned(THREAD, PullRequestFound(LINK, alone=True), NotificationSettings()) == "U0ANA"


@pytest.mark.parametrize("thread", [QUIET, MUTED])
def test_a_quiet_or_muted_job_mentions_nobody(thread: Thread) -> None:
    """Its end is not broadcast either."""
    assert person_mentioned(thread, END, LOUD) == ""
    assert not shown_in_channel(thread, END, LOUD)


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
def test_only_the_first_end_with_its_pull_request_is_broadcast(message: NoticeContent, *, shown: bool) -> None:
    """Only if the channel is configured so."""
    assert shown_in_channel(THREAD, message, LOUD) is shown
    assert not shown_in_channel(THREAD, message, NotificationSettings())
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
        (JobSilent(), False),
        (JobStatusChanged("paused"), False),
        (QuestionAsked("Which?"), False),
        (OutageEnded(), False),
    ],
)
def test_a_muted_thread_still_gets_failures_and_pull_requests(message: NoticeContent, *, told: bool) -> None:
    """And a stop, which somebody has just requested."""
    assert announced_though_muted(message) is told
