from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.decide import Decision, NotFound, OutOfReach, Polling, Seen, Sighting, decide, open_round
from bot.domain.models import Job, Known, Saying, Trouble, What

POLLING = Polling()
LINK = "https://example.org/pull/1"
OTHER = "https://example.org/pull/2"


def job(status: str = "active", link: str | None = None) -> Job:
    return Job("j1", status, pr_link=link)


def follow(*sightings: Sighting, known: Known | None = None, every: float = 10.0) -> tuple[Known, list[Saying]]:
    """Runs sightings through decide(), `every` seconds apart."""
    known, now = known or Known(), 1_000.0
    said: list[Saying] = []
    for sighting in sightings:
        decision = decide(known, sighting, now, POLLING)
        known, now = decision.known, now + every
        said.extend(decision.sayings)
    return known, said


def take(known: Known, answer: Job) -> Decision:
    """A follow-up goes out and is taken."""
    return decide(open_round(known, 2_000.0, POLLING), Seen(answer), 2_000.0, POLLING)


def words(said: list[Saying]) -> list[What]:
    return [saying.what for saying in said]


def test_a_job_is_started_then_finished_with_its_link() -> None:
    known, said = follow(Seen(job()), Seen(job()), Seen(job("completed", LINK)), Seen(job("completed", LINK)))
    assert words(said) == [What.STARTED, What.FINISHED]
    assert said[1].facts["link"] == LINK
    assert known.links == (LINK,)


def test_a_create_may_be_answered_with_a_job_that_has_ended() -> None:
    _, said = follow(Seen(job("completed", LINK)))
    assert words(said) == [What.STARTED, What.FINISHED]


@pytest.mark.parametrize(("status", "what"), [("failed", What.FAILED), ("archived", What.ARCHIVED)])
def test_each_end_is_said_once(status: str, what: What) -> None:
    _, said = follow(Seen(job()), Seen(job(status)), Seen(job(status)))
    assert words(said) == [What.STARTED, what]


def test_a_link_that_comes_late_is_announced() -> None:
    _, said = follow(Seen(job()), Seen(job("completed")), Seen(job("completed", LINK)))
    assert words(said) == [What.STARTED, What.FINISHED, What.LINK]
    assert said[1].facts["link"] == ""


def test_a_link_of_a_later_round_may_come_late_too() -> None:
    known, _ = follow(Seen(job()), Seen(job("completed", LINK)))
    taken = take(known, job("active"))
    ended = decide(taken.known, Seen(job("completed")), 2_010.0, POLLING)
    assert ended.next_in is not None
    late = decide(ended.known, Seen(job("completed", OTHER)), 2_020.0, POLLING)
    assert [saying.facts["link"] for saying in late.sayings] == [OTHER]


def test_a_changed_link_is_announced_and_an_old_one_that_returns_is_not() -> None:
    seen = [Seen(job("completed", link)) for link in (LINK, OTHER, LINK)]
    _, said = follow(Seen(job()), *seen)
    assert [saying.facts.get("link") for saying in said[1:]] == [LINK, OTHER]
    assert said[2].facts["changed"] == "yes"


def test_a_link_that_vanishes_stays_on_the_card() -> None:
    known, said = follow(Seen(job("completed", LINK)), Seen(job("completed")))
    assert known.job is not None
    assert known.job.pr_link == LINK
    assert words(said) == [What.STARTED, What.FINISHED]


def test_a_status_that_goes_back_says_nothing_new() -> None:
    _, said = follow(*(Seen(job(status)) for status in ("active", "completed", "active", "completed")))
    assert words(said) == [What.STARTED, What.FINISHED]


def test_a_follow_up_opens_a_round_in_which_the_end_is_said_again() -> None:
    known, _ = follow(Seen(job()), Seen(job("completed", LINK)))
    taken = take(known, job("active"))
    assert words(list(taken.sayings)) == [What.ACTIVE_AGAIN]
    _, said = follow(Seen(job("active")), Seen(job("completed", LINK)), known=taken.known)
    assert words(said) == [What.FINISHED]
    assert said[0].facts == {"link": LINK, "again": "yes"}


def test_what_ends_for_the_first_time_has_not_finished_again() -> None:
    known, _ = follow(Seen(job()))
    _, said = follow(Seen(job("completed", LINK)), known=take(known, job()).known)
    assert said[0].facts == {"link": LINK}


def test_a_follow_up_to_a_job_at_work_is_no_news() -> None:
    known, _ = follow(Seen(job()))
    assert take(known, job()).sayings == ()


def test_after_a_follow_up_an_ended_job_is_looked_at_for_a_while() -> None:
    known, _ = follow(Seen(job("completed", LINK)))
    taken = take(known, job("completed", LINK))
    assert taken.sayings == ()
    assert taken.next_in is not None
    assert decide(taken.known, Seen(job("completed", LINK)), 2_000.0 + POLLING.grace, POLLING).next_in is None


def test_an_unknown_status_is_work_in_progress() -> None:
    known, said = follow(Seen(job("queued")), Seen(job("paused")))
    assert words(said) == [What.STARTED]
    assert known.job is not None
    assert known.job.status == "paused"
    assert decide(known, Seen(job("paused")), 9_999.0, POLLING).next_in is not None


