"""Requests as Slack documents them, over both transports: each known kind is answered in Slack's format, and an
unknown one is logged by kind.
"""

import json
import logging
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import pytest
from support.worlds.listening_world import FORM, JSON, ListeningWorld, listening

from bot.domain.requests.request import Person, RequestKind
from bot.slack.rendering.words.at_once import RECORDED
from bot.slack.sending.identity import Identity

OURS = Identity(team_id="T1", team="Team", bot_user_id="U0BOT", bot_id="B0BOT", app_id="A1")
GRID = Identity(team_id="T1", team="Team", bot_user_id="U0BOT", bot_id="B0BOT", app_id="A1", enterprise_id="E1")


@pytest.fixture
async def world() -> AsyncIterator[ListeningWorld]:
    async with listening(OURS) as made:
        yield made


@pytest.fixture
async def grid() -> AsyncIterator[ListeningWorld]:
    """The same on Enterprise Grid."""
    async with listening(GRID) as made:
        yield made


def command(**changes: str) -> dict[str, Any]:
    return {
        "token": "gIkuvaNzQIHg97ATvDxqgjtO",
        "team_id": "T1",
        "team_domain": "example",
        "channel_id": "C2147483705",
        "channel_name": "test",
        "user_id": "U2147483697",
        "user_name": "Steve",
        "command": "/docs",
        "text": "Fix the guides",
        "api_app_id": "A1",
        "is_enterprise_install": "false",
        "response_url": "http://127.0.0.1:9/commands/1234/5678",
        "trigger_id": "13345224609.738474920.8088930838d88f008e0",
    } | changes


def event(inner: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    message = {
        "type": "message",
        "channel": "C2147483705",
        "user": "U2147483697",
        "text": "Hello world",
        "ts": "1355517523.000005",
        "thread_ts": "1355517500.000005",
        "event_ts": "1355517523.000005",
        "channel_type": "channel",
        "team": "T1",
    }
    return {
        "token": "one-long-verification-token",
        "team_id": "T1",
        "context_team_id": "T1",
        "context_enterprise_id": None,
        "api_app_id": "A1",
        "event": message if inner is None else inner,
        "type": "event_callback",
        "event_id": "Ev123ABC456",
        "event_time": 1355517523,
        "authorizations": [
            {
                "enterprise_id": None,
                "team_id": "T1",
                "user_id": "U0BOT",
                "is_bot": True,
                "is_enterprise_install": False,
            }
        ],
        "is_ext_shared_channel": False,
        "event_context": "4-eyJ0IjoibWVzc2FnZSJ9",
    } | changes


def interaction(kind: str, **changes: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "token": "Shh_its_a_seekrit",
        "team": {"id": "T1", "domain": "example"},
        "enterprise": None,
        "is_enterprise_install": False,
        "user": {"id": "U2147483697", "username": "steve", "name": "steve", "team_id": "T1"},
        "api_app_id": "A1",
        "trigger_id": "13345224609.738474920.8088930838d88f008e0",
    } | changes


def click(action_id: str = "send_again", **changes: Any) -> dict[str, Any]:
    action = {"type": "button", "block_id": "b", "action_id": action_id, "value": "r1", "action_ts": "1.1"}
    fields = {
        "container": {"type": "message", "message_ts": "1.000001", "channel_id": "C1", "is_ephemeral": False},
        "channel": {"id": "C1", "name": "review-updates"},
        "message": {"type": "message", "bot_id": "B0BOT", "ts": "1.000001", "text": "a payload"},
        "state": {"values": {}},
        "response_url": "http://127.0.0.1:9/actions/1234/5678",
        "actions": [action],
    }
    return interaction("block_actions", **(fields | changes))


VIEW = {
    "id": "V1",
    "team_id": "T1",
    "type": "modal",
    "callback_id": "x",
    "private_metadata": "",
    "state": {"values": {}},
}
STEP = {"workflow_id": "1", "step_id": "2", "inputs": {}, "outputs": []}


# -- forms ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content_type",
    [
        "application/x-www-form-urlencoded; charset=utf-8",
        "Application/X-WWW-Form-Urlencoded",
        " application/x-www-form-urlencoded ;charset=UTF-8",
        "text/plain",
    ],
)
async def test_form_content_types_are_recognized(world: ListeningWorld, content_type: str) -> None:
    assert (await world.over_http(command(text="the payload"), content_type)).body == RECORDED
    assert (await world.over_http(click(), content_type)).status == 200
    assert [call[0] for call in world.service.calls] == ["start", "act"]


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "Application/JSON", "text/plain"])
@pytest.mark.parametrize("before", ["", " ", "\n"])
async def test_json_content_types_are_recognized(world: ListeningWorld, content_type: str, before: str) -> None:
    text = json.dumps(event()).replace("Hello world", "The payload= of it")
    assert (await world.app.handle_http_body(before + text, content_type)).status == 200
    assert world.service.words == ["The payload= of it"]


