"""The effects of a job's details: announced once, shown at a limited rate, and nothing without details."""

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.worlds.polled_job import PolledJob, Seen

from bot.domain.jobs.job import NO_DETAILS, SHOWN_ANSWER, JobReport, Progress, QuestionField, digest
from bot.domain.jobs.observe import JobObserved, decide
from bot.domain.jobs.poll_pace import PENDING_SLOWEST, Polling, next_poll_in
from bot.jobapi import models
from bot.jobapi.models import (
    Changes,
    FieldKind,
    FileChange,
    Job,
    JobDetails,
    PlanStep,
    PullRequestDetails,
    PullRequestState,
    QuestionOption,
    StepStatus,
)
from bot.notices.job import JobActiveAgain, JobFailed, JobFinished, PullRequestFound, QuestionAsked
from bot.notices.notice import NewNotice, NoticeContent
from bot.notices.pictures import PicturesShown

pytestmark = pytest.mark.promise("agent's words")

POLLING = Polling()
LINK = "https://example.org/pull/1"
WHICH = "Which of the two guides?"


def job(status: str = "active", details: JobDetails | None = None, link: str | None = None) -> Job:
    return Job("j1", status, pr_link=link, details=details)


def ended(summary: str = "", revision: str = "", link: str | None = LINK, **details: Any) -> Job:
    return job("completed", JobDetails(summary=summary, revision=revision, **details), link)


def first_round(*, link: str | None = LINK) -> PolledJob:
    """A job that has ended, at the first commit, and was followed up."""
    polled = PolledJob()
    polled.see(job(), ended("Done.", "a1", link), "follow-up")
    return polled


def report(news: list[NewNotice]) -> JobReport:
    (message,) = [each.message for each in news if isinstance(each.message, JobFinished | JobFailed)]
    assert message.report is not None
    return message.report


def questions(news: list[NewNotice]) -> list[tuple[str, str]]:
    return [(m.question, m.person_id) for m in (each.message for each in news) if isinstance(m, QuestionAsked)]


def test_without_details_only_the_status_of_an_end_is_shown() -> None:
    play = PolledJob()
    (finished,) = play.see(job(), job("completed", link=LINK))
    assert finished.message == JobFinished(LINK, new=True, report=None)
    play.follow_up()
    (failed,) = play.see(job("failed", NO_DETAILS))
    assert failed.message == JobFailed(report=None, link=LINK)
    assert play.state.work.progress == Progress()


def test_an_answer_is_in_its_end_notice_only() -> None:
    play, answering = PolledJob(), ended("I *shortened* it.", "a1")
    answer = report(play.see(job(), answering)).answer
    assert answer is not None
    assert (answer.text, answer.cut) == ("I *shortened* it.", False)
    assert "shortened" not in repr(play.state)
    assert play.see(answering) == []


def test_a_long_answer_is_cut_between_words_and_identified_by_digest() -> None:
    summary = "word " * 2_000
    answer = report(PolledJob().see(job(), job("completed", JobDetails(summary=summary)))).answer
    assert answer is not None
    assert answer.text.endswith("word…")
    assert len(answer.text) <= SHOWN_ANSWER + 1
    assert (answer.id, answer.cut) == (digest(summary), True)


@pytest.mark.parametrize(
    ("end", "unchanged"),
    [
        (ended(reason="It is short already.", revision="a1"), True),
        (ended(revision="b2"), False),
        (ended(revision="a1", link="https://x.org/2"), False),
        (ended("Done again."), None),
    ],
    ids=["same commit", "new commit", "new pull request", "unknown"],
)
def test_a_follow_up_changed_nothing_if_that_is_known(end: Job, *, unchanged: bool | None) -> None:
    told = report(first_round().see(job(), end))
    assert end.details is not None
    assert (told.unchanged, told.reason, told.changes) == (unchanged, end.details.reason or "", None)


