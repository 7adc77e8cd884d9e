"""Messages in a direct message outside its threads: which job they may be for, and which belong together."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.worlds.store_world import a_follow_up, a_thread

from bot.domain.jobs.job import Problem
from bot.domain.requests.request import Request, RequestKind, RequestState, WayIn
from bot.domain.threads.direct_messages import (
    IN_ONE_GO,
    job_in_hand,
    lines_with,
    may_be_job,
    to_ask_about,
)
from bot.domain.threads.thread import Failure, Participation, Thread, ThreadState, Work
from bot.jobapi.models import Job

NOW = 1_700_000_100.0
AT_WORK, DONE, GONE = (
    Job("j1", "active"),
    Job("j1", "completed", pr_link="https://git.example/1"),
    Job("j1", "archived"),
)


def a_line(at: float, state: RequestState = RequestState.AWAITING_PERSON) -> Request:
    return a_follow_up(f"{at:.6f}", way_in=WayIn.DIRECT_MESSAGE, state=state, person_id="UANA")


def lines(*times: float) -> list[Request]:
    return [a_line(NOW + time) for time in times]


@pytest.mark.parametrize(
    ("state", "in_hand"),
    [
        (ThreadState(), True),
        (ThreadState(AT_WORK), True),
        (ThreadState(DONE), False),
        (ThreadState(DONE, work=Work(question="Which?")), True),
        (ThreadState(GONE), False),
        (ThreadState(GONE, work=Work(question="Which?")), False),
        (ThreadState(AT_WORK, people=Participation(muted_by="UBEN")), False),
        (ThreadState(AT_WORK, replaced_by="t2"), False),
        (ThreadState(AT_WORK, people=Participation(stopped_by="UANA")), True),
        (ThreadState(DONE, round=1, work=Work(unseen=True)), True),
        *((ThreadState(failure=Failure(problem=problem)), False) for problem in Problem),
    ],
)
def test_a_live_job_is_starting_active_or_waiting_for_an_answer(state: ThreadState, *, in_hand: bool) -> None:
    thread = a_thread("t1", ts="1.1", state=state)
    assert (job_in_hand([thread], NOW) is thread) is in_hand


def test_the_newest_live_job_is_the_one_above() -> None:
    threads = [a_thread(name, ts="1.1", state=ThreadState(job)) for name, job in _NEWEST_FIRST]
    found = job_in_hand(threads, NOW)
    assert found is not None
    assert found.id == "t2"
    assert job_in_hand([], NOW) is None


_NEWEST_FIRST = (("t3", DONE), ("t2", AT_WORK), ("t1", AT_WORK))


@pytest.mark.parametrize("state", RequestState)
def test_a_line_may_be_a_job_until_its_author_decides(state: RequestState) -> None:
    waits = state in {RequestState.AWAITING_PERSON, RequestState.WITHDRAWN}
    assert may_be_job(a_line(NOW, state)) is waits
    for other in (WayIn.REPLY, WayIn.MENTION, WayIn.BUTTON):
        assert not may_be_job(replace(a_line(NOW, state), way_in=other))
    assert not may_be_job(replace(a_line(NOW, state), kind=RequestKind.START))


def test_lines_sent_in_quick_succession_belong_together() -> None:
    """In written order, however they were recorded."""
    first, second, third, later = waiting = lines(0, 4, 8, 20)
    assert lines_with(second, [later, third, second, first]) == [first, second, third]
    assert lines_with(later, waiting) == [later]
    assert lines_with(second, []) == [second]
    assert lines_with(first, [second, later]) == [first, second]


def test_a_deleted_line_leaves_the_rest_of_its_group() -> None:
    first, second = lines(0, 4)
    gone = replace(first, state=RequestState.WITHDRAWN)
    assert lines_with(gone, [second]) == [second]
    assert lines_with(gone, []) == []


def test_a_waiting_thread_reply_is_not_a_line() -> None:
    """It has its own question."""
    line = a_line(NOW)
    reply = replace(a_line(NOW + 1), way_in=WayIn.REPLY)
    assert lines_with(line, [reply, line]) == [line]
    assert to_ask_about([line, reply]) == [line, reply]


def test_the_first_line_of_a_group_is_asked_about() -> None:
    waiting = lines(0, 4, 8, 20, 21)
    assert to_ask_about(waiting) == [waiting[0], waiting[3]]
    assert to_ask_about([]) == []


@given(st.lists(st.floats(0, 60), max_size=8, unique_by=lambda time: f"{NOW + time:.6f}"))
def test_each_line_belongs_to_one_question(times: list[float]) -> None:
    waiting = lines(*times)
    asked = to_ask_about(waiting)
    answered = [line for question in asked for line in lines_with(question, waiting)]
    assert sorted(line.id for line in answered) == sorted(line.id for line in waiting)
    for line in waiting:
        assert lines_with(line, waiting)[0] in asked


def test_lines_more_than_a_few_seconds_apart_are_separate() -> None:
    first, near, far = lines(0, IN_ONE_GO, 2 * IN_ONE_GO + 0.001)
    assert lines_with(first, [near, far]) == [first, near]


def test_threads_are_evaluated_as_given() -> None:
    """The store returns the newest first."""
    newest: list[Thread] = [a_thread("t2", ts="2.1"), a_thread("t1", ts="1.1")]
    assert job_in_hand(newest, NOW) is newest[0]
