from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.jobs.job import Problem
from bot.domain.jobs.observe import (
    Decision,
    JobApiUnavailable,
    JobNotFound,
    JobObserved,
    Observation,
    decide,
    open_round,
)
from bot.domain.jobs.poll_pace import Polling
from bot.domain.projects import PostMode
from bot.domain.threads.thread import Failure, ThreadState, Work, owes_status
from bot.jobapi.models import Job
from bot.notices.job import (
    JobActiveAgain,
    JobArchived,
    JobDisappeared,
    JobFailed,
    JobFinished,
    JobSilent,
    JobStarted,
    JobStatusChanged,
    JobStopped,
    PullRequestFound,
)
from bot.notices.notice import NewNotice, NoticeContent
from bot.notices.requests import AccessDenied, OutageEnded, OutageStarted

pytestmark = pytest.mark.promise("gone")

POLLING = Polling()
LINK = "https://example.org/pull/1"
OTHER = "https://example.org/pull/2"


def job(status: str = "active", link: str | None = None) -> Job:
    return Job("j1", status, pr_link=link)


def follow(
    *sightings: Observation, state: ThreadState | None = None, every: float = 10.0
) -> tuple[ThreadState, list[NewNotice]]:
    """Runs observations through decide(), `every` seconds apart."""
    state, now = state or ThreadState(), 1_000.0
    told: list[NewNotice] = []
    for sighting in sightings:
        decision = decide(state, sighting, now, POLLING)
        state, now = decision.state, now + every
        told.extend(decision.notices)
    return state, told


def take(state: ThreadState, answer: Job) -> Decision:
    """Records that a follow-up was sent and accepted."""
    return decide(open_round(state, 2_000.0, POLLING), JobObserved(answer), 2_000.0, POLLING)


def kinds(told: list[NewNotice]) -> list[type[NoticeContent]]:
    return [type(notice.message) for notice in told]


def links(told: Iterable[NewNotice]) -> list[str]:
    """Returns the links in messages, including empty ones."""
    return [
        m.link for m in (notice.message for notice in told) if isinstance(m, JobFinished | JobFailed | PullRequestFound)
    ]


def test_a_job_is_started_then_finished_with_its_link() -> None:
    state, said = follow(
        JobObserved(job()), JobObserved(job()), JobObserved(job("completed", LINK)), JobObserved(job("completed", LINK))
    )
    assert kinds(said) == [JobStarted, JobFinished]
    assert links(said) == [LINK]
    assert state.announcements.links == (LINK,)


def test_a_create_may_return_an_ended_job() -> None:
    _, said = follow(JobObserved(job("completed", LINK)))
    assert kinds(said) == [JobFinished]


@pytest.mark.parametrize(("status", "what"), [("failed", JobFailed), ("archived", JobArchived)])
def test_each_end_is_announced_once(status: str, what: type[NoticeContent]) -> None:
    _, said = follow(JobObserved(job()), JobObserved(job(status)), JobObserved(job(status)))
    assert kinds(said) == [JobStarted, what]


def test_a_late_link_is_announced() -> None:
    _, said = follow(JobObserved(job()), JobObserved(job("completed")), JobObserved(job("completed", LINK)))
    assert kinds(said) == [JobStarted, JobFinished, PullRequestFound]
    assert links(said) == ["", LINK]


def test_a_late_link_of_a_later_round_is_announced() -> None:
    state, _ = follow(JobObserved(job()), JobObserved(job("completed", LINK)))
    taken = take(state, job("active"))
    ended = decide(taken.state, JobObserved(job("completed")), 2_010.0, POLLING)
    assert ended.next_poll_in is not None
    late = decide(ended.state, JobObserved(job("completed", OTHER)), 2_020.0, POLLING)
    assert links(late.notices) == [OTHER]


def test_a_changed_link_is_announced_but_not_a_returning_one() -> None:
    seen = [JobObserved(job("completed", link)) for link in (LINK, OTHER, LINK)]
    _, said = follow(JobObserved(job()), *seen)
    assert [notice.message for notice in said[1:]] == [
        JobFinished(LINK, new=True),
        PullRequestFound(OTHER, changed=True),
    ]


def test_a_vanished_link_stays_on_the_card() -> None:
    state, said = follow(JobObserved(job("completed", LINK)), JobObserved(job("completed")))
    assert state.job is not None
    assert state.job.pr_link == LINK
    assert kinds(said) == [JobFinished]


