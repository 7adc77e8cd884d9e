"""The card's plan and pull request as blocks of their own, and the rest of those that Slack does not take."""

import logging
from dataclasses import replace
from typing import Any

import pytest
from support.worlds.store_world import a_thread
from support.worlds.thread_states import thread_state

from bot.codehosts.pull_request import Check, CheckOutcome, Found, PullRequest, Review, Verdict
from bot.domain.delivery import TOO_LONG
from bot.domain.jobs.job import Problem, Progress
from bot.domain.pull_requests import FollowedPullRequest
from bot.domain.threads.thread import Thread
from bot.jobapi.models import Job, PlanStep, PullRequestState, StepStatus
from bot.slack.rendering.blocks import ChatMessage, RichBlock
from bot.slack.rendering.cards import card
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import BREAK
from bot.slack.sending.rich_blocks import REST_SECONDS, RichBlocks
from bot.workspace.wire.views import checked_blocks

LINK = "https://git.example/acme/docs/pull/1"
SHOW = MessageContext(command="/docs", admin="Ana", bot_user_id="UBOT")
DONE, NOW, NEXT = StepStatus.COMPLETED, StepStatus.IN_PROGRESS, StepStatus.PENDING
PLAN, CARD = RichBlock.PLAN, RichBlock.CARD
STEPS = (
    PlanStep(title="Read <the> page", status=DONE),
    PlanStep(title="Write", status=NOW),
    PlanStep(title="Check"),
)


def thread(*steps: PlanStep, pull: dict[str, Any] | None = None, job: Job | None = None, **known: Any) -> Thread:
    progress = Progress(steps, known.pop("activity", ""), known.pop("pull_request", None))
    state = thread_state(job=job or Job("j1", "active"), progress=progress, **known)
    followed = None
    if pull is not None:
        given = {"number": 1, "link": LINK, "head": "a", "state": "open", **pull}
        followed = FollowedPullRequest(Found(PullRequest.model_validate(given)), read_at=1_700_000_000.0)
    return replace(a_thread(ts="1.0"), state=state, pull_request=followed)


def block(made: Thread, kind: RichBlock) -> dict[str, Any] | None:
    shown = card(made, SHOW).blocks
    checked_blocks([dict(each) for each in shown])
    return next((each for each in shown if each["type"] == kind), None)


def small_print(made: Thread, without: tuple[RichBlock, ...] = ()) -> list[str]:
    shown = card(made, SHOW, without=without).blocks
    return [element["text"] for each in shown if each["type"] == "context" for element in each["elements"]]


# -- the plan ----------------------------------------------------------------------------------------------------------


def test_the_agents_plan_is_a_checklist() -> None:
    assert block(thread(*STEPS), PLAN) == {
        "type": "plan",
        "block_id": "agent_plan",
        "title": "1 of 3 steps done",
        "tasks": [
            {"type": "task_card", "task_id": "1", "title": f"Read <{BREAK}the> page", "status": "complete"},
            {"type": "task_card", "task_id": "2", "title": "Write", "status": "in_progress"},
            {"type": "task_card", "task_id": "3", "title": "Check", "status": "pending"},
        ],
    }


def test_what_the_agent_does_now_stays_above_the_checklist() -> None:
    made = thread(*STEPS, activity="Editing a.md")
    first, second, *_ = card(made, SHOW).blocks
    assert first["text"]["text"] == "*Active: the agent is at work*\n_Now: Editing a.md_"
    assert second["type"] == "plan"
    plain = card(made, SHOW, without=(PLAN,)).blocks[0]["text"]["text"]
    assert plain.split("\n")[1:] == [
        ":white_check_mark: Read &lt;the&gt; page", ":hourglass_flowing_sand: Write", ":white_circle: Check",
        "_Now: Editing a.md_",
    ]  # fmt: skip


@pytest.mark.parametrize("made", [thread(), thread(*STEPS, problem=Problem.OUT_OF_REACH)])
def test_without_a_plan_that_holds_there_is_no_checklist(made: Thread) -> None:
    assert block(made, PLAN) is None


