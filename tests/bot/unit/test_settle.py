"""What becomes of a request after an attempt, and what merges with it."""

from dataclasses import replace

import pytest

from bot.domain.jobs.job import Problem
from bot.domain.jobs.observe import Decision, JobNotFound, JobObserved, Observation, decide, open_round
from bot.domain.jobs.outages import JobApiUnavailable
from bot.domain.jobs.poll_pace import GONE_AFTER, Polling
from bot.domain.requests.follow_ups import MOST_CHARACTERS, MOST_MERGED, as_one, merged_with
from bot.domain.requests.request import RejectionReason, Request, RequestContext, RequestKind, RequestState
from bot.domain.requests.settle import (
    GIVE_UP_AFTER,
    Accepted,
    Rejected,
    SendOutcome,
    Settlement,
    Uncertain,
    settle,
    summary,
)
from bot.domain.threads.thread import Announcements, Participation, ThreadState, Work
from bot.jobapi.models import Job, JobDetails, PromptFile
from bot.notices.job import JobActiveAgain, JobFailed, JobFinished, JobStarted, PullRequestFound
from bot.notices.notice import NewNotice, NoticeContent, NoticeKey, Reaction
from bot.notices.requests import (
    AccessDenied,
    OutageEnded,
    OutageStarted,
    RequestRejected,
    RequestSummary,
    RequestUncertain,
)

START = Request("r1", "t1", RequestKind.START, "k1", "U1", "Do it", "", 0.0, attempts=1)
FOLLOW_UP = Request("r2", "t1", RequestKind.FOLLOW_UP, "k2", "U1", "More", "5.000000", 0.0, attempts=1)
LINK = "https://example.org/pull/1"
LONG_TRIED = replace(FOLLOW_UP, first_tried_at=-GONE_AFTER)
ACTIVE = Job("j1", "active")
RUNNING = ThreadState(job=ACTIVE)
GONE, NO_PROJECT = Rejected(RejectionReason.GONE), Rejected(RejectionReason.PROJECT, "no such project")


def settled(request: Request, outcome: SendOutcome, state: ThreadState | None = None, now: float = 0.0) -> Settlement:
    return settle(request, state or (ThreadState() if request.id == "r1" else RUNNING), outcome, now, Polling())


def rejected(result: Settlement | Decision) -> list[RequestRejected]:
    """Returns the notices about rejected requests."""
    return [notice.message for notice in result.notices if isinstance(notice.message, RequestRejected)]


AWAY = JobApiUnavailable("cannot be reached")
TRIED_FOR_DAYS = replace(FOLLOW_UP, first_tried_at=-GIVE_UP_AFTER)
REFUSED = Rejected(RejectionReason.API, "too vague", status=402)
BECOMES: dict[str, tuple[Request, SendOutcome, RequestState, list[type[NoticeContent]], Reaction | None]] = {
    "accepted start": (START, Accepted(ACTIVE), RequestState.ACCEPTED, [JobStarted], None),
    "accepted follow-up": (FOLLOW_UP, Accepted(ACTIVE), RequestState.ACCEPTED, [], Reaction.ACCEPTED),
    "refused start": (START, REFUSED, RequestState.REJECTED, [RequestRejected], None),
    "start without a project": (START, NO_PROJECT, RequestState.REJECTED, [RequestRejected], None),
    "refused follow-up": (FOLLOW_UP, REFUSED, RequestState.REJECTED, [], Reaction.PROBLEM),
    "start in doubt": (START, Uncertain("timeout"), RequestState.UNCERTAIN, [RequestUncertain], None),
    "follow-up in doubt": (
        FOLLOW_UP,
        Uncertain("timeout"),
        RequestState.UNCERTAIN,
        [RequestUncertain],
        Reaction.PROBLEM,
    ),
    "start in doubt, where the server honours keys": (
        (START, Uncertain("timeout", ask_again=True), RequestState.WAITING, [], None)
    ),
    "start that did not arrive": (START, AWAY, RequestState.WAITING, [], None),
    "follow-up that waited for days": (
        (TRIED_FOR_DAYS, AWAY, RequestState.REJECTED, [RequestRejected], Reaction.PROBLEM)
    ),
    "follow-up in doubt that waited for days": (
        (replace(TRIED_FOR_DAYS, uncertain=True), AWAY, RequestState.UNCERTAIN, [RequestUncertain], Reaction.PROBLEM)
    ),
}