def test_the_newest_known_commit_counts() -> None:
    """It may be that of the round before the last."""
    polled = first_round()
    told = report(polled.see(job(), ended("Done again."), "follow-up", job(), ended(revision="a1")))
    assert told.unchanged is True


def test_a_first_round_without_changes_and_link_changed_nothing() -> None:
    assert report(PolledJob().see(job(), ended(link=None, changes=Changes()))).unchanged is True
    one = Changes(files=(FileChange(path="a.md"),), file_count=1)
    assert report(PolledJob().see(job(), ended(link=None, changes=one))).changes == one


def test_an_end_never_seen_active_is_detected_by_its_details() -> None:
    play = first_round()
    assert play.see(ended("Done.", "a1")) == []
    (again,) = play.see(ended("Shorter now.", "b2"))
    assert isinstance(again.message, JobFinished)
    assert play.see(ended("Shorter still.", "c3")) == []


def test_an_end_never_seen_active_is_detected_after_one_without_details() -> None:
    """The earlier end may have been a stop; within one round an end is announced once, even
    if its details come late.
    """
    play, answer = PolledJob(), JobDetails(summary="Done.", revision="r1")
    play.see(job(), job("completed", JobDetails()))
    assert play.see(job("completed", answer)) == []
    play.follow_up()
    (again,) = play.see(job("completed", answer, LINK))
    assert isinstance(again.message, JobFinished)
    assert report([again]).answer is not None
    assert play.see(job("completed", answer, LINK)) == []


def test_a_question_is_asked_once_and_answered_by_the_next_follow_up() -> None:
    play, asking = PolledJob(), job(details=JobDetails(question=WHICH))
    play.see(job())
    assert questions(play.see(asking)) == [(WHICH, "")]
    assert play.state.work.question
    assert play.see(asking, asking) == []
    play.follow_up("UBEN")
    assert play.see(asking) == [], "it still stands there, but is answered"
    assert not play.state.work.question
    play.see(job())
    assert questions(play.see(asking)) == [(WHICH, "UBEN")], "asked anew"


def test_choices_are_shown_only_with_their_question() -> None:
    options = (QuestionOption(label="A"), QuestionOption(label="B"))
    told = (models.QuestionField(title="Which?", kind=FieldKind.CHOICE, options=options),)
    fields = (QuestionField("Which?", FieldKind.CHOICE, ("A", "B")),)
    asking, play = JobDetails(summary="I wait.", question=WHICH, question_fields=told), PolledJob()
    play.see(job())
    (asked,) = [each.message for each in play.see(job(details=asking)) if isinstance(each.message, QuestionAsked)]
    assert asked.fields == fields
    assert report(play.see(job("completed", asking))).question_fields == ()
    other = PolledJob()
    assert report(other.see(job(), job("completed", asking))).question_fields == fields


def test_a_question_about_another_persons_follow_up_mentions_them() -> None:
    play = PolledJob()
    play.see(job(), ended("Done."))
    play.follow_up("UBEN")
    told = play.see(job(), ended("Well.", question=WHICH))
    assert (report(told).question, questions(told)) == (WHICH, [])
    assert play.state.work.question
    assert [m.person_id for m in (each.message for each in told) if isinstance(m, JobFinished)] == ["UBEN"]
    assert play.state.people.asker_id == "", "whom it was about is not kept any longer"


def test_a_question_asked_while_active_is_not_repeated_by_the_end() -> None:
    play = PolledJob()
    play.see(job(), job(details=JobDetails(question=WHICH)))
    told = play.see(job("completed", JobDetails(summary="I wait.", question=WHICH)))
    assert report(told).question == ""


def steps(done: int, of: int = 30) -> tuple[PlanStep, ...]:
    return tuple(
        PlanStep(title=f"Step {n}", status=StepStatus.COMPLETED if n < done else StepStatus.PENDING) for n in range(of)
    )