def test_of_sixty_steps_the_fifty_around_the_next_one_are_shown() -> None:
    """Each keeps its number, so that what a reader has opened stays open."""
    steps = [PlanStep(title=f"Step {n}", status=DONE if n <= 30 else NEXT) for n in range(1, 61)]
    shown = block(thread(*steps), PLAN)
    assert shown is not None
    assert shown["title"] == "30 of 60 steps done"
    assert [task["task_id"] for task in shown["tasks"]] == [str(number) for number in range(11, 61)]


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("word " * 600, "word " * 22 + "word…"),
        ("x" * 3_000, "x" * 119 + "…"),
        ("", "…"),
        ("\u202e\u200b", "…"),
        ("one\n two", "one two"),
        ("<!channel> & <@U0EVIL>", f"<{BREAK}!channel> & <{BREAK}@U0EVIL>"),
        ("<https://evil.example|docs>", f"<{BREAK}https://evil.example|docs>"),
    ],
)
def test_a_steps_title_is_short_by_whole_words_and_mentions_nobody(title: str, shown: str) -> None:
    """Slack takes it for plain text; if it did not, it would still find no markup."""
    made = block(thread(PlanStep.model_construct(title=title, status=NEXT)), PLAN)
    assert made is not None
    assert made["tasks"][0]["title"] == shown


def test_steps_of_the_same_title_are_different_tasks() -> None:
    made = block(thread(*[PlanStep(title="Again")] * 3), PLAN)
    assert made is not None
    assert [task["task_id"] for task in made["tasks"]] == ["1", "2", "3"]


# -- the pull request --------------------------------------------------------------------------------------------------

FINISHED = Job("j1", "completed", LINK)
BUTTON = {
    "type": "button", "action_id": "open_pull_request", "url": LINK, "style": "primary",
    "text": {"type": "plain_text", "text": "Open the pull request", "emoji": False},
}  # fmt: skip
CHECKS = tuple(Check(name=f"c_{outcome}", outcome=outcome) for outcome in (CheckOutcome.FAILED, CheckOutcome.PASSED))
REVIEWS = (Review(author="rae", verdict=Verdict.APPROVED),)
LINE = f"Pull request: <{LINK}> (open)"


@pytest.mark.parametrize(
    ("pull", "texts"),
    [
        (None, {"title": f"Pull request: <{LINK}>"}),
        ({}, {"title": LINE}),
        ({"title": "Ports"}, {"title": "Ports", "subtitle": LINE}),
        (
            {"title": "Ports & <!here>", "checks": CHECKS, "reviews": REVIEWS},
            {
                "title": "Ports &amp; &lt;!here&gt;",
                "subtitle": LINE,
                "body": "Checks: failed: c_failed, 1 passed\nReviews: rae approved",
            },
        ),
        ({"title": "word " * 40}, {"title": "word " * 22 + "word…", "subtitle": LINE}),
        (
            {"state": "merged", "ended_by": "rae", "title": "Ports"},
            {"title": "Ports", "subtitle": f"Pull request: <{LINK}> (merged by rae)"},
        ),
    ],
)
def test_the_pull_request_is_framed_with_its_button(pull: dict[str, Any] | None, texts: dict[str, str]) -> None:
    made = thread(job=FINISHED, pull=pull)
    shown = {name: {"type": "mrkdwn", "text": text, "verbatim": True} for name, text in texts.items()}
    assert block(made, CARD) == {"type": "card", "block_id": "pull_request", **shown, "actions": [BUTTON]}
    assert not set("\n".join(texts.values()).split("\n")) & set(small_print(made))
    row = [element.get("url") for element in card(made, SHOW).blocks[-1]["elements"]]
    assert LINK not in row, "there is one such button"


LONG = tuple(Check(name=f"{'long name ' * 6}{n}", outcome=CheckOutcome.FAILED) for n in range(5))


@pytest.mark.parametrize(
    ("pull", "link", "framed"),
    [
        ({"checks": LONG, "reviews": REVIEWS}, LINK, {"title", "body"}),
        ({"checks": LONG}, LINK, {"title"}),
        ({"title": "Ports"}, f"{LINK}?{'x' * 200}", {"title"}),
        ({}, f"{LINK}?{'x' * 200}", {"title"}),
    ],
)
def test_what_does_not_fit_into_the_frame_stays_below_it(pull: dict[str, Any], link: str, framed: set[str]) -> None:
    """Whole: nothing that people could read before is missing."""
    made = thread(job=Job("j1", "completed", link), pull=pull)
    shown = block(made, CARD)
    assert shown is not None
    assert {*shown} - {"type", "block_id", "actions"} == framed
    inside = [line for name in framed for line in shown[name]["text"].split("\n")]
    assert {*small_print(made, (CARD,))} <= {*small_print(made), *inside}


@pytest.mark.parametrize(
    "made",
    [
        thread(),
        thread(job=FINISHED, pull_request=PullRequestState.PENDING),
        thread(job=Job("j1", "completed", "javascript:alert(1)")),
    ],
)
def test_without_a_page_to_open_there_is_no_frame(made: Thread) -> None:
    assert block(made, CARD) is None


