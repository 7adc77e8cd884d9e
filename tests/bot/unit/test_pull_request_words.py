"""What the card and the posts say of a pull request."""

from dataclasses import replace
from typing import Any

import pytest
from support.worlds.store_world import a_thread

from bot.codehosts.pull_request import Check, CheckOutcome, Found, Preview, PullRequest, Reason, Review, Verdict
from bot.domain.projects import ChannelSettings
from bot.domain.pull_requests import FollowedPullRequest
from bot.domain.threads.thread import NO_FOLLOW_UPS, Thread, ThreadOptions, ThreadState
from bot.jobapi.models import Job
from bot.notices.notice import Notice
from bot.notices.pull_requests import (
    ChangesRequested,
    ChecksFailed,
    FollowUpAfterEnd,
    PullRequestClosed,
    PullRequestMerged,
)
from bot.slack.rendering.cards import card, status_text
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.notices import messages

LINK = "https://git.example/acme/docs/pull/1"
SHOW = MessageContext(command="/docs", admin="Ana", bot_user_id="UBOT")
THREAD = a_thread(ts="1.0", state=ThreadState(job=Job("j1", "completed", LINK)))


def thread(followed: FollowedPullRequest | None = None, **told: Any) -> Thread:
    pull = PullRequest.model_validate({"number": 1, "link": LINK, "head": "a", "state": "open", **told})
    return replace(THREAD, pull_request=followed or FollowedPullRequest(Found(pull), read_at=1_700_000_000.0))


@pytest.mark.parametrize(
    ("told", "state", "headline"),
    [
        ({}, "(open)", "Finished with a pull request"),
        ({"draft": True}, "(draft)", "Finished with a pull request"),
        ({"queued": True}, "(in the merge queue)", "Finished with a pull request"),
        ({"state": "merged", "ended_by": "rae"}, "(merged by rae)", "Finished: the pull request is merged"),
        ({"state": "merged"}, "(merged)", "Finished: the pull request is merged"),
        ({"state": "closed"}, "(closed)", "Finished: the pull request is closed"),
    ],
)
def test_the_card_shows_the_state(told: dict[str, Any], state: str, headline: str) -> None:
    for text in (card(thread(**told), SHOW).text, status_text(thread(**told), SHOW, NO_FOLLOW_UPS)):
        assert state in text
        assert headline in text


def test_a_state_that_nobody_knows_is_not_claimed() -> None:
    text = card(thread(state=None), SHOW).text
    assert f"{LINK}>. " in text or f"Pull request: {LINK}. " in text
    assert "None" not in text


def facts(made: Thread) -> list[str]:
    """What the card says of it: in its frame, then in the second line of facts."""
    shown = card(made, SHOW).blocks
    bodies = [block["body"]["text"] for block in shown if block["type"] == "card" and "body" in block]
    lines = [block for block in shown if block["type"] == "context"]
    small_print = [element["text"] for element in lines[1]["elements"]] if len(lines) > 1 else []
    return [*(line for body in bodies for line in body.split("\n")), *small_print]


def test_the_card_shows_checks_reviews_and_previews() -> None:
    outcomes = [CheckOutcome.FAILED, CheckOutcome.RUNNING, CheckOutcome.PASSED, CheckOutcome.UNKNOWN]
    checks = tuple(Check(name=f"c_{outcome}", outcome=outcome) for outcome in outcomes)
    reviews = tuple(Review(author=f"by {verdict}", verdict=verdict) for verdict in Verdict)
    previews = (Preview(name="docs", link="https://preview.example/1"),)
    shown = facts(thread(checks=checks, reviews=reviews, previews=previews, unread=("statuses",)))
    assert shown[0] == "Checks: failed: c_failed, 1 running, 1 passed"
    assert shown[1] == "Reviews: by approved approved, by changes_requested asked for changes"
    assert shown[2].startswith("Preview: ")
    assert "https://preview.example/1" in shown[2]
    assert shown[3] == "I'm not allowed to read: statuses"
    assert shown[4].startswith("As of: ")


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (Reason.NOT_ALLOWED, "I can't read this pull request: I'm not allowed to read it. Please ask Ana"),
        (Reason.UNKNOWN_HOST, None),
    ],
)
def test_what_cannot_be_read_is_said_and_nothing_is_claimed(reason: Reason, words: str | None) -> None:
    assert facts(thread(FollowedPullRequest(unreadable=reason))) == ([words] if words else [])


def test_the_card_says_when_following_has_ended() -> None:
    made = thread(state="merged")
    assert made.pull_request is not None
    shown = facts(replace(made, pull_request=replace(made.pull_request, ended=True)))
    assert shown[-1].startswith("Last read: ")
    assert shown[-1].endswith("I no longer follow it")


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (PullRequestMerged(LINK, "rae"), "<@UANA> Merged by rae."),
        (PullRequestClosed(LINK, "rae"), "<@UANA> The pull request was closed by rae without being merged."),
        (ChecksFailed(LINK, ("lint",)), "<@UANA> A check failed: lint. Reply here to have it fixed."),
        (
            ChecksFailed(LINK, tuple("abcdefg")),
            "<@UANA> 7 checks failed: a, b, c, d, e and 2 more. Reply here to have it fixed.",
        ),
        (
            ChangesRequested(LINK, "r&e"),
            "<@UANA> r&amp;e asked for changes. Reply here to pass on what the agent should change.",
        ),
        (
            ChangesRequested(LINK, "rae", 2),
            "<@UANA> rae asked for changes, with 2 comments. Reply here to pass on what the agent should change.",
        ),
        (
            FollowUpAfterEnd(merged=True, opens_another=True),
            "The pull request is merged, so this goes to a new branch and a new pull request.",
        ),
        (
            FollowUpAfterEnd(merged=False, opens_another=False),
            "The pull request is closed; what the agent does with this is up to its server.",
        ),
    ],
)
def test_news_is_told_in_plain_words(message: Any, words: str) -> None:
    (told,) = messages(THREAD, Notice(1, "k", "t1", message, 0.0), SHOW)
    assert told.text == words


@pytest.mark.parametrize(
    ("made", "settings"),
    [
        (replace(THREAD, options=ThreadOptions(quiet=True)), ChannelSettings()),
        (THREAD, ChannelSettings(mention=False)),
    ],
)
def test_nobody_is_mentioned_who_wants_none(made: Thread, settings: ChannelSettings) -> None:
    (told,) = messages(made, Notice(1, "k", "t1", PullRequestMerged(LINK), 0.0), SHOW, settings=settings)
    assert told.text == "Merged."
