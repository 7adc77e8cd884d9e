"""The card of a job: what it shows, in which words, and the available actions."""

from dataclasses import replace
from typing import Any

import pytest
from support.worlds.thread_states import thread_state

from bot.domain.jobs.details import Progress
from bot.domain.jobs.job import Problem
from bot.domain.projects import ProjectReason
from bot.domain.requests.request import WayIn
from bot.domain.threads.thread import Failure, FollowUpCounts, Thread, ThreadOptions, ThreadState, Work
from bot.jobapi.models import ChangeKind, Changes, FileChange, Job, PlanStep, PullRequestState, StepStatus
from bot.notices.card import duration
from bot.slack.rendering.blocks import MenuItem, menu_value, read_menu_value
from bot.slack.rendering.cards import card
from bot.slack.rendering.message_context import MessageContext, SlackRenderer

CONTEXT = MessageContext(bot_user_id="U0BOT")
SEVERAL = replace(CONTEXT, several_projects=True)
LINK = "https://git.example/team/guides/pull/7"
NOON = 1_700_049_600.0
"""2023-11-15, 12:00 UTC."""
MOMENT = "<!date^1700049600^{time}|12:00 UTC>"
THREAD = Thread("th1", "T1", "C1", "U0ANA", "Fix the guides", "guides", NOON, ts="1.1", card_ts="1.1")
NONE = FollowUpCounts()


def with_state(job: Job | None = None, **known: Any) -> Thread:
    return replace(THREAD, state=thread_state(job=job, **known))


def facts_of(thread: Thread, context: MessageContext = CONTEXT, follow_ups: FollowUpCounts = NONE) -> list[str]:
    """The small print."""
    (block,) = (block for block in card(thread, context, follow_ups).blocks if block["type"] == "context")
    return [element["text"] for element in block["elements"]]


def labels_of(thread: Thread) -> list[str]:
    """The buttons of a card, without the menu."""
    *buttons, _ = card(thread, CONTEXT).blocks[-1]["elements"]
    return [button["text"]["text"] for button in buttons]


def menu_of(thread: Thread) -> list[str]:
    """The labels of its menu."""
    return [option["text"]["text"] for option in card(thread, CONTEXT).blocks[-1]["elements"][-1]["options"]]


@pytest.mark.parametrize("way_in", WayIn)
def test_the_card_names_the_way_in_after_the_state(way_in: WayIn) -> None:
    """The requester and the way in follow the most important facts."""
    message = card(replace(THREAD, options=ThreadOptions(way_in)), CONTEXT)
    assert message.text.startswith("Waiting to be sent to the agent.\n<@U0ANA> ")
    assert "asked: Fix the guides\n" in message.text
    assert message.blocks[1]["text"]["text"].endswith(":\n>Fix the guides")


@pytest.mark.parametrize("reason", ProjectReason)
def test_with_several_projects_the_card_names_the_project_and_why(reason: ProjectReason) -> None:
    """With a single project there is nothing to show."""
    thread = replace(THREAD, options=ThreadOptions(project_reason=reason))
    assert facts_of(thread, SEVERAL)[0].startswith("Project: guides (")
    assert not any(fact.startswith("Project") for fact in facts_of(thread))


def test_a_job_waits_for_the_choice_of_its_project() -> None:
    """Nothing else delays it."""
    undecided = card(replace(THREAD, project=""), SEVERAL)
    assert undecided.text.startswith("Waiting for <@U0ANA> to choose the project.")
    decided = replace(THREAD, options=ThreadOptions(project_reason=ProjectReason.CHOSEN))
    assert card(decided, SEVERAL).text.startswith("Waiting to be sent")


def test_times_are_in_each_readers_zone_with_a_fallback() -> None:
    """Slack fills in the reader's own; clients that cannot do that show UTC."""
    thread = with_state(Job("j1", "active"), work_began_at=NOON + 60)
    asked, began = facts_of(thread)
    assert asked == "Asked: <!date^1700049600^{date_short_pretty} {time} ({ago})|2023-11-15 12:00 UTC>"
    assert began.startswith("At work since: <!date^1700049660^")