async def test_a_repeated_field_is_read_once(world: ListeningWorld) -> None:
    body = urlencode([*command(text="first").items(), ("text", "second")])
    assert (await world.app.handle_http_body(body, FORM)).body == RECORDED
    assert len(world.service.calls) == 1


@pytest.mark.parametrize(
    ("body", "content_type"),
    [("{", JSON), ("[]", JSON), ("", FORM), ("payload=%7B", FORM), ("payload=[]", FORM), ("payload=", FORM)],
)
async def test_unreadable_requests_are_not_acknowledged(
    world: ListeningWorld, caplog: pytest.LogCaptureFixture, body: str, content_type: str
) -> None:
    """Slack shows the person a failure, or redelivers an event."""
    assert (await world.app.handle_http_body(body, content_type)).status == 400
    assert "cannot be read" in caplog.text


# -- every documented kind --------------------------------------------------------------------------------------------

MESSAGE = {"type": "message", "channel": "C1", "user": "U1", "ts": "1.000002", "team": "T1"}
KNOWN = {
    "another command": command(command="/other"),
    "click": click(),
    "click on a link": click("open_pull_request"),
    "click on an unknown button": click("unknown"),
    "click on an unknown link": click("unknown", actions=[{"type": "button", "action_id": "u", "block_id": "b"}]),
    "click in the home tab": interaction("block_actions", view=VIEW, actions=[{"action_id": "a", "type": "button"}]),
    "interactive_message": interaction("interactive_message", callback_id="x", actions=[{"name": "a"}]),
    "message_action": interaction("message_action", callback_id="x", channel={"id": "C1"}, message=MESSAGE),
    "shortcut": interaction("shortcut", callback_id="x", action_ts="1.1"),
    "view_submission": interaction("view_submission", view=VIEW, response_urls=[]),
    "view_closed": interaction("view_closed", view=VIEW, is_cleared=False),
    "view of a step": interaction("view_submission", view={**VIEW, "type": "workflow_step"}, workflow_step=STEP),
    "block_suggestion": interaction("block_suggestion", action_id="a", block_id="b", value="pay", view=VIEW),
    "dialog_suggestion": interaction("dialog_suggestion", callback_id="x", name="n", value="v"),
    "dialog_submission": interaction("dialog_submission", callback_id="x", submission={}, state=""),
    "dialog_cancellation": interaction("dialog_cancellation", callback_id="x", state=""),
    "workflow_step_edit": interaction("workflow_step_edit", callback_id="x", workflow_step=STEP),
    "app_rate_limited": {
        "token": "t", "type": "app_rate_limited", "team_id": "T1", "minute_rate_limited": 1518467820, "api_app_id": "A1"
    },
    "ssl_check": {"ssl_check": "1", "token": "gIkuvaNzQIHg97ATvDxqgjtO"},
    "url_verification": {"token": "t", "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY", "type": "url_verification"},
}  # fmt: skip
EVENTS: dict[str, dict[str, Any]] = {
    "app_home_opened": {"user": "U1", "channel": "D1", "tab": "home"},
    "app_uninstalled": {},
    "channel_archive": {"channel": "C1", "user": "U1"},
    "channel_created": {"channel": {"id": "C1", "name": "fun", "created": 1, "creator": "U1"}},
    "channel_id_changed": {"old_channel_id": "G1", "new_channel_id": "C1"},
    "channel_rename": {"channel": {"id": "C1", "name": "new", "created": 1}},
    "function_executed": {"function": {"callback_id": "x"}, "inputs": {}, "function_execution_id": "Fx1"},
    "file_shared": {"channel_id": "C1", "file_id": "F1", "user_id": "U1", "file": {"id": "F1"}},
    "link_shared": {"channel": "C1", "user": "U1", "links": [{"domain": "x.test", "url": "https://x.test"}]},
    "member_joined_channel": {"user": "U1", "channel": "C1", "team": "T1"},
    "message_metadata_posted": {"channel_id": "C1", "metadata": {"event_type": "x", "event_payload": {}}},
    "pin_added": {"user": "U1", "channel_id": "C1", "item": {"type": "message"}},
    "reaction_added": {"user": "U1", "reaction": "x", "item": {"type": "message", "channel": "C1", "ts": "1.000001"}},
    "subteam_members_changed": {"subteam_id": "S1", "team_id": "T1", "added_users": ["U1"]},
    "team_join": {"user": {"id": "U1", "team_id": "T1", "name": "a"}},
    "tokens_revoked": {"tokens": {"oauth": ["U1"], "bot": ["U0BOT"]}},
    "user_change": {"user": {"id": "U1", "team_id": "T1"}},
    "user_huddle_changed": {"user": {"id": "U1"}},
    "workflow_step_execute": {"callback_id": "x", "workflow_step": STEP},
    "assistant_thread_started": {"assistant_thread": {"user_id": "U1", "context": {}, "channel_id": "D1"}},
    "an event of next year": {"something": ["new"]},
}  # fmt: skip
SUBTYPES: dict[str, dict[str, Any]] = {
    "message_changed": {"hidden": True, "message": MESSAGE | {"text": None}, "previous_message": MESSAGE},
    "message_deleted": {"hidden": True, "deleted_ts": "1.000002", "previous_message": MESSAGE},
    "channel_join": {"user": "U1", "text": "<@U1> has joined"},
    "bot_message": {"bot_id": "B1", "text": None, "user": None},
    "ekm_access_denied": {"user": "UREVOKEDU", "text": "..."},
}
KNOWN |= {name: event({"type": name, "event_ts": "1.1"} | fields) for name, fields in EVENTS.items()}
KNOWN |= {f"message of {name}": event(MESSAGE | {"subtype": name} | fields) for name, fields in SUBTYPES.items()}
KNOWN |= {"message without words": event(MESSAGE | {"text": None, "thread_ts": "1.000001"})}