@pytest.mark.parametrize(("request_", "outcome", "state", "told", "reaction"), BECOMES.values(), ids=BECOMES)
def test_a_request_becomes_what_its_outcome_says(
    request_: Request,
    outcome: SendOutcome,
    state: RequestState,
    told: list[type[NoticeContent]],
    reaction: Reaction | None,
) -> None:
    settlement = settled(request_, outcome)
    assert settlement.request_state is state
    assert [type(notice.message) for notice in settlement.notices] == told
    assert settlement.reaction is reaction
    assert all(each.api_text == getattr(outcome, "words", "") for each in rejected(settlement))
    if isinstance(outcome, Accepted):
        assert settlement.poll_in == 2.0


ENDED = ThreadState(
    job=Job("j1", "completed", pr_link=LINK),
    round=1,
    announcements=Announcements(announced=frozenset({JobFinished.key(1)}), links=(LINK,)),
)


def test_an_outdated_answer_does_not_set_the_job_back() -> None:
    settlement = settled(FOLLOW_UP, Accepted(ACTIVE, outdated=True), ENDED)
    assert (settlement.state.job, settlement.notices, settlement.poll_in) == (ENDED.job, (), 2.0)
    assert settlement.reaction is Reaction.ACCEPTED


def test_changes_after_an_outdated_answer_are_announced_again() -> None:
    state = settled(FOLLOW_UP, Accepted(ACTIVE, outdated=True), ENDED).state
    again = decide(state, JobObserved(ACTIVE), 1.0, Polling())
    end = decide(again.state, JobObserved(Job("j1", "completed", pr_link=LINK)), 2.0, Polling())
    assert [type(notice.message) for notice in (*again.notices, *end.notices)] == [JobActiveAgain, JobFinished]


@pytest.mark.parametrize("kind", [RequestKind.FOLLOW_UP, RequestKind.STOP])
def test_a_404_is_tried_again_until_the_job_is_gone(kind: RequestKind) -> None:
    """It counts like a poll's. A reply that is accepted then shows that the job is there again."""
    request = replace(FOLLOW_UP, kind=kind)
    first = settled(request, GONE, RUNNING, now=0.0)
    assert (first.request_state, first.notices, first.due_in) == (RequestState.WAITING, (), 2.0)
    tried, state = replace(request, first_tried_at=0.0), settled(request, GONE, first.state, now=60.0).state
    last = settled(replace(tried, first_tried_at=10.0), GONE, state, now=120.0)
    assert (last.request_state, [each.reason for each in rejected(last)]) == (
        RequestState.REJECTED,
        [RejectionReason.GONE],
    )
    assert last.state.failure.problem is Problem.GONE
    assert settled(request, GONE, last.state, now=130.0).request_state is RequestState.REJECTED
    for outdated in (False, True):
        taken = settled(FOLLOW_UP, Accepted(ACTIVE, outdated=outdated), last.state, now=130.0)
        assert taken.state.failure.problem is None
        assert taken.notices[0].message == OutageEnded(Problem.GONE)


@pytest.mark.parametrize(("ended_at", "told"), [(5.0, ""), (20.0, "completed")])
def test_an_end_that_was_told_since_the_first_attempt_is_not_news(ended_at: float, told: str) -> None:
    """An earlier one may be, of this follow-up's work."""
    announcements = Announcements(last_status="completed")
    state = ThreadState(ENDED.job, round=2, work=Work(work_ended_at=ended_at), announcements=announcements)
    tried = replace(FOLLOW_UP, first_tried_at=10.0, attempts=2)
    assert settled(tried, Accepted(ACTIVE, outdated=True), state, now=30.0).state.announcements.last_status == told


def test_an_end_that_is_seen_before_its_follow_up_is_known_to_be_taken_is_told_once() -> None:
    """A process was killed between the job API's answer and its record; the new link was news at once."""
    seen = JobObserved(Job("j1", "completed", pr_link=f"{LINK}2", details=JobDetails(revision="b2")))
    found = decide(ENDED, seen, 23.0, Polling())
    repeated = replace(FOLLOW_UP, first_tried_at=20.0, attempts=2)
    taken = settled(repeated, Accepted(ACTIVE, outdated=True), found.state, now=36.0)
    end = decide(taken.state, seen, 37.0, Polling())
    again = decide(end.state, seen, 60.0, Polling())
    told = [type(notice.message) for each in (found, taken, end, again) for notice in each.notices]
    assert told == [PullRequestFound, JobFinished]