def test_a_completed_step_speeds_up_polling_but_current_activity_does_not() -> None:
    play = PolledJob()
    play.see(job())
    changed_at = play.state.work.changed_at
    play.see(job(details=JobDetails(activity="Reading")))
    assert play.state.work.changed_at == changed_at
    play.see(job(details=JobDetails(plan=steps(1))))
    assert play.state.work.changed_at > changed_at


def test_no_activity_outlasts_an_end_however_soon_that_comes() -> None:
    play = PolledJob(every=1.0)
    play.see(job(details=JobDetails(activity="Reading")), job("completed", link=LINK))
    assert play.state.work.progress == Progress()


def test_the_pull_requests_state_is_on_the_card() -> None:
    play = PolledJob()
    play.see(job(), job("completed", link=LINK))
    merged = JobDetails(pull_request=PullRequestDetails(state=PullRequestState.MERGED))
    assert play.see(job("completed", merged, LINK)) == []
    assert play.state.work.progress.pull_request is PullRequestState.MERGED


PENDING = JobDetails(pull_request=PullRequestDetails(state=PullRequestState.PENDING, reason="GitHub is away"))


def test_a_pending_pull_request_is_shown_with_its_reason_and_polled_for() -> None:
    """However late it comes, it is posted; meanwhile the job is polled slowly."""
    play = PolledJob()
    play.see(job(), job("completed", PENDING))
    assert play.state.work.progress.pull_request is PullRequestState.PENDING
    assert play.state.work.progress.why_pending == "GitHub is away"
    week_later = play.state.work.changed_at + 7 * 24 * 3600
    assert next_poll_in(play.state, week_later, POLLING, jitter=0.5) == PENDING_SLOWEST
    play.now = week_later
    told = play.see(job("completed", JobDetails(pull_request=PullRequestDetails(state=PullRequestState.OPEN)), LINK))
    assert [type(each.message) for each in told] == [PullRequestFound]
    assert next_poll_in(play.state, play.now + POLLING.grace, POLLING, jitter=0.5) is None


@pytest.mark.parametrize(("status", "days"), [("archived", 1), ("completed", 31)])
def test_polling_for_a_pending_pull_request_ends(status: str, days: int) -> None:
    """An archived job gets none any more, and after a month it is not expected."""
    play = PolledJob()
    play.see(job(), job(status, PENDING))
    later = play.state.work.changed_at + days * 24 * 3600
    assert next_poll_in(play.state, later, POLLING, jitter=0.5) is None


any_details = st.none() | st.builds(
    JobDetails,
    summary=st.sampled_from(["", "Done.", "Done again."]),
    reason=st.sampled_from(["", "No such page."]),
    question=st.sampled_from(["", WHICH, "Why?"]),
    plan=st.sampled_from([(), steps(1), steps(2)]),
    activity=st.sampled_from(["", "Reading"]),
    revision=st.sampled_from(["", "a1", "b2"]),
    changes=st.sampled_from([None, Changes(), Changes(files=(FileChange(path="a.md"),), file_count=1)]),
)
looks = st.lists(
    st.tuples(
        st.booleans(),
        st.builds(job, st.sampled_from(["active", "completed", "failed", "queued"]), any_details),
        st.floats(0.5, 60.0),
    ),
    max_size=30,
)


@given(looks)
def test_with_any_details_ends_and_open_questions_are_announced_once(
    history: list[tuple[bool, Job, float]],
) -> None:
    """An end is announced again only after another word about the job's status."""
    play, said, last_question = PolledJob(), list[tuple[int, str]](), ""
    for follow_up, seen, passed in history:
        if follow_up and play.state.job:
            play.follow_up()
            last_question = ""
        play.now += passed
        decision = decide(play.state, JobObserved(seen), play.now, POLLING)
        play.state = decision.state
        question = (seen.details.question or "") if seen.details else ""
        for message in (notice.message for notice in decision.notices):
            if isinstance(message, JobFinished | JobFailed | JobActiveAgain):
                said.append((play.state.round, message.kind))
            if isinstance(message, JobFinished | JobFailed):
                assert message.report is None or seen.details is not None, "claimed without details"
            asked = _asked(message)
            assert not asked or (asked == question and asked != last_question), "asked twice"
        last_question = question
        assert play.state.job is None or play.state.job.details is None, "texts by agents are not kept"
    assert all(earlier != later for earlier, later in itertools.pairwise(said))