@pytest.mark.parametrize("name", KNOWN)
async def test_no_known_kind_counts_as_unreadable(
    world: ListeningWorld, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    assert (await world.both_ways(KNOWN[name])).status == 200
    assert "cannot be read" not in caplog.text
    assert "does not know" not in caplog.text
    asked = [(action.kind, action.person, action.argument) for action in world.service.actions]
    assert asked == ([(RequestKind.SEND_AGAIN, Person("U2147483697", "T1"), "r1")] if name == "click" else [])


async def test_answers_have_slacks_format(world: ListeningWorld) -> None:
    challenge = await world.both_ways(KNOWN["url_verification"])
    assert json.loads(challenge.body) == {"challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY"}
    assert json.loads((await world.both_ways(KNOWN["block_suggestion"])).body) == {"options": []}
    assert (await world.both_ways(KNOWN["view_submission"])).body == ""
    assert "/docs help" in (await world.both_ways(KNOWN["another command"])).body


@pytest.mark.parametrize("name", ["click on an unknown button", "message_action", "shortcut", "interactive_message"])
async def test_a_meaningless_click_is_explained(
    world: ListeningWorld, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    caplog.set_level(logging.INFO)
    await world.app.handle_payload(KNOWN[name])
    await world.app.drain(5)
    assert "U2147483697 could not be told something" in caplog.text, "there is no Slack here, but it was tried"


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (interaction("nobody_knows_this", text="planted words"), "nobody_knows_this"),
        (event({"type": "an_event\nof next year", "text": "planted words"}), "event_callback/an_event?of?next?year"),
        (interaction("new_kind" * 40, text="planted words"), "new_kindnew_kind"),
        (interaction("block_actions", text="planted words"), "block_actions"),
        ({"team_id": "T1", "text": "planted words"}, "without a type"),
        (event(type="event_callback", event=None), "event_callback"),
    ],
    ids=["interaction", "event", "long", "incomplete", "none", "null event"],
)
async def test_an_unknown_kind_is_logged_once(
    world: ListeningWorld, caplog: pytest.LogCaptureFixture, payload: dict[str, Any], kind: str
) -> None:
    caplog.set_level(logging.INFO, "bot")
    for _ in range(3):
        assert (await world.app.handle_payload(payload)).status == 200
    assert world.service.calls == []
    logged = [record.getMessage() for record in caplog.records if record.name.startswith("bot.slack")]
    assert len(logged) == 1
    assert kind in logged[0]
    assert "planted words" not in caplog.text
    assert "\n" not in logged[0]
    assert len(logged[0]) < 300