def test_another_end_without_details_that_is_told_before_its_follow_up_is_known_to_be_taken_is_told_once() -> None:
    """Nobody saw the job at work in between; the follow-up is tried again, which opens a round."""
    failed = JobObserved(Job("j1", "failed", pr_link=LINK))
    state = replace(
        ENDED, work=Work(work_ended_at=10.0), announcements=replace(ENDED.announcements, announced=frozenset())
    )
    told = decide(replace(state, round=2), failed, 23.0, Polling())
    claimed_again = open_round(told.state, 36.0, Polling())
    repeated = replace(FOLLOW_UP, first_tried_at=20.0, attempts=2)
    taken = settled(repeated, Accepted(ACTIVE, outdated=True), claimed_again, now=36.0)
    again = decide(taken.state, failed, 37.0, Polling())
    lasts = decide(again.state, failed, 60.0, Polling())
    assert [type(notice.message) for each in (told, taken, again, lasts) for notice in each.notices] == [JobFailed]


@pytest.mark.parametrize(
    ("outcome", "before", "after"),
    [(REFUSED, "U1", ""), (REFUSED, "U2", "U2"), (Uncertain("timeout", ask_again=True), "U1", "U1")],
)
def test_a_stop_that_certainly_had_no_effect_claims_no_end(outcome: SendOutcome, before: str, after: str) -> None:
    """That of another person may have had one."""
    state = replace(RUNNING, people=Participation(stopped_by=before))
    assert settled(replace(FOLLOW_UP, kind=RequestKind.STOP), outcome, state).state.people.stopped_by == after


REFUSALS = [
    (RejectionReason.API, JobObserved(ACTIVE), RejectionReason.API),
    (RejectionReason.API, JobObserved(Job("j1", "archived")), RejectionReason.ARCHIVED),
    (RejectionReason.API, JobNotFound(), RejectionReason.API),
    (RejectionReason.GONE, JobObserved(ACTIVE), RejectionReason.NOT_FOUND),
    (RejectionReason.GONE, JobObserved(Job("j1", "archived")), RejectionReason.ARCHIVED),
    (RejectionReason.GONE, JobNotFound(), RejectionReason.NOT_FOUND),
]


@pytest.mark.parametrize(("reason", "look", "told"), REFUSALS)
def test_a_refused_follow_up_is_explained_after_the_next_poll(
    reason: RejectionReason, look: Observation, told: RejectionReason
) -> None:
    settlement = settled(LONG_TRIED, Rejected(reason, "no, sorry"), RUNNING)
    assert settlement.request_state is RequestState.REJECTED
    assert settlement.reaction is Reaction.PROBLEM
    assert settlement.notices == ()
    assert settlement.poll_in == Polling().fastest
    decision = decide(settlement.state, look, 2.0, Polling())
    (rejection,) = rejected(decision)
    assert NewNotice(NoticeKey("r2/refused/1"), rejection) in decision.notices
    assert (rejection.reason, rejection.api_text, rejection.request.text) == (told, "no, sorry", "More")
    assert (decision.state.failure.problem is Problem.GONE) is (told is RejectionReason.GONE)
    assert (decision.next_poll_in is None) is (told in {RejectionReason.GONE, RejectionReason.ARCHIVED})
    assert decide(decision.state, look, 4.0, Polling()).notices == ()


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (RejectionReason.API, RejectionReason.API),
        (RejectionReason.GONE, RejectionReason.NOT_FOUND),
    ],
)
def test_a_refusal_does_not_wait_long_for_a_failing_poll(reason: RejectionReason, told: RejectionReason) -> None:
    state, said = settled(LONG_TRIED, Rejected(reason), RUNNING).state, []
    for now in (2.0, 30.0, 63.0, 90.0):
        decision = decide(state, AWAY, now, Polling())
        state = decision.state
        said += [(now, rejection.reason) for rejection in rejected(decision)]
    assert said == [(63.0, told)]
    hour = JobApiUnavailable("asks to wait", retry_after=3600.0, problem=Problem.RATE_LIMITED)
    held_back = decide(settled(LONG_TRIED, Rejected(reason), RUNNING).state, hour, 2.0, Polling())
    assert [rejection.reason for rejection in rejected(held_back)] == [told]


def test_a_poll_after_a_refusal_ends_even_for_a_long_ended_job() -> None:
    ended = ThreadState(job=Job("j1", "completed"), work=Work(poll_until=0.0))
    settlement = settled(FOLLOW_UP, Rejected(RejectionReason.API), ended, now=9_000.0)
    assert settlement.poll_in == Polling().fastest
    assert decide(settlement.state, JobObserved(Job("j1", "completed")), 9_002.0, Polling()).next_poll_in is None