def test_polling_ends_with_the_job_and_goes_on_for_a_late_link() -> None:
    assert decide(Known(), Seen(job("completed", LINK)), 0.0, POLLING).next_in is None
    assert decide(Known(), Seen(job("failed")), 0.0, POLLING).next_in is None
    known = decide(Known(), Seen(job("completed")), 0.0, POLLING).known
    assert decide(known, Seen(job("completed")), 179.0, POLLING).next_in is not None
    assert decide(known, Seen(job("completed")), 180.0, POLLING).next_in is None


def test_polling_slows_down_and_keeps_to_its_bounds() -> None:
    known = Known(job=job(), changed_at=0.0)
    pauses = [decide(known, Seen(job()), now, POLLING).next_in for now in (1.0, 40.0, 4_000.0)]
    assert pauses == [2.0, 10.0, 30.0]


def test_three_misses_in_a_row_mean_that_the_job_is_gone() -> None:
    known, said = follow(Seen(job()), NotFound(), NotFound(), Seen(job()), NotFound(), NotFound())
    assert words(said) == [What.STARTED]
    known, said = follow(NotFound(), NotFound(), known=known)
    assert words(said) == [What.GONE]
    assert known.trouble is Trouble.GONE
    assert decide(known, NotFound(), 1.0, POLLING).next_in is None


def test_an_outage_is_said_once_when_it_lasts_and_once_when_it_is_over() -> None:
    outage = [OutOfReach("can't be reached")] * 40
    _, said = follow(Seen(job()), *outage, Seen(job()), Seen(job()))
    assert words(said) == [What.STARTED, What.OUT_OF_REACH, What.BACK]
    _, said = follow(Seen(job()), *outage[:20], Seen(job()))
    assert words(said) == [What.STARTED]


def test_our_key_is_said_at_once() -> None:
    known, said = follow(Seen(job()), OutOfReach("no", status=401), OutOfReach("no", status=401))
    assert words(said) == [What.STARTED, What.NOT_ALLOWED]
    assert known.trouble is Trouble.NOT_ALLOWED


def test_retry_after_is_obeyed() -> None:
    known, _ = follow(Seen(job()))
    next_in = decide(known, OutOfReach("asks to wait", retry_after=77.0), 1_001.0, POLLING).next_in
    assert next_in is not None
    assert next_in >= 77.0


statuses = st.sampled_from(["active", "completed", "failed", "archived", "paused"])
links = st.sampled_from([None, LINK, OTHER])
sightings = st.one_of(
    st.builds(Seen, st.builds(job, statuses, links)),
    st.just(NotFound()),
    st.builds(OutOfReach, st.just("no"), st.sampled_from([None, 401]), st.sampled_from([None, 5.0])),
)
steps = st.lists(st.tuples(st.booleans(), sightings, st.floats(0.0, 400.0)), max_size=40)


def play(history: list[tuple[bool, Sighting, float]]) -> list[tuple[int, Known, Decision]]:
    """Plays sightings; where the first value is true, a follow-up goes out before."""
    known, now, played = Known(), 0.0, []
    for follow_up, sighting, passed in history:
        now += passed
        if follow_up and known.job:
            known = open_round(known, now, POLLING)
        decision = decide(known, sighting, now, POLLING)
        played.append((decision.known.round, known, decision))
        known = decision.known
    return played


@given(steps)
def test_no_fact_is_said_twice(history: list[tuple[bool, Sighting, float]]) -> None:
    keys = [saying.key for _, _, decision in play(history) for saying in decision.sayings if saying.what != What.GONE]
    assert len(keys) == len(set(keys))


@given(steps)
def test_an_end_is_said_once_a_round_and_a_link_is_announced_once(history: list[tuple[bool, Sighting, float]]) -> None:
    ends: set[tuple[int, What]] = set()
    announced: set[str] = set()
    for turn, _, decision in play(history):
        for saying in decision.sayings:
            if saying.what in {What.FINISHED, What.FAILED, What.ARCHIVED}:
                assert (turn, saying.what) not in ends
                ends.add((turn, saying.what))
            if saying.what is What.LINK:
                assert saying.facts["link"] not in announced
            if saying.facts.get("link"):
                announced.add(saying.facts["link"])


@given(steps)
def test_every_link_that_is_seen_is_told(history: list[tuple[bool, Sighting, float]]) -> None:
    seen, told = set(), set()
    for _, _, decision in play(history):
        if decision.known.job and decision.known.job.pr_link:
            seen.add(decision.known.job.pr_link)
        told |= {saying.facts["link"] for saying in decision.sayings if saying.facts.get("link")}
    assert seen == told


@given(steps)
def test_a_sighting_that_changes_nothing_says_nothing(history: list[tuple[bool, Sighting, float]]) -> None:
    for _, known, _ in play(history):
        if known.job is None or known.out_said or known.trouble:
            continue
        again = decide(known, Seen(known.job), known.changed_at + 1.0, POLLING)
        assert again.sayings == ()
        assert not again.card_changed
        assert replace(again.known, misses=0, out_since=None) == replace(known, misses=0, out_since=None)


@given(steps, st.floats(0.0, 1.0))
def test_the_next_look_keeps_the_floor_and_ends_only_with_the_job(
    history: list[tuple[bool, Sighting, float]], jitter: float
) -> None:
    for _, known, _ in play(history):
        decision = decide(known, Seen(job()), known.changed_at + 1.0, POLLING, jitter=jitter)
        assert decision.next_in is not None
        assert POLLING.fastest <= decision.next_in <= POLLING.slowest * 1.2
