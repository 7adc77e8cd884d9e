from dataclasses import replace

import pytest

from bot.domain.decide import OutOfReach, Polling, Seen, decide
from bot.domain.models import Job, Known, Mark, Request, RequestKind, RequestState, Trouble, What
from bot.domain.settle import GIVE_UP_AFTER, Outcome, Settlement, Taken, TurnedAway, Unsure, settle

START = Request("r1", "t1", RequestKind.START, "k1", "U1", "Do it", "", 0.0, attempts=1)
FOLLOW_UP = Request("r2", "t1", RequestKind.FOLLOW_UP, "k2", "U1", "More", "5.000000", 0.0, attempts=1)
LINK = "https://example.org/pull/1"
RUNNING = Known(job=Job("j1", "active"))


def settled(request: Request, outcome: Outcome, known: Known | None = None, now: float = 0.0) -> Settlement:
    return settle(request, known or (RUNNING if request is FOLLOW_UP else Known()), outcome, now, Polling())


def test_a_start_that_is_taken_starts_polling() -> None:
    settlement = settled(START, Taken(Job("j1", "active")))
    assert settlement.state is RequestState.TAKEN
    assert [saying.what for saying in settlement.sayings] == [What.STARTED]
    assert settlement.poll_in == 2.0
    assert settlement.mark is None


def test_a_follow_up_that_is_taken_is_marked() -> None:
    settlement = settled(FOLLOW_UP, Taken(Job("j1", "active")))
    assert settlement.mark is Mark.TAKEN
    assert settlement.poll_in == 2.0


def test_an_answer_that_is_older_than_what_is_known_does_not_take_the_job_back() -> None:
    ended = Known(job=Job("j1", "completed", pr_link=LINK), round=1, said=frozenset({"r1/completed"}), links=(LINK,))
    settlement = settled(FOLLOW_UP, Taken(Job("j1", "active"), outdated=True), ended)
    assert settlement.mark is Mark.TAKEN
    assert settlement.known.job == ended.job
    assert settlement.sayings == ()
    assert settlement.poll_in == 2.0


def test_what_the_job_does_after_an_outdated_answer_is_news_even_if_it_was_before() -> None:
    ended = Known(job=Job("j1", "completed", pr_link=LINK), round=1, said=frozenset({"r1/completed"}), links=(LINK,))
    known = settled(FOLLOW_UP, Taken(Job("j1", "active"), outdated=True), ended).known
    again = decide(known, Seen(Job("j1", "active")), 1.0, Polling())
    end = decide(again.known, Seen(Job("j1", "completed", pr_link=LINK)), 2.0, Polling())
    assert [saying.what for saying in (*again.sayings, *end.sayings)] == [What.ACTIVE_AGAIN, What.FINISHED]


@pytest.mark.parametrize("request_", [START, FOLLOW_UP], ids=["start", "follow-up"])
@pytest.mark.parametrize("reason", ["api", "project"])
def test_a_refusal_is_told_in_the_apis_words(request_: Request, reason: str) -> None:
    settlement = settled(request_, TurnedAway(reason, "too vague"))
    assert settlement.state is RequestState.REFUSED
    assert settlement.sayings[0].facts["words"] == "too vague"
    assert settlement.mark is (Mark.PROBLEM if request_ is FOLLOW_UP else None)


def test_a_job_that_is_gone_is_polled_no_more() -> None:
    settlement = settled(FOLLOW_UP, TurnedAway("gone"))
    assert settlement.known.trouble is Trouble.GONE
    assert settlement.poll_in is None


@pytest.mark.parametrize("request_", [START, FOLLOW_UP], ids=["start", "follow-up"])
def test_what_may_have_arrived_is_not_repeated_but_told(request_: Request) -> None:
    settlement = settled(request_, Unsure("timeout"))
    assert settlement.state is RequestState.UNSURE
    assert [saying.what for saying in settlement.sayings] == [What.UNSURE]


def test_what_may_have_arrived_is_repeated_where_the_server_runs_a_key_once() -> None:
    settlement = settled(START, Unsure("timeout", ask_again=True))
    assert settlement.state is RequestState.WAITING
    assert settlement.sayings == ()


def test_what_did_not_arrive_waits_and_is_told_once_if_it_lasts() -> None:
    first = settled(START, OutOfReach("can't be reached"))
    assert first.state is RequestState.WAITING
    assert first.sayings == ()
    lasting = settled(START, OutOfReach("can't be reached"), first.known, now=61.0)
    assert [saying.what for saying in lasting.sayings] == [What.OUT_OF_REACH]
    assert settled(START, OutOfReach("can't be reached"), lasting.known, now=99.0).sayings == ()


def test_retry_after_and_backoff_bound_the_next_try() -> None:
    assert settled(START, OutOfReach("asks to wait", retry_after=500.0)).due_in == 500.0
    assert settled(replace(START, attempts=99), OutOfReach("can't be reached")).due_in <= 75.0


def test_a_request_that_waited_for_days_is_handed_back() -> None:
    tried = replace(FOLLOW_UP, first_tried_at=0.0)
    settlement = settled(tried, OutOfReach("can't be reached"), RUNNING, now=GIVE_UP_AFTER)
    assert settlement.state is RequestState.REFUSED
    assert settlement.sayings[-1].facts["reason"] == "too_old"
    assert settlement.mark is Mark.PROBLEM


def test_our_key_lets_requests_wait_and_is_told_at_once() -> None:
    settlement = settled(START, OutOfReach("no", status=403, retry_after=60.0))
    assert settlement.state is RequestState.WAITING
    assert settlement.sayings[0].what is What.NOT_ALLOWED
    assert settlement.due_in == 60.0