@pytest.mark.parametrize("reason", [RejectionReason.API, RejectionReason.GONE, RejectionReason.ARCHIVED])
def test_a_follow_up_to_a_known_archived_job_is_explained_at_once(reason: RejectionReason) -> None:
    settlement = settled(FOLLOW_UP, Rejected(reason, "it is archived"), ThreadState(job=Job("j1", "archived")))
    assert [rejection.reason for rejection in rejected(settlement)] == [RejectionReason.ARCHIVED]
    assert settlement.state.announcements.unexplained == ()


def test_a_follow_up_an_archived_job_accepts_is_not_called_on_its_way() -> None:
    settlement = settled(FOLLOW_UP, Accepted(Job("j1", "archived")))
    assert settlement.request_state is RequestState.ACCEPTED
    assert settlement.reaction is Reaction.PROBLEM
    assert rejected(settlement)[-1].reason is RejectionReason.ACCEPTED_WHILE_ARCHIVED


@pytest.mark.parametrize(
    ("job", "ended"), [("active", False), ("queued", False), ("completed", True), ("failed", True)]
)
def test_a_threads_advice_about_a_follow_up_in_doubt_depends_on_its_job(job: str, *, ended: bool) -> None:
    (notice,) = settled(FOLLOW_UP, Uncertain("timeout"), ThreadState(job=Job("j1", job))).notices
    assert notice.message == RequestUncertain(summary(FOLLOW_UP), job_ended=ended)
    assert summary(FOLLOW_UP).text == "More"


def test_a_notice_quotes_only_the_beginning_of_a_follow_up() -> None:
    long = replace(FOLLOW_UP, text="word " * 9_999)
    (notice,) = settled(long, Uncertain("timeout")).notices
    assert isinstance(notice.message, RequestUncertain)
    assert len(notice.message.request.text) == 200


LIMITED = JobApiUnavailable("asks to wait", retry_after=1_800.0, problem=Problem.RATE_LIMITED, words="100 an hour")
BUSY = JobApiUnavailable("asks to wait", retry_after=1_800.0, problem=Problem.BUSY)


@pytest.mark.parametrize("outcome", [LIMITED, BUSY])
def test_a_waiting_start_says_why_and_until_when(outcome: JobApiUnavailable) -> None:
    settlement = settled(START, outcome, now=1_000_001.0)
    (notice,) = settlement.notices
    assert notice.message == OutageStarted(
        outcome.problem, outcome.reason, outcome.words, 1_001_820, waiting=summary(START)
    )
    state = settlement.state
    assert state.failure.problem_until == 1_001_820
    assert (state.failure.problem, state.failure.problem_text) == (outcome.problem, outcome.words)
    taken = settled(START, Accepted(ACTIVE), state, now=1_001_900.0)
    failure = taken.state.failure
    assert (failure.problem, failure.problem_text, failure.problem_until) == (None, "", None)
    assert taken.notices[0].message == OutageEnded(outcome.problem)


@pytest.mark.parametrize("retry_after", [None, 10.0])
def test_no_time_is_shown_that_the_job_api_did_not_give(retry_after: float | None) -> None:
    waits = replace(LIMITED, retry_after=retry_after)
    state = settled(START, waits).state
    (notice,) = settled(START, waits, state, now=99.0).notices
    assert isinstance(notice.message, OutageStarted)
    assert notice.message.until is None


def test_the_card_follows_the_newest_reason_without_another_notice() -> None:
    state = settled(START, LIMITED, now=1_000_000.0).state
    settlement = settled(START, AWAY, state, now=1_001_900.0)
    assert settlement.notices == ()
    assert (settlement.state.failure.problem, settlement.state.failure.problem_text) == (Problem.OUT_OF_REACH, "")
    assert settlement.state.failure.problem_until is None


def test_a_waiting_follow_up_is_named_and_is_no_fault_of_its_job() -> None:
    settlement = settled(FOLLOW_UP, LIMITED)
    (notice,) = settlement.notices
    assert isinstance(notice.message, OutageStarted)
    assert (notice.key, notice.message.waiting) == ("r2/out", RequestSummary("r2", "U1", RequestKind.FOLLOW_UP, "More"))
    assert settlement.state.failure.problem is None