def test_plainer_cards_say_the_same() -> None:
    """To screen readers the very same, whatever Slack takes."""
    made = thread(*STEPS, job=FINISHED, pull={"title": "Ports", "checks": CHECKS})
    forms = [card(made, SHOW, without=without) for without in ((), (PLAN,), (CARD,), (PLAN, CARD))]
    assert [form.rich for form in forms] == [{PLAN, CARD}, {CARD}, {PLAN}, set()]
    assert len({form.text for form in forms}) == 1
    row = forms[-1].blocks[-1]["elements"]
    assert row[0]["url"] == LINK


# -- what Slack does not take ------------------------------------------------------------------------------------------


def message(*kinds: str, text: str = "x") -> ChatMessage:
    return ChatMessage(text, tuple({"type": kind} for kind in ("section", *kinds)))


class Slack:
    """Sends messages as the chat does, to a Slack that refuses some kinds of block, or some texts in blocks."""

    def __init__(self, *refused: RichBlock, too_long: str = "", reason: str = "invalid_blocks") -> None:
        self.now = 0.0
        self.rich = RichBlocks(lambda: self.now)
        self.refused = set(refused)
        self.too_long = too_long
        self.reason = reason

    def send(self, whole: ChatMessage, thread_id: str = "th1") -> list[set[RichBlock]]:
        """Returns what each try left out: the last one was taken, if any."""
        tries: list[set[RichBlock]] = []
        for _ in range(9):
            left_out = self.rich.left_out(thread_id, whole)
            tries.append({*left_out})
            if not (whole.rich - left_out) & self.refused and whole.text != self.too_long:
                self.rich.taken(thread_id, whole, left_out)
                return tries
            if not self.rich.refused(thread_id, whole, left_out, self.reason):
                return tries
        raise AssertionError("it does not end")


BOTH = message("plan", "card")


@pytest.mark.parametrize(
    ("refused", "tries", "next_time"),
    [
        ((), [set()], set()),
        ((PLAN,), [set(), {CARD}, {PLAN}], {PLAN}),
        ((CARD,), [set(), {CARD}], {CARD}),
        ((PLAN, CARD), [set(), {CARD}, {PLAN}, {PLAN, CARD}], {PLAN, CARD}),
    ],
)
def test_a_kind_of_block_that_slack_refuses_rests_for_a_day(
    refused: tuple[RichBlock, ...], tries: list[set[RichBlock]], next_time: set[RichBlock]
) -> None:
    """In all threads; then it is tried again."""
    slack = Slack(*refused)
    assert slack.send(BOTH) == tries
    slack.now = REST_SECONDS - 1
    assert slack.send(BOTH, "th2") == [next_time]
    slack.now = REST_SECONDS
    assert slack.send(BOTH, "th2") == tries
    slack.now, slack.refused = 2 * REST_SECONDS, set()
    assert slack.send(BOTH, "th2") == [set()]


def test_a_message_that_is_refused_without_them_too_puts_nothing_to_rest() -> None:
    slack = Slack(too_long="x" * 50)
    for _ in "12":
        assert slack.send(message("plan", text="x" * 50)) == [set(), {PLAN}]
    assert slack.send(BOTH, "th2") == [set()]


@pytest.mark.parametrize("reason", sorted(TOO_LONG))
def test_one_long_message_puts_nothing_to_rest_for_others(reason: str) -> None:
    slack = Slack(PLAN, reason=reason)
    assert slack.send(BOTH) == [set(), {CARD}, {PLAN}]
    slack.refused = set()
    assert slack.send(BOTH, "th2") == [set()]


def test_another_message_of_the_thread_proves_nothing() -> None:
    """What it is without the block may be what Slack takes."""
    slack, first = Slack(too_long="first"), message("plan", text="first")
    assert slack.rich.refused("th1", first, slack.rich.left_out("th1", first), slack.reason)
    assert slack.send(message("plan")) == [set()]
    assert slack.send(message("plan"), "th2") == [set()]


def test_the_rest_is_told_once_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    slack = Slack(PLAN)
    for thread_id in ("th1", "th2"):
        slack.send(BOTH, thread_id)
    assert caplog.messages == ["Slack refuses a card's plan block: for a day, cards are sent without it"]


def test_a_thousand_refusals_are_not_kept() -> None:
    rich = RichBlocks()
    for number in range(1_000):
        assert rich.refused(f"th{number}", message("plan", text=f"{number}"), frozenset(), "invalid_blocks")
    assert len(rich._tried) == 100


def test_a_blocks_id_stays_over_every_change() -> None:
    before, after = thread(STEPS[0], job=FINISHED), thread(*STEPS, job=FINISHED, pull={"title": "Ports"})
    ids = [[each["block_id"] for each in card(made, SHOW).blocks if "block_id" in each] for made in (before, after)]
    assert ids == [["agent_plan", "pull_request", "buttons"]] * 2