def _asked(message: NoticeContent) -> str:
    if isinstance(message, JobFinished | JobFailed):
        return message.report.question if message.report else ""
    return message.question if isinstance(message, QuestionAsked) else ""


@given(st.lists(st.tuples(any_details, st.floats(0.1, 9.0)), max_size=40))
def test_card_edits_stay_throttled_at_any_pace_of_progress(
    history: list[tuple[JobDetails | None, float]],
) -> None:
    play, edits = PolledJob(every=0.0), []
    play.see(job())
    for details, passed in history:
        play.now += passed
        plain = details.model_copy(update={"question": None}) if details else None
        before = play.cards
        assert play.see(job(details=plain)) == []
        edits += [play.now] if play.cards > before else []
    assert all(later - earlier >= POLLING.card_every for earlier, later in itertools.pairwise(edits))


def test_each_rounds_start_and_end_times_are_recorded() -> None:
    """As observed; the time between two rounds does not count."""
    play = PolledJob()

    def times(*seen: Seen) -> tuple[float, float]:
        play.see(*seen)
        return play.state.work.work_began_at, play.state.work.work_ended_at

    assert times(job(), job()) == (1_000.0, 0.0)
    assert times(job("completed"), job("completed")) == (1_000.0, 1_020.0)
    assert times("follow-up", job()) == (1_040.0, 0.0)
    assert times(job("failed")) == (1_040.0, 1_050.0)
    before = play.cards
    assert times(ended("Done again.")) == (0.0, 1_060.0), "a round that was never seen active has only an end"
    assert play.cards == before + 1


def test_the_card_keeps_the_changed_pages_while_they_are_missing() -> None:
    """The pull request is unchanged until something newer is known."""
    first, second = (Changes(files=(FileChange(path=name),), file_count=1) for name in ("a.md", "b.md"))
    play = PolledJob()
    play.see(job(), job("completed", JobDetails(changes=first), LINK))
    play.follow_up()
    play.see(job("active", JobDetails(activity="Reading"), LINK))
    assert play.state.work.progress.changes == first
    play.see(job("completed", JobDetails(changes=second), LINK))
    assert play.state.work.progress.changes == second


def muted(play: PolledJob, by: str) -> None:
    play.state = replace(play.state, people=replace(play.state.people, muted_by=by))


def test_a_muted_job_announces_only_failures_and_pull_requests() -> None:
    """Omitted notices are not posted later, except for an open question."""
    play = PolledJob()
    play.see(job())
    muted(play, "UBEN")
    assert [notice.message.kind for notice in play.see(job("active", link=LINK))] == ["pull_request_found"]
    assert play.see(job("active", JobDetails(question=WHICH), LINK)) == []
    assert [notice.message.kind for notice in play.see(job("failed", link=LINK))] == ["job_failed"]
    play.follow_up()
    assert play.see(job("active", link=LINK)) == []
    muted(play, "")
    assert play.see(job("active", link=LINK)) == []


@pytest.mark.parametrize("status", ["active", "completed"])
def test_a_question_that_came_while_muted_is_asked_once_after_that(status: str) -> None:
    play, asking = PolledJob(), job(status, JobDetails(question=WHICH))
    play.see(job())
    play.follow_up("UBEN")
    play.see(job())
    muted(play, "UBEN")
    assert play.see(asking, asking) == []
    assert play.state.work.question, "the card shows it all the same"
    muted(play, "")
    assert next_poll_in(play.state, play.now + 9_999.0, POLLING, jitter=0.5) is not None
    assert questions(play.see(asking)) == [(WHICH, "UBEN")]
    assert play.see(asking) == []
    muted(play, "UBEN")
    muted(play, "")
    assert play.see(asking) == []