def test_a_status_that_goes_back_is_not_announced() -> None:
    _, said = follow(*(JobObserved(job(status)) for status in ("active", "completed", "active", "completed")))
    assert kinds(said) == [JobStarted, JobFinished]


def test_work_after_an_unknown_status_is_announced() -> None:
    _, said = follow(*(JobObserved(job(status)) for status in ("active", "paused", "active", "completed")))
    assert kinds(said) == [JobStarted, JobStatusChanged, JobStatusChanged, JobFinished]
    assert said[2].message == JobStatusChanged("active")


def test_a_status_that_comes_back_is_announced_once_it_has_lasted() -> None:
    """Those in between are not, if they come back sooner."""
    seen = [JobObserved(job(status)) for status in ("active", "completed", "failed", "completed", "completed")]
    state, said = follow(*seen, *seen[-1:], every=4.0)
    assert kinds(said) == [JobStarted, JobFinished, JobFailed, JobFinished]
    assert not owes_status(state)
    _, said = follow(*seen[:4], JobObserved(job("failed")), JobObserved(job("failed")), every=2.0)
    assert kinds(said) == [JobStarted, JobFinished, JobFailed]


@pytest.mark.parametrize("link", [None, LINK])
def test_a_flapping_job_is_polled_until_its_status_was_announced(link: str | None) -> None:
    state, _ = follow(*(JobObserved(job(status, link)) for status in ("completed", "failed", "completed")))
    assert decide(state, JobApiUnavailable("down"), 9_999.0, POLLING).next_poll_in is not None
    told = decide(state, JobObserved(job("completed", link)), 9_999.0, POLLING)
    assert kinds(list(told.notices)) == [JobFinished]
    assert told.next_poll_in is None


def test_work_that_no_follow_up_explains_is_announced_once_it_has_lasted() -> None:
    _, said = follow(*(JobObserved(job(status)) for status in ("completed", "active", "active", "completed")))
    assert kinds(said) == [JobFinished, JobActiveAgain]
    _, said = follow(
        *(JobObserved(job(status)) for status in ("completed", "active", "active", "completed", "completed"))
    )
    assert kinds(said) == [JobFinished, JobActiveAgain, JobFinished]


def test_a_state_that_an_earlier_version_recorded_is_as_it_was_told() -> None:
    state = ThreadState(job=job("completed"), work=Work(changed_at=0.0))
    assert decide(state, JobObserved(job("completed")), 9_999.0, POLLING).state == state
    assert kinds(list(decide(state, JobObserved(job("failed")), 9_999.0, POLLING).notices)) == [JobFailed]


def test_a_follow_up_starts_a_round_with_its_own_end() -> None:
    state, _ = follow(JobObserved(job()), JobObserved(job("completed", LINK)))
    taken = take(state, job("active"))
    assert kinds(list(taken.notices)) == [JobActiveAgain]
    _, said = follow(JobObserved(job("active")), JobObserved(job("completed", LINK)), state=taken.state)
    assert kinds(said) == [JobFinished]
    assert said[0].message == JobFinished(LINK, again=True)


def test_a_first_end_is_not_called_finished_again() -> None:
    state, _ = follow(JobObserved(job()))
    _, said = follow(JobObserved(job("completed", LINK)), state=take(state, job()).state)
    assert said[0].message == JobFinished(LINK, new=True)


def test_a_link_after_an_end_without_one_is_called_finished_again() -> None:
    state, _ = follow(JobObserved(job()), JobObserved(job("completed")))
    _, said = follow(JobObserved(job("completed", LINK)), state=take(state, job()).state)
    assert said[0].message == JobFinished(LINK, new=True, again=True)


def test_a_link_posted_while_active_is_not_an_earlier_end() -> None:
    state, _ = follow(JobObserved(job()), JobObserved(job("active", LINK)))
    _, said = follow(JobObserved(job("completed", LINK)), state=take(state, job("active", LINK)).state)
    assert said[0].message == JobFinished(LINK)


@pytest.mark.parametrize("link", [LINK, None])
def test_an_end_without_a_new_link_claims_none(link: str | None) -> None:
    state, _ = follow(JobObserved(job()), JobObserved(job("completed", LINK)))
    _, said = follow(JobObserved(job("completed", link)), state=take(state, job()).state)
    assert said[0].message == JobFinished(LINK, again=True)


def test_an_end_with_another_link_announces_it() -> None:
    state, _ = follow(JobObserved(job()), JobObserved(job("completed", LINK)))
    _, said = follow(JobObserved(job("completed", OTHER)), state=take(state, job()).state)
    assert said[0].message == JobFinished(OTHER, new=True, changed=True, again=True)


