"""Who is one of ours: people of the workspace and of its organization; nobody whom Slack does not identify as such."""

from typing import Any

import pytest

from bot.domain.people.permissions import is_outsider
from bot.domain.requests.request import Person
from bot.domain.threads.thread import Thread
from bot.slack.receiving.payloads.actors import author_of, sender_of, user_of
from bot.slack.receiving.payloads.events import EventPayload
from bot.slack.receiving.payloads.interactions import InteractionPayload
from bot.slack.receiving.payloads.payload import CommandPayload
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
    return not is_outsider(person, THREAD)


@pytest.mark.parametrize(
    ("body", "alone", "grid"),
    [
        # an internal channel
        (event(team="T1"), True, True),
        (event(), True, True),
        (event(kind="app_mention"), True, True),
        (event(shared=None), True, True),
        (event(team="T3"), False, True),
        (event(user_team="T3", team="T3"), False, True),
        (event(user_team="E1", team="T3"), False, True),
        # one shared with other organizations
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
        # one of unknown kind
        (event(shared=None, user_team="T2"), False, False),
        (event(shared=None, team="T3"), False, False),
        ({"type": "event_callback", "event": {"type": "message", "user": "U1"}}, False, False),
        ({"type": "event_callback", "event": None}, False, False),
    ],
)
def test_the_author_of_a_reply_is_read(body: dict[str, Any], *, alone: bool, grid: bool) -> None:
    assert allowed(author_of(EventPayload.read(body), ALONE)) is alone
    assert allowed(author_of(EventPayload.read(body), GRID)) is grid


@pytest.mark.parametrize(
    ("team_id", "alone", "grid"), [("T1", True, True), ("E1", False, True), ("T2", False, False), (None, False, False)]
)
def test_the_person_who_pressed_a_button_is_read(team_id: str | None, *, alone: bool, grid: bool) -> None:
    body = {"type": "block_actions", "team": {"id": "T1"}, "user": {"id": "U1", "team_id": team_id}}
    assert allowed(user_of(InteractionPayload.read(body), ALONE)) is alone
    assert allowed(user_of(InteractionPayload.read(body), GRID)) is grid


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
def test_the_person_who_ran_a_command_is_read(fields: dict[str, str], *, alone: bool, grid: bool) -> None:
    body = {"command": "/docs", "user_id": "U1"} | fields
    assert allowed(sender_of(CommandPayload.read(body), ALONE)) is alone
    assert allowed(sender_of(CommandPayload.read(body), GRID)) is grid


OF_T1 = {"id": "T1", "domain": "team"}
OF_E1 = {"enterprise_id": "E1", "enterprise_name": "Organization"}
E1 = {"enterprise": {"id": "E1", "name": "Organization"}}


@pytest.mark.parametrize("kind", ["view_submission", "view_closed", "message_action", "shortcut"])
@pytest.mark.parametrize(
    ("where", "team_id", "alone", "grid"),
    [
        # in our workspace, and in another one of our organization
        ({"team": OF_T1}, "T1", True, True),
        ({"team": OF_T1 | OF_E1} | E1, "T1", True, True),
        ({"team": OF_T1 | OF_E1} | E1, "T2", False, True),
        ({"team": {"id": "T2"} | OF_E1} | E1, "T2", False, True),
        ({"team": None, "is_enterprise_install": True} | E1, "T2", False, True),
        ({"team": OF_T1 | OF_E1} | E1, "E1", False, True),
        # in another organization, whose people can see a modal in a channel shared with it
        ({"team": {"id": "T9"}}, "T9", False, False),
        ({"team": {"id": "T9"}} | E1, "T9", False, False),
        ({"team": {"id": "T9", "enterprise_id": "E9"}, "enterprise": {"id": "E9"}}, "T9", False, False),
        ({"team": OF_T1 | OF_E1} | E1, "E9", False, False),
        ({"team": OF_T1}, None, False, False),
        ({"team": "T1", "user": None}, "T1", False, False),
    ],
)
def test_the_person_who_used_a_modal_or_shortcut_is_read(
    where: dict[str, Any], kind: str, team_id: str | None, *, alone: bool, grid: bool
) -> None:
    """Slack names the place, so a colleague of the organization can be distinguished from a guest of the channel."""
    body = {"type": kind, "user": {"id": "U1", "team_id": team_id}, "view": {"app_installed_team_id": "T1"}} | where
    assert allowed(user_of(InteractionPayload.read(body), ALONE)) is alone
    assert allowed(user_of(InteractionPayload.read(body), GRID)) is grid


def test_a_button_press_does_not_show_a_persons_organization() -> None:
    """Its payload names the app's workspace, whoever pressed it: the person is looked up."""
    body = {"type": "block_actions", "team": OF_T1 | OF_E1, "user": {"id": "U1", "team_id": "T2"}} | E1
    assert user_of(InteractionPayload.read(body), GRID) == Person("U1", "T2")


@pytest.mark.parametrize(
    "body", [None, [], {}, {"event": []}, {"user": []}, {"type": "shortcut", "team": ["T1"], "enterprise": 7}]
)
def test_a_payload_without_a_person_belongs_to_nobody(body: Any) -> None:
    for identity in (ALONE, GRID):
        people = (
            author_of(EventPayload.read(body), identity),
            user_of(InteractionPayload.read(body), identity),
            sender_of(CommandPayload.read(body), identity),
        )
        assert [person.id for person in people] == ["", "", ""]
        assert not any(allowed(person) for person in people)