# -- authenticated sources --------------------------------------------------------------------------------------------

ELSEWHERE: dict[str, dict[str, Any]] = {
    "a command": command(team_id="T2"),
    "a command of another app": command(api_app_id="A2"),
    "a command from nowhere": command(team_id=""),
    "an event": event(team_id="T2", context_team_id="T2", authorizations=[{"team_id": "T2", "enterprise_id": None}]),
    "an event of another app": event(api_app_id="A2"),
    "a click": click(team={"id": "T2"}, user={"id": "U1", "team_id": "T2"}),
    "a click of another app": click(api_app_id="A2"),
    "a command of another organization": command(team_id="T2", enterprise_id="E2"),
}


@pytest.mark.parametrize("name", ELSEWHERE)
async def test_a_request_of_another_workspace_or_app_starts_nothing(
    grid: ListeningWorld, world: ListeningWorld, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    for there in (world, grid):
        caplog.clear()
        answer = await there.both_ways(ELSEWHERE[name])
        assert answer.status == 200
        assert ("Nothing was started" in answer.body) is name.startswith("a command")
        assert there.service.calls == []
        assert "another workspace or app" in caplog.text
        assert len(caplog.records) == 1
        assert ELSEWHERE[name].get("text", "Hello world") not in caplog.text


@pytest.mark.parametrize(
    "payload",
    [
        command(team_id="T2", enterprise_id="E1"),
        command(team_id="E1", enterprise_id="E1", is_enterprise_install="true"),
        event(authorizations=[{"enterprise_id": "E1", "team_id": None, "is_enterprise_install": True}]),
        event(team_id="T9", authorizations=[{"enterprise_id": "E1", "team_id": "T1"}]),
        click(team=None, enterprise={"id": "E1", "name": "Org"}, is_enterprise_install=True),
        click(team={"id": "T1", "enterprise_id": "E1"}, user={"id": "U2147483697", "team_id": "E1"}),
    ],
    ids=["sibling", "org-wide", "event org-wide", "event", "click org-wide", "click"],
)
async def test_the_whole_organization_is_ours(grid: ListeningWorld, payload: dict[str, Any]) -> None:
    await grid.both_ways(payload)
    assert [call[1].person for call in grid.service.calls] == [Person("U2147483697", "T1")]


async def test_without_a_known_app_id_signature_or_socket_authenticates() -> None:
    async with listening() as there:
        assert (await there.over_http(command())).body == RECORDED
        assert (await there.over_http(command(api_app_id="A2"))).body == RECORDED