def test_the_duration_is_shown_once_the_job_ended() -> None:
    """If its start was never seen, only the end is shown."""
    ended = with_state(Job("j1", "completed"), work_began_at=NOON, work_ended_at=NOON + 754)
    assert facts_of(ended)[-1].endswith("2023-11-15 12:12 UTC> after 12 minutes")
    unseen = replace(ended, state=replace(ended.state, work=replace(ended.state.work, work_began_at=0.0)))
    assert facts_of(unseen)[-1].endswith("2023-11-15 12:12 UTC>")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "less than a minute"),
        (59.9, "less than a minute"),
        (60, "1 minute"),
        (3_599, "59 minutes"),
        (3_600, "1 hour"),
        (7_380, "2 hours and 3 minutes"),
        (90_061, "1 day and 1 hour"),
        (172_860, "2 days and 1 minute"),
    ],
)
def test_durations_are_written_in_words(seconds: float, words: str) -> None:
    """In its two largest units."""
    assert duration(SlackRenderer(MessageContext()), seconds) == words


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (ThreadState(Job("j1", "active")), "Follow-ups: 2 sent, 1 waiting"),
        (ThreadState(), "Follow-ups: 2 sent, 1 waiting for the job to begin"),
        (
            ThreadState(Job("j1", "active"), failure=Failure(problem=Problem.RATE_LIMITED, problem_until=int(NOON))),
            f"Follow-ups: 2 sent, 1 waiting for the agent's hourly limit, at least until {MOMENT}",
        ),
        (
            ThreadState(Job("j1", "active"), failure=Failure(problem=Problem.OUT_OF_REACH)),
            "Follow-ups: 2 sent, 1 waiting for the agent to be back",
        ),
        (
            ThreadState(failure=Failure(problem=Problem.UNCERTAIN)),
            "Follow-ups: 2 sent, 1 waiting until it's clear that this started",
        ),
    ],
)
def test_the_card_counts_waiting_follow_ups_and_explains_why(state: ThreadState, words: str) -> None:
    """In one sentence."""
    assert facts_of(replace(THREAD, state=state), CONTEXT, FollowUpCounts(2, 1))[-1] == words


def test_the_card_names_who_muted_it_and_what_that_means() -> None:
    """It can be undone in the menu."""
    muted = with_state(Job("j1", "active"), muted_by="U0BEN")
    assert facts_of(muted)[-1].startswith("Muted: by <@U0BEN>; replies aren't sent")
    assert "Unmute" in menu_of(muted)
    assert "Mute" not in menu_of(muted)
    assert "Follow up…" not in labels_of(muted)


def test_only_the_first_of_many_changed_pages_are_named() -> None:
    """The others are counted."""
    files = tuple(
        FileChange(path=f"p{number}.md", kind=ChangeKind.ADDED, title=f"Page {number}") for number in range(8)
    )
    known = Progress(changes=Changes(files=files, file_count=11))
    message = card(with_state(Job("j1", "completed", pr_link=LINK), progress=known), CONTEXT)
    assert "• Page 7, new\n• and 3 more" in message.blocks[2]["text"]["text"]
    assert "changes 11 files: Page 0, new, Page 1" in message.text
    assert "•" not in message.text


KEPT = Progress(partial_files=3)
PENDING = Progress(pull_request=PullRequestState.PENDING)