def test_a_request_that_did_not_arrive_waits_and_is_reported_once() -> None:
    first = settled(START, AWAY)
    assert first.request_state is RequestState.WAITING
    assert first.notices == ()
    lasting = settled(START, AWAY, first.state, now=61.0)
    assert [type(notice.message) for notice in lasting.notices] == [OutageStarted]
    assert settled(START, AWAY, lasting.state, now=99.0).notices == ()


def test_retry_after_and_backoff_bound_the_next_attempt() -> None:
    assert settled(START, JobApiUnavailable("asks to wait", retry_after=500.0)).due_in == 500.0
    assert settled(replace(START, attempts=99), AWAY).due_in <= 75.0


@pytest.mark.parametrize("refusal", [*(replace(REFUSED, status=status) for status in (402, 404, 451)), GONE])
@pytest.mark.parametrize("request_", [replace(LONG_TRIED, id="r1", kind=RequestKind.START), LONG_TRIED], ids=str)
def test_a_refusal_of_a_repeated_request_leaves_it_in_doubt(request_: Request, refusal: Rejected) -> None:
    """The first attempt may have been accepted before the quota was used up, or the project or the job was gone."""
    settlement = settled(replace(request_, uncertain=True), refusal, RUNNING)
    assert settlement.request_state is RequestState.UNCERTAIN
    assert [type(notice.message) for notice in settlement.notices] == [RequestUncertain]
    assert settled(request_, refusal, RUNNING).request_state is RequestState.REJECTED


def test_a_rejected_api_key_holds_requests_and_is_reported_at_once() -> None:
    settlement = settled(START, JobApiUnavailable("no", status=403, retry_after=60.0))
    assert settlement.request_state is RequestState.WAITING
    assert settlement.notices[0].message == AccessDenied(403, waiting=summary(START))
    assert settlement.due_in == 60.0


FILE = PromptFile("f1", "a.png", "image/png")


def said(text: str, at: float, person: str = "UANA") -> Request:
    """A waiting follow-up."""
    written = Request(text, "t", RequestKind.FOLLOW_UP, text, person, text, f"{at:.6f}", at + 0.1)
    return replace(written, state=RequestState.WAITING)


FIRST = said("first", 100.0)


def names(*following: Request, stopped_at: tuple[float, ...] = (), seconds: float = 3.0) -> list[str]:
    return [request.text for request in merged_with(FIRST, following, stopped_at, seconds)]


def test_replies_in_quick_succession_are_merged() -> None:
    """The time counts from the previous one, not from the first."""
    assert names(said("a", 103.0), said("b", 105.9), said("c", 109.0)) == ["a", "b"]


def test_nothing_is_merged_when_disabled() -> None:
    """With 0 seconds, even simultaneous replies are separate."""
    assert names(said("a", 100.0), seconds=0) == []


@pytest.mark.parametrize(
    "between",
    [
        said("x", 101.5, "UBEN"),
        replace(said("x", 101.5), state=RequestState.PREPARING),
        replace(said("x", 101.5), uncertain=True),
        replace(said("x", 101.5), merged_into="other"),
    ],
    ids=["another person's", "not prepared yet", "may have arrived", "of another message"],
)
def test_anything_in_between_ends_the_merge(between: Request) -> None:
    """The order is kept: later replies are not sent before it."""
    assert names(said("a", 101.0), between, said("b", 102.0)) == ["a"]


def test_a_merged_message_is_bounded() -> None:
    """Neither in requests nor in characters: the rest is sent next."""
    many = [said(f"m{n}", 100.0 + n) for n in range(2 * MOST_MERGED)]
    assert len(merged_with(FIRST, many, (), 3.0)) == MOST_MERGED - 1
    assert names(said("a" * (MOST_CHARACTERS - 5), 101.0), said("b", 102.0)) == ["a" * (MOST_CHARACTERS - 5)]


def test_merged_words_and_contexts_are_in_order() -> None:
    """Under the first one's id, which is the key; a duplicate file is sent once."""
    first = replace(FIRST, context=RequestContext("earlier", (FILE,)))
    others = [said("a", 101.0), replace(said("b", 102.0), context=RequestContext("later", (FILE,)))]
    one = as_one(first, others)
    assert (one.id, one.text) == ("first", "first\n\na\n\nb")
    assert one.context == RequestContext("earlier\n\nlater", (FILE,))
    assert as_one(FIRST, []) is FIRST
    assert as_one(FIRST, [said("a", 101.0)]).context is None