def test_the_card_says_why_a_job_cannot_be_read_and_follows_the_reason() -> None:
    limited = JobApiUnavailable("asks to wait", retry_after=600.0, problem=Problem.RATE_LIMITED, words="slow down")
    state, said = follow(JobObserved(job()), *[limited] * 40)
    assert kinds(said) == [JobStarted, OutageStarted]
    assert (state.failure.problem, state.failure.problem_text) == (Problem.RATE_LIMITED, "slow down")
    faulty = decide(state, JobApiUnavailable("does not answer properly", problem=Problem.FAULTY), 1_500.0, POLLING)
    assert faulty.card_changed
    assert faulty.notices == ()
    assert (faulty.state.failure.problem, faulty.state.failure.problem_text, faulty.state.failure.problem_until) == (
        Problem.FAULTY,
        "",
        None,
    )


def test_a_follow_up_to_an_active_job_is_not_announced() -> None:
    state, _ = follow(JobObserved(job()))
    assert take(state, job()).notices == ()


def test_an_ended_job_is_polled_for_a_while_after_a_follow_up() -> None:
    state, _ = follow(JobObserved(job("completed", LINK)))
    taken = take(state, job("completed", LINK))
    assert taken.notices == ()
    assert taken.next_poll_in is not None
    assert (
        decide(taken.state, JobObserved(job("completed", LINK)), 2_000.0 + POLLING.grace, POLLING).next_poll_in is None
    )


def test_an_unknown_status_is_announced_once_and_counts_as_in_progress() -> None:
    state, said = follow(*(JobObserved(job(status)) for status in ("queued", "queued", "paused", "paused")))
    assert [notice.message for notice in said[1:]] == [JobStatusChanged("queued"), JobStatusChanged("paused")]
    assert {notice.due_in for notice in said} == {POLLING.hold_back}
    assert state.job is not None
    assert state.job.status == "paused"
    assert decide(state, JobObserved(job("paused")), 9_999.0, POLLING).next_poll_in is not None


def test_polling_ends_with_the_job_but_waits_for_a_late_link() -> None:
    assert decide(ThreadState(), JobObserved(job("completed", LINK)), 0.0, POLLING).next_poll_in is None
    assert decide(ThreadState(), JobObserved(job("failed")), 0.0, POLLING).next_poll_in is None
    state = decide(ThreadState(), JobObserved(job("completed")), 0.0, POLLING).state
    assert decide(state, JobObserved(job("completed")), 179.0, POLLING).next_poll_in is not None
    assert decide(state, JobObserved(job("completed")), 180.0, POLLING).next_poll_in is None


def test_polling_slows_down_within_its_bounds() -> None:
    state = ThreadState(job=job(), work=Work(changed_at=0.0))
    pauses = [decide(state, JobObserved(job()), now, POLLING).next_poll_in for now in (1.0, 40.0, 4_000.0)]
    assert pauses == [2.0, 10.0, 30.0]


@pytest.mark.parametrize(
    ("sightings", "is_gone"),
    [
        ([(0.0, 404), (119.0, 404), (119.9, 404)], False),
        ([(0.0, 404), (120.0, 404)], False),
        ([(0.0, 404), (60.0, 404), (120.0, 404)], True),
        ([(0.0, 404), (60.0, 404), (100.0, 200), (120.0, 404), (230.0, 404), (239.0, 404)], False),
        ([(0.0, 404), (60.0, 404), (100.0, 502), (120.0, 404), (230.0, 404), (239.0, 404)], False),
    ],
)
def test_a_job_is_gone_after_some_misses_over_two_minutes(sightings: list[tuple[float, int]], *, is_gone: bool) -> None:
    seen: dict[int, Observation] = {404: JobNotFound(), 200: JobObserved(job()), 502: JobApiUnavailable("no")}
    state, said = ThreadState(job=job()), list[NewNotice]()
    for at, status in sightings:
        decision = decide(state, seen[status], at, POLLING)
        state, said = decision.state, [*said, *decision.notices]
    assert (state.failure.problem is Problem.GONE) == (JobDisappeared in kinds(said)) == is_gone


