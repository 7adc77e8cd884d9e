"""The text about an end: the known details, and nothing more."""

import pytest

from bot.domain.jobs.details import Answer, JobReport, Progress
from bot.domain.threads.thread import Thread, ThreadState, Work
from bot.jobapi.models import Changes, FileChange, Job, PlanStep, PullRequestState, StepStatus
from bot.notices.answers import AnswerMissing, AnswerRequested
from bot.notices.job import JobFailed, JobFinished, JobStopped, QuestionAsked
from bot.notices.notice import Notice, NoticeContent
from bot.slack.rendering.cards import card, state_line
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.notices import messages

LINK = "https://git.example/1"
KEPT = "What it changed in {} is kept. Reply here to go on from there, or write `!discard`."
THREAD = Thread("th1", "T1", "C1", "U0ANA", "Do it", "p", 0.0, ts="1.1")


def words(message: NoticeContent) -> str:
    made = messages(THREAD, Notice(1, "k", "th1", message, created_at=0.0), MessageContext())
    return "\n".join(each.text for each in made)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            JobFinished(LINK, again=True, report=JobReport(unchanged=True, reason="It is short already.")),
            f"Done. Nothing was changed:\n>It is short already.\nThe pull request is as it was: <{LINK}>",
        ),
        (JobFinished(report=JobReport(unchanged=True)), "Done. Nothing was changed."),
        (JobFinished(report=JobReport(unchanged=True, reason="Nothing was changed.")), "Done. Nothing was changed."),
        (
            JobFinished(report=JobReport(unchanged=True, reason="Nothing was changed: it is short already.")),
            "Done. Nothing was changed:\n>it is short already.",
        ),
        (
            JobFinished(report=JobReport(unchanged=True, reason="Done. Nothing was changed. Try `Fix typos`.")),
            "Done. Nothing was changed:\n>Try `Fix typos`.",
        ),
        (
            JobFinished(report=JobReport(unchanged=True, reason="Nothing was changed that matters.")),
            "Done. Nothing was changed:\n>Nothing was changed that matters.",
        ),
        (
            JobFailed(report=JobReport(reason="The job failed: no credit")),
            "The job failed:\n>no credit\nReply here to try again, or start over with `/docs`.",
        ),
        (
            JobFinished(report=JobReport(reason="stopped by Ben")),
            "Done, without a pull request:\n>stopped by Ben",
        ),
        (
            JobFinished(LINK, again=True, report=JobReport(unchanged=False)),
            f"Done. The pull request was updated: <{LINK}>",
        ),
        (
            JobFinished(LINK, new=True, report=JobReport(unchanged=False, reason="stopped by Ben")),
            f"Done. Here's the pull request: <{LINK}>\n>stopped by Ben",
        ),
        (
            JobFinished(LINK, again=True, report=JobReport(answer=Answer("It *is*.", "0a"))),
            f"Done. Check the pull request: <{LINK}>\nIt *is*.",
        ),
        (
            JobFailed(report=JobReport(reason="No such key.")),
            "The job failed:\n>No such key.\nReply here to try again, or start over with `/docs`.",
        ),
        (
            JobFailed(report=JobReport(reason="Out of credit.", partial_files=3)),
            f"The job failed:\n>Out of credit.\n{KEPT.format('3 files')}",
        ),
        (
            JobFailed(report=JobReport(reason="The budget is used up.", question="May it go on?", partial_files=3)),
            "The job failed:\n>The budget is used up.\n"
            + KEPT.format("3 files")
            + "\nThe agent asks:\n>May it go on?\nReply here to answer.",
        ),
        (
            JobFailed(LINK, report=JobReport(partial_files=1)),
            f"The job failed without giving a reason.\n{KEPT.format('1 file')}\nWhat was done so far: <{LINK}>",
        ),
        (
            JobFinished(
                LINK,
                new=True,
                report=JobReport(
                    changes=Changes(files=(FileChange(path="a.md", added=1),), file_count=1, added=1, removed=0)
                ),
            ),
            f"Done. Here's the pull request: <{LINK}>\n1 file changed (+1).",
        ),
        (QuestionAsked("Which?"), "The agent asks:\n>Which?\nReply here to answer."),
    ],
)
def test_the_details_of_an_end_are_shown(message: NoticeContent, said: str) -> None:
    assert words(message) == f"<@U0ANA> {said}"


def test_an_unavailable_whole_answer_is_explained() -> None:
    told = {words(AnswerRequested("U0BEN", "0a", missing=why)) for why in AnswerMissing}
    assert len(told) == len(AnswerMissing)


def card_text(state: ThreadState) -> str:
    return card(Thread("th1", "T1", "C1", "U0ANA", "Do it", "p", 0.0, ts="1.1", state=state), MessageContext()).text


@pytest.mark.parametrize("became", [PullRequestState.MERGED, PullRequestState.CLOSED])
def test_a_card_shows_the_pull_requests_state(became: PullRequestState) -> None:
    state = ThreadState(job=Job("j1", "completed", pr_link=LINK), work=Work(progress=Progress(pull_request=became)))
    assert f"Finished: the pull request is {became}" in card_text(state)
    assert f"<{LINK}> ({became})" in card_text(state)


def test_a_card_shows_the_next_steps_of_a_long_plan() -> None:
    plan = tuple(
        PlanStep(title=f"Step {n}", status=StepStatus.COMPLETED if n < 15 else StepStatus.PENDING) for n in range(20)
    )
    text = state_line(ThreadState(job=Job("j1", "active"), work=Work(progress=Progress(plan))), MessageContext())
    assert "Step 15" in text
    assert "Step 5" not in text
    assert "_15 of 20 steps done_" in text


def test_the_person_who_stopped_a_job_is_named_once_apart_from_the_reason() -> None:
    """The one mention is that of the requester."""
    report = JobReport(reason="Stopped in the middle.")
    made = words(JobStopped("U0BEN", report=report))
    stopped = "<@U0ANA> Your job was stopped; the card says by whom:\n>Stopped in the middle.\n"
    assert made.startswith(f"{stopped}There's no pull request.")
    assert words(JobStopped("U0ANA")).startswith("Stopped by <@U0ANA>.\nThere's no pull request.")