@pytest.mark.parametrize(
    ("thread", "labels"),
    [
        (THREAD, ["Stop"]),
        (with_state(problem=Problem.RATE_LIMITED), ["Stop"]),
        (with_state(Job("j1", "active")), ["Stop", "Follow up…"]),
        (with_state(Job("j1", "pondering")), ["Stop", "Follow up…"]),
        (with_state(Job("j1", "active", pr_link=LINK)), ["Open the pull request", "Stop", "Follow up…"]),
        (with_state(Job("j1", "completed", pr_link=LINK)), ["Open the pull request", "Follow up…"]),
        (with_state(Job("j1", "completed", pr_link=LINK), progress=PENDING), ["Follow up…"]),
        (with_state(Job("j1", "completed")), ["Follow up…", "Retry"]),
        (with_state(Job("j1", "failed")), ["Follow up…", "Retry"]),
        (with_state(Job("j1", "failed"), progress=KEPT), ["Follow up…", "Retry", "Discard"]),
        (
            with_state(Job("j1", "failed", pr_link=LINK), progress=KEPT),
            ["Open the pull request", "Follow up…", "Retry", "Discard"],
        ),
        (with_state(Job("j1", "active"), progress=KEPT), ["Stop", "Follow up…"]),
        (with_state(Job("j1", "failed"), progress=KEPT, problem=Problem.GONE), ["Retry"]),
        (with_state(Job("j1", "archived")), ["Retry"]),
        (with_state(problem=Problem.REJECTED), ["Retry"]),
        (with_state(problem=Problem.UNCERTAIN), ["Retry"]),
        (with_state(problem=Problem.STOPPED), ["Retry"]),
        (with_state(problem=Problem.WITHDRAWN), []),
        (with_state(Job("j1", "active"), problem=Problem.GONE), []),
        (with_state(Job("j1", "active"), stopped_by="U0BEN"), ["Follow up…"]),
    ],
)
def test_available_actions_depend_on_the_state(thread: Thread, labels: list[str]) -> None:
    """Their labels are verbs; there are never more than five with the menu."""
    assert labels_of(thread) == labels


def test_discarding_requires_confirmation() -> None:
    """It cannot be undone."""
    kept = card(with_state(Job("j1", "failed"), progress=KEPT), CONTEXT).blocks[-1]["elements"][2]
    assert (kept["action_id"], kept["value"]) == ("discard_work", "th1")
    assert "thrown away" in kept["confirm"]["text"]["text"]


def test_stopping_and_repeatable_actions_require_confirmation() -> None:
    """A certain failure can be retried at once."""
    stop = card(with_state(Job("j1", "active")), CONTEXT).blocks[-1]["elements"][0]
    assert (stop["action_id"], stop["value"]) == ("stop_job", "th1")
    assert "What it has changed so far stays" in stop["confirm"]["text"]["text"]
    retry = card(with_state(problem=Problem.UNCERTAIN), CONTEXT).blocks[-1]["elements"][0]
    assert "done twice" in retry["confirm"]["text"]["text"]
    assert "confirm" not in card(with_state(Job("j1", "failed")), CONTEXT).blocks[-1]["elements"][1]


@pytest.mark.parametrize("item", MenuItem)
def test_menu_choices_are_parsed_back(item: MenuItem) -> None:
    """Values round-trip."""
    assert read_menu_value(menu_value(item, "th1")) == (item, "th1")
    assert len(menu_value(item, "f" * 32)) <= 150


def test_screen_readers_get_plain_sentences() -> None:
    """The plan as a count with the current step, without emoji or asterisks."""
    plan = (
        PlanStep(title="Read it", status=StepStatus.COMPLETED),
        PlanStep(title="Write", status=StepStatus.IN_PROGRESS),
        PlanStep(title="Check"),
    )
    state = ThreadState(
        Job("j1", "active", ref="main"), work=Work(progress=Progress(plan, "Editing a.md"), work_began_at=NOON)
    )
    text = card(replace(THREAD, state=state), CONTEXT).text
    first, asked, facts = text.split("\n")
    assert first == (
        "Active: the agent is at work. 1 of 3 steps are done. At work on: Write. Next: Check. Now: Editing a.md."
    )
    assert asked == "<@U0ANA> asked: Fix the guides"
    assert facts.startswith("Branch: main. Asked: <!date^")
    assert not any(mark in text for mark in ("*", "_ ", ":white", "•"))
