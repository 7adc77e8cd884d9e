"""Who is one of ours: people of the workspace and of its organization; nobody of whom Slack does not say so."""

from typing import Any

import pytest

from bot.domain.permissions import may_steer
from bot.domain.requests import Person
from bot.domain.threads import Thread
from bot.slack.receiving.payloads.actors import command_user, interaction_user, message_author
from bot.slack.sending.identity import Identity

ALONE = Identity(team_id="T1", team="Team", bot_user_id="U0BOT", bot_id="B0BOT")
GRID = Identity(team_id="T1", team="Team", bot_user_id="U0BOT", bot_id="B0BOT", enterprise_id="E1")
THREAD = Thread("th1", "T1", "C1", "U1", "Do it", "docs", 0.0)


def event(*, shared: object = False, kind: str = "message", top: str = "T1", **fields: str) -> dict[str, Any]:
    installation = {"enterprise_id": None, "team_id": "T1", "is_enterprise_install": False}
    body = {
        "type": "event_callback",
        "team_id": top,
        "authorizations": [installation],
        "event": {"type": kind, "user": "U1"} | fields,
    }
    return body if shared is None else body | {"is_ext_shared_channel": shared}


def allowed(person: Person) -> bool:
    return may_steer(person, THREAD)


@pytest.mark.parametrize(
    ("body", "alone", "grid"),
    [
        # a channel of our own
        (event(team="T1"), True, True),
        (event(), True, True),
        (event(kind="app_mention"), True, True),
        (event(shared=None), True, True),
        (event(team="T3"), False, True),
        (event(user_team="T3", team="T3"), False, True),
        (event(user_team="E1", team="T3"), False, True),
        # one that is shared with other organizations
        (event(shared=True), False, False),
        (event(shared=True, kind="app_mention"), False, False),
        (event(shared="true"), False, False),
        (event(shared=True, team="T1"), True, True),
        (event(shared=True, team="T1", top="T2"), True, True),
        (event(shared=True, user_team="T1", team="T2"), True, True),
        (event(shared=True, user_team="E1", team="T3"), False, True),
        (event(shared=True, kind="app_mention", user_team="E1"), False, True),
        (event(shared=True, user_team="T2", team="T1"), False, False),
        (event(shared=True, user_team="E2", team="T1"), False, False),
        (event(shared=True, kind="app_mention", user_team="E2", team="T1"), False, False),
        (event(shared=True, source_team="T2"), False, False),
        (event(shared=True, team="T3"), False, False),
        # one of which Slack does not say
        (event(shared=None, user_team="T2"), False, False),
        (event(shared=None, team="T3"), False, False),
        ({"type": "event_callback", "event": {"type": "message", "user": "U1"}}, False, False),
        ({"type": "event_callback", "event": None}, False, False),
    ],
)
def test_who_wrote_a_reply(body: dict[str, Any], *, alone: bool, grid: bool) -> None:
    assert allowed(message_author(body, ALONE)) is alone
    assert allowed(message_author(body, GRID)) is grid


@pytest.mark.parametrize(
    ("team_id", "alone", "grid"), [("T1", True, True), ("E1", False, True), ("T2", False, False), (None, False, False)]
)
def test_who_pressed_a_button(team_id: str | None, *, alone: bool, grid: bool) -> None:
    body = {"type": "block_actions", "team": {"id": "T1"}, "user": {"id": "U1", "team_id": team_id}}
    assert allowed(interaction_user(body, ALONE)) is alone
    assert allowed(interaction_user(body, GRID)) is grid


@pytest.mark.parametrize(
    ("fields", "alone", "grid"),
    [
        ({"team_id": "T1"}, True, True),
        ({"team_id": "T1", "enterprise_id": "E1"}, True, True),
        ({"team_id": "T3", "enterprise_id": "E1"}, False, True),
        ({"team_id": "T2", "enterprise_id": "E2"}, False, False),
        ({}, False, False),
    ],
)
def test_who_ran_a_command(fields: dict[str, str], *, alone: bool, grid: bool) -> None:
    body = {"command": "/docs", "user_id": "U1"} | fields
    assert allowed(command_user(body, ALONE)) is alone
    assert allowed(command_user(body, GRID)) is grid


def test_whoever_is_of_no_known_workspace_steers_nothing_not_even_an_old_thread_without_one() -> None:
    assert not may_steer(Person("U1", ""), THREAD)
    assert not may_steer(Person("U1", ""), Thread("th1", "", "C1", "U1", "Do it", "docs", 0.0))