def test_a_job_that_is_gone_is_polled_slowly_for_a_day_and_may_come_back() -> None:
    state = ThreadState(job=job(), failure=Failure(not_found_count=2, not_found_since=0.0))
    decision = decide(state, JobNotFound(), 120.0, POLLING)
    for at, poll_in in ((130.0, 32.5), (7_200.0, 600.0), (24 * 3600.0, None)):
        for sighting in (JobNotFound(), JobApiUnavailable("no", status=401)):
            later = decide(decision.state, sighting, at, POLLING)
            assert (later.notices, later.next_poll_in) == ((), poll_in)
            assert later.state == decision.state
    back = decide(decision.state, JobObserved(job()), 9_000.0, POLLING)
    assert back.state.failure.problem is None
    assert [notice.message for notice in back.notices][:1] == [OutageEnded(Problem.GONE)]
    again = replace(back.state, failure=replace(back.state.failure, not_found_count=2, not_found_since=9_001.0))
    keys_ = [
        notice.key for each in (decision, decide(again, JobNotFound(), 9_200.0, POLLING)) for notice in each.notices
    ]
    assert len(set(keys_)) == 2


def test_a_lasting_outage_and_its_end_are_announced_once_each() -> None:
    outage = [JobApiUnavailable("cannot be reached")] * 40
    _, said = follow(JobObserved(job()), *outage, JobObserved(job()), JobObserved(job()))
    assert kinds(said) == [JobStarted, OutageStarted, OutageEnded]
    _, said = follow(JobObserved(job()), *outage[:20], JobObserved(job()))
    assert kinds(said) == [JobStarted]


def test_a_rejected_api_key_is_announced_at_once() -> None:
    state, said = follow(JobObserved(job()), JobApiUnavailable("no", status=401), JobApiUnavailable("no", status=401))
    assert kinds(said) == [JobStarted, AccessDenied]
    assert state.failure.problem is Problem.NOT_ALLOWED


def test_retry_after_is_obeyed() -> None:
    state, _ = follow(JobObserved(job()))
    next_in = decide(state, JobApiUnavailable("asks to wait", retry_after=77.0), 1_001.0, POLLING).next_poll_in
    assert next_in is not None
    assert next_in >= 77.0


statuses = st.sampled_from(["active", "completed", "failed", "archived", "paused"])
any_link = st.sampled_from([None, LINK, OTHER])
sightings = st.one_of(
    st.builds(JobObserved, st.builds(job, statuses, any_link)),
    st.just(JobNotFound()),
    st.builds(
        JobApiUnavailable,
        st.just("no"),
        st.sampled_from([None, 401]),
        st.sampled_from([None, 5.0, 3600.0]),
        st.sampled_from([Problem.OUT_OF_REACH, Problem.RATE_LIMITED, Problem.BUSY]),
    ),
)
steps = st.lists(st.tuples(st.booleans(), sightings, st.floats(0.0, 400.0)), max_size=40)


def play(history: list[tuple[bool, Observation, float]]) -> list[tuple[int, ThreadState, Decision]]:
    """Plays observations; if the first value is true, a follow-up is sent before."""
    state, now, played = ThreadState(), 0.0, []
    for follow_up, sighting, passed in history:
        now += passed
        if follow_up and state.job:
            state = open_round(state, now, POLLING)
        decision = decide(state, sighting, now, POLLING)
        played.append((decision.state.round, state, decision))
        state = decision.state
    return played


@given(steps)
def test_no_fact_is_announced_twice(history: list[tuple[bool, Observation, float]]) -> None:
    told = [notice for _, _, decision in play(history) for notice in decision.notices]
    found = [notice.key for notice in told]
    assert len(found) == len(set(found))


def test_start_notices_are_held_and_ends_are_not() -> None:
    """A held notice is dropped if the end comes first."""
    state, said = follow(JobObserved(job()), JobObserved(job("completed", LINK)))
    assert [notice.due_in for notice in said] == [POLLING.hold_back, 0.0]
    assert [notice.due_in for notice in take(state, job()).notices] == [POLLING.hold_back]


def test_a_failed_job_with_a_pull_request_gets_one_message() -> None:
    _, said = follow(JobObserved(job()), JobObserved(job("failed", LINK)))
    assert [notice.message for notice in said[1:]] == [JobFailed(link=LINK, new=True)]


@pytest.mark.parametrize(("seen", "alone"), [(("active", "completed"), False), (("active",), True)])
def test_a_link_of_an_archived_job_is_announced_without_an_end(seen: tuple[str, ...], *, alone: bool) -> None:
    """Nobody was mentioned before."""
    _, said = follow(*(JobObserved(job(status)) for status in seen), JobObserved(job("archived", LINK)))
    assert said[-1].message == PullRequestFound(LINK, alone=alone)