def test_a_question_that_was_told_or_settled_while_muted_is_not_asked_after_that() -> None:
    asking = JobDetails(question=WHICH)
    failed, gone, answered = PolledJob(), PolledJob(), PolledJob()
    for play in (failed, gone, answered):
        play.see(job())
        muted(play, "UBEN")
        play.see(job(details=asking))
    assert report(failed.see(job("failed", asking))).question == WHICH
    gone.see(job())
    answered.follow_up()
    answered.see(job(details=asking))
    for play in (failed, gone, answered):
        muted(play, "")
    assert failed.see(job("failed", asking)) == gone.see(job()) == answered.see(job(details=asking)) == []


def test_an_earlier_link_is_not_shown_for_a_pending_pull_request() -> None:
    """The first pull request was merged, and the second cannot be opened yet."""
    play = PolledJob()
    play.see(job(), job("completed", JobDetails(revision="a1"), LINK))
    play.follow_up()
    pending = PullRequestDetails(state=PullRequestState.PENDING, reason="GitHub is away")
    why = "The change was pushed, but has no pull request yet."
    told = play.see(job(), job("completed", JobDetails(reason=why, revision="b2", pull_request=pending)))
    (finished,) = [each.message for each in told if isinstance(each.message, JobFinished)]
    assert (finished.link, finished.report and finished.report.reason) == ("", why)
    second = "https://example.org/pull/2"
    (found,) = play.see(job("completed", JobDetails(revision="b2"), second))
    assert found.message == PullRequestFound(second, changed=True)


def pictured(*ids: str, state: PullRequestState = PullRequestState.OPEN, **fields: Any) -> JobDetails:
    pictures = [models.Picture(id=each, path=f"{each}.png", mimetype="image/png", size=9, **fields) for each in ids]
    return JobDetails(summary="Done.", pictures=tuple(pictures), pull_request=PullRequestDetails(state=state))


def pictures(news: list[NewNotice]) -> list[list[str]]:
    return [[p.id for p in each.message.pictures] for each in news if isinstance(each.message, PicturesShown)]


def test_pictures_follow_the_end_with_the_pull_request_each_once() -> None:
    play = PolledJob()
    told = play.see(job("active", pictured("a")), job("completed", pictured("a", "b", "a"), LINK))
    assert [type(each.message) for each in told] == [JobFinished, PicturesShown]
    assert pictures(told) == [["a", "b"]]
    assert play.see(job("completed", pictured("a", "b"), LINK)) == []
    play.follow_up()
    assert pictures(play.see(job("active", pictured("b", "c"), LINK))) == []
    assert pictures(play.see(job("failed", pictured("b", "c"), LINK))) == []
    play.follow_up()
    pending = pictured("b", "c", state=PullRequestState.PENDING)
    assert pictures(play.see(job(), job("completed", pending))) == []
    assert pictures(play.see(job("completed", pictured("b", "c"), LINK))) == [["c"]]
    assert len({each.key for each in play.told}) == len(play.told)


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, True),
        ({"mimetype": "image/webp"}, False),
        ({"mimetype": None}, False),
        ({"size": None}, False),
        ({"size": models.LARGEST_PICTURE + 1}, False),
        ({"size": models.LARGEST_PICTURE}, True),
    ],
)
def test_pictures_that_slack_cannot_show_are_only_named(fields: dict[str, Any], *, shown: bool) -> None:
    first = pictured("a").pictures[0].model_copy(update=fields)
    rest = pictured("b", "c", "d").pictures
    details = pictured("a").model_copy(update={"pictures": (first, *rest)})
    (notice,) = [each.message for each in PolledJob().see(job(), job("completed", details, LINK))][1:]
    assert isinstance(notice, PicturesShown)
    expected = ["a", "b"] if shown else ["b", "c"]
    assert [each.id for each in notice.pictures if each.shown] == expected
