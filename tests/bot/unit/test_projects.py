"""Which project a request is for."""

import pytest

from bot.domain.projects import (
    MOST_PROJECTS,
    Ambiguous,
    ChannelSettings,
    JobApiAbilities,
    Project,
    ProjectReason,
    Projects,
    ReplyMode,
    Route,
    Routed,
    UnknownProject,
    normal_words,
    route,
)
from bot.domain.threads.thread import Thread
from bot.notices.notice import Notice
from bot.notices.questions import ProjectAsked
from bot.slack.rendering.blocks import ChatMessage
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.notices import messages

GUIDES = Project("guides", channels=frozenset({"CGUIDES"}), words=("install guide", "tutorial"))
API = Project("api", channels=frozenset({"CAPI"}), words=("endpoint",), abilities=JobApiAbilities(cancel=True))
BLOG = Project("blog", id="prj_blog")
THREE = Projects((GUIDES, API, BLOG), {"CAPI": ChannelSettings(ReplyMode.MENTIONS, broadcast=True)})


def test_a_single_project_needs_no_question() -> None:
    """No rule is consulted."""
    assert route(Projects((BLOG,)), prompt="Fix it") == Routed("blog", ProjectReason.ONLY_ONE)
    assert route(Projects((BLOG,)), said="Blog", prompt="Fix it") == Routed("blog", ProjectReason.SAID)


def test_an_unknown_project_is_answered_with_the_known_ones() -> None:
    """A given name is never guessed at."""
    assert route(THREE, said="gudies", prompt="Fix it") == UnknownProject("gudies", ("guides", "api", "blog"))
    assert route(Projects((BLOG,)), said="gudies", prompt="Fix it") == UnknownProject("gudies", ("blog",))


def test_each_rule_yields_to_the_previous_one() -> None:
    """The named project, the thread's, the channel's, the keyword's, the person's own: in this order."""
    everything = {
        "said": "BLOG",
        "of_thread": "api",
        "channel_id": "CGUIDES",
        "prompt": "The endpoint is gone",
        "of_person": "blog",
    }
    in_order = (
        ("said", Routed("blog", ProjectReason.SAID)),
        ("of_thread", Routed("api", ProjectReason.THREAD)),
        ("channel_id", Routed("guides", ProjectReason.CHANNEL)),
        ("prompt", Routed("api", ProjectReason.WORDS)),
        ("of_person", Routed("blog", ProjectReason.DEFAULT)),
    )
    for name, expected in in_order:
        assert route(THREE, **everything) == expected
        everything[name] = ""
    assert route(THREE, **everything) == Ambiguous(("guides", "api", "blog"))


def test_a_remembered_project_that_is_gone_is_ignored() -> None:
    """A thread's or a person's project may have left the settings."""
    assert route(THREE, of_thread="old", of_person="old", prompt="Fix it") == Ambiguous(("guides", "api", "blog"))


def test_a_job_from_a_single_project_time_keeps_its_project() -> None:
    """Then a project's name was its id."""
    assert route(THREE, of_thread="prj_blog", prompt="Fix it") == Routed("blog", ProjectReason.THREAD)


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("Shorten the TUTORIAL.", Routed("guides", ProjectReason.WORDS)),
        ("the install\n guide's first page", Routed("guides", ProjectReason.WORDS)),
        ("Two tutorials", Ambiguous(("guides", "api", "blog"))),
        ("Guide me to install it", Ambiguous(("guides", "api", "blog"))),
        ("The tutorial on the endpoint", Ambiguous(("guides", "api"))),
        ("", Ambiguous(("guides", "api", "blog"))),
    ],
)
def test_keywords_match_whole_words_and_two_matches_are_asked_about(prompt: str, expected: Route) -> None:
    """Case, line breaks and punctuation do not matter; parts of words do not match."""
    assert route(THREE, prompt=prompt) == expected


def test_two_matches_are_asked_about_despite_a_personal_default() -> None:
    """The words are more specific than the default, but ambiguous."""
    assert route(THREE, prompt="tutorial, endpoint", of_person="blog") == Ambiguous(("guides", "api"))


def test_keywords_beyond_the_limit_are_not_searched_for() -> None:
    """Any prompt is searched in bounded time."""
    assert route(THREE, prompt="a " * 20_000 + "tutorial") == Ambiguous(("guides", "api", "blog"))


@pytest.mark.timeout(10)
def test_many_accents_are_read_in_linear_time() -> None:
    many = "\u0345\u0301\u0323\u0321\u05b0" * 20_000
    first, *_, last = normal_words(f"e\u0301 {many} Tutorial").split()
    assert (first, last) == ("\u00e9", "tutorial")


def test_a_channel_without_its_own_settings_uses_the_general_ones() -> None:
    """Settings of a channel apply to it alone."""
    assert THREE.channel("CAPI").replies is ReplyMode.MENTIONS
    assert THREE.channel("CGUIDES") == ChannelSettings()


def test_job_api_abilities_are_known_by_project() -> None:
    """A project that no longer exists has no special abilities."""
    assert THREE.abilities("api").cancel
    assert not THREE.abilities("guides").cancel
    assert not THREE.abilities("old").cancel


def test_projects_left_out_of_the_question_are_mentioned() -> None:
    """It says how to choose them; names of usual lengths all fit."""

    def asked(*names: str) -> ChatMessage:
        thread = Thread("t" * 32, "T1", "C1", "U0ANA", "Do it", "", 0.0)
        notice = Notice(1, "k", thread.id, ProjectAsked("U0ANA", thread.id, names, "", "Do it"), 0.0)
        return messages(thread, notice, MessageContext("U0BOT"))[0]

    usual = asked(*(f"project-{number:02}" for number in range(MOST_PROJECTS)))
    assert len(usual.blocks[1]["elements"][0]["options"]) == MOST_PROJECTS
    assert "don't fit" not in usual.text
    long = asked(*(f"{'a' * 56}{number}" for number in range(MOST_PROJECTS)))
    left_out = MOST_PROJECTS - len(long.blocks[1]["elements"][0]["options"])
    assert f"{left_out} more don't fit here. To choose one of them, ask again with `project:NAME`" in long.text
    assert 0 < left_out < MOST_PROJECTS // 2
    assert len(str(long.blocks)) < 20_000