def quietly(state: ThreadState, seen: Job, now: float) -> Decision:
    return decide(state, JobObserved(seen), now, POLLING.for_posts(PostMode.ENDS))


def test_in_ends_only_mode_starts_are_not_announced() -> None:
    begun = quietly(ThreadState(), job(), 0.0)
    ended = quietly(begun.state, job("completed", LINK), 10.0)
    again = quietly(open_round(ended.state, 20.0, POLLING), job(), 21.0)
    assert begun.notices == again.notices == ()
    assert kinds(list(ended.notices)) == [JobFinished]


def test_in_ends_only_mode_a_silent_job_is_announced_once() -> None:
    """In other modes its start was announced."""
    begun = quietly(ThreadState(), job(), 0.0)
    assert quietly(begun.state, job(), POLLING.silence - 1.0).notices == ()
    told = quietly(begun.state, job(), POLLING.silence)
    assert kinds(list(told.notices)) == [JobSilent]
    assert quietly(told.state, job(), 9 * POLLING.silence).notices == ()
    assert decide(begun.state, JobObserved(job()), POLLING.silence, POLLING).notices == ()


@given(steps)
def test_no_end_is_announced_twice_in_a_row_and_links_once(
    history: list[tuple[bool, Observation, float]],
) -> None:
    last: tuple[int, type[NoticeContent]] | None = None
    announced: set[str] = set()
    for turn, _, decision in play(history):
        for message in (notice.message for notice in decision.notices):
            if isinstance(message, _OF_STATUS):
                assert (turn, type(message)) != last or isinstance(message, JobStatusChanged)
                last = turn, type(message)
            if isinstance(message, PullRequestFound):
                assert message.link not in announced
            if isinstance(message, JobFinished | JobFailed | PullRequestFound) and message.link:
                announced.add(message.link)


@given(steps)
def test_the_threads_last_word_is_the_cards(history: list[tuple[bool, Observation, float]]) -> None:
    """Once the status has lasted, whatever it was before."""
    told: list[NoticeContent] = []
    for _, _, decision in play(history):
        told += [each.message for each in decision.notices if isinstance(each.message, _OF_STATUS)]
        state, job_ = decision.state, decision.state.job
        if job_ is None:
            continue
        final = decide(state, JobObserved(job_), state.work.changed_at + POLLING.hold_back, POLLING)
        last = [*told, *(each.message for each in final.notices if isinstance(each.message, _OF_STATUS))][-1:]
        assert not owes_status(final.state)
        assert [_status_said(message) for message in last] == [job_.status]


_OF_STATUS = (JobStarted, JobActiveAgain, JobStatusChanged, JobFinished, JobFailed, JobStopped, JobArchived)


def _status_said(message: NoticeContent) -> str:
    match message:
        case JobStarted() | JobActiveAgain():
            return "active"
        case JobStatusChanged(status):
            return status
        case JobFailed():
            return "failed"
        case JobArchived():
            return "archived"
        case _:
            return "completed"


@given(steps)
def test_every_new_link_is_announced(history: list[tuple[bool, Observation, float]]) -> None:
    seen, told = set(), set()
    for _, _, decision in play(history):
        if decision.state.job and decision.state.job.pr_link:
            seen.add(decision.state.job.pr_link)
        told |= {link for link in links(decision.notices) if link}
    assert seen == told


@given(steps)
def test_an_unchanged_poll_announces_nothing(history: list[tuple[bool, Observation, float]]) -> None:
    for _, state, _ in play(history):
        if state.job is None or state.failure.outage_announced or state.failure.problem:
            continue
        again = decide(state, JobObserved(state.job), state.work.changed_at + 1.0, POLLING)
        assert again.notices == ()
        assert not again.card_changed
        assert replace(
            again.state,
            failure=replace(again.state.failure, not_found_count=0, not_found_since=None, outage_since=None),
            work=replace(again.state.work, unseen=False),
        ) == replace(
            state,
            failure=replace(state.failure, not_found_count=0, not_found_since=None, outage_since=None),
            work=replace(state.work, unseen=False),
        )


@given(steps, st.floats(0.0, 1.0))
def test_the_next_poll_respects_the_floor_and_ends_only_with_the_job(
    history: list[tuple[bool, Observation, float]], jitter: float
) -> None:
    for _, state, _ in play(history):
        decision = decide(state, JobObserved(job()), state.work.changed_at + 1.0, POLLING, jitter=jitter)
        assert decision.next_poll_in is not None
        assert POLLING.fastest <= decision.next_poll_in <= POLLING.slowest * 1.2
