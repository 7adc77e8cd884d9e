"""Requests as Slack documents them, over both transports: each known kind is answered in Slack's format, and an
unknown one is logged by kind."""

import json
import logging
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse
from support.fakes.ports import FakeClock
from support.fakes.slack_payloads import click, command, edit, event
from support.worlds.listening_world import BOT, FORM, IDENTITY, JSON, ListeningWorld, listening

from bot.domain.people import ChannelInfo
from bot.domain.requests.request import Arrival, Person, RequestKind
from bot.errors import (
    ChatError,
    ChatMissingScope,
    ChatNotAllowed,
    ChatNotInChannel,
    ChatRateLimited,
    ChatRejected,
    ChatUncertain,
    NotRecorded,
    StoreUnavailable,
    UnreadableRow,
)
from bot.runtime.health import RECORDING_RECOVERY_SECONDS, RecordingHealth
from bot.slack.receiving import history
from bot.slack.rendering.ephemeral_texts import RECORDED
from bot.slack.sending.authorization import APP_TOKEN, BOT_TOKEN, NOT_ALLOWED, refusal
from bot.slack.sending.identity import Identity
from bot.slack.sending.web_api import chat_error_from

AROUND = {
    "token": "one-long-verification-token",
    "context_team_id": "T1",
    "context_enterprise_id": None,
    "event_time": 1355517523,
    "is_ext_shared_channel": False,
    "event_context": "4-eyJ0IjoibWVzc2FnZSJ9",
}
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


def enveloped(inner: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """An event with what Slack sends around it."""
    return event(text="Hello world") | ({} if inner is None else {"event": inner}) | AROUND | changes


def interaction(kind: str, **changes: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "token": "Shh_its_a_seekrit",
        "team": {"id": "T1", "domain": "example"},
        "enterprise": None,
        "is_enterprise_install": False,
        "user": {"id": "U0ANA", "username": "steve", "name": "steve", "team_id": "T1"},
        "api_app_id": "A1",
        "trigger_id": "13345224609.738474920.8088930838d88f008e0",
    } | changes


VIEW = {
    "id": "V1",
    "team_id": "T1",
    "type": "modal",
    "callback_id": "x",
    "private_metadata": "",
    "state": {"values": {}},
}
STEP = {"workflow_id": "1", "step_id": "2", "inputs": {}, "outputs": []}


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
    assert (await world.over_http(click("send_again"), content_type)).status == 200
    assert [call[0] for call in world.service.calls] == ["start", "act"]


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "Application/JSON", "text/plain"])
@pytest.mark.parametrize("before", ["", " ", "\n"])
async def test_json_content_types_are_recognized(world: ListeningWorld, content_type: str, before: str) -> None:
    text = json.dumps(enveloped()).replace("Hello world", "The payload= of it")
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


MESSAGE = {"type": "message", "channel": "C1", "user": "U1", "ts": "1.000002", "team": "T1"}
LINK = {"type": "button", "action_id": "u", "block_id": "b"}
KNOWN = {
    "another command": command(command="/other"),
    "click": click("send_again"),
    "click on a link": click("open_pull_request"),
    "click on an unknown button": click("unknown"),
    "click on an unknown link": click("unknown", actions=[LINK]),
    "click in the home tab": interaction("block_actions", view=VIEW, actions=[{"action_id": "a", "type": "button"}]),
    "interactive_message": interaction("interactive_message", callback_id="x", actions=[{"name": "a"}]),
    "message_action": interaction("message_action", callback_id="x", channel={"id": "C1"}, message=MESSAGE),
    "shortcut": interaction("shortcut", callback_id="x", action_ts="1.1"),
    "view_submission": interaction("view_submission", view=VIEW, response_urls=[]),
    "view_closed": interaction("view_closed", view=VIEW, is_cleared=False),
    "view of a step": interaction("view_submission", view={**VIEW, "type": "workflow_step"}, workflow_step=STEP),
    "block_suggestion": interaction("block_suggestion", action_id="a", block_id="b", value="pay", view=VIEW),
    "dialog_submission": interaction("dialog_submission", callback_id="x", submission={}, state=""),
    "app_rate_limited": {
        "token": "t", "type": "app_rate_limited", "team_id": "T1", "minute_rate_limited": 1518467820, "api_app_id": "A1"
    },
    "ssl_check": {"ssl_check": "1", "token": "gIkuvaNzQIHg97ATvDxqgjtO"},
    "url_verification": {"token": "t", "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY", "type": "url_verification"},
}  # fmt: skip
EVENTS: dict[str, dict[str, Any]] = {
    "app_home_opened": {"user": "U1", "channel": "D1", "tab": "home"},
    "channel_created": {"channel": {"id": "C1", "name": "fun", "created": 1, "creator": "U1"}},
    "channel_id_changed": {"old_channel_id": "G1", "new_channel_id": "C1"},
    "function_executed": {"function": {"callback_id": "x"}, "inputs": {}, "function_execution_id": "Fx1"},
    "file_shared": {"channel_id": "C1", "file_id": "F1", "user_id": "U1", "file": {"id": "F1"}},
    "member_joined_channel": {"user": "U1", "channel": "C1", "team": "T1"},
    "reaction_added": {"user": "U1", "reaction": "x", "item": {"type": "message", "channel": "C1", "ts": "1.000001"}},
    "team_join": {"user": {"id": "U1", "team_id": "T1", "name": "a"}},
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
KNOWN |= {name: enveloped({"type": name, "event_ts": "1.1"} | fields) for name, fields in EVENTS.items()}
KNOWN |= {f"message of {name}": enveloped(MESSAGE | {"subtype": name} | fields) for name, fields in SUBTYPES.items()}
KNOWN |= {"message without words": enveloped(MESSAGE | {"text": None, "thread_ts": "1.000001"})}


@pytest.mark.parametrize("name", KNOWN)
async def test_no_known_kind_counts_as_unreadable(
    world: ListeningWorld, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    assert (await world.both_ways(KNOWN[name])).status == 200
    assert "cannot be read" not in caplog.text
    assert "does not know" not in caplog.text
    asked = [(action.kind, action.person, action.argument) for action in world.service.actions]
    assert asked == ([(RequestKind.SEND_AGAIN, Person("U0ANA", "T1"), "r1")] if name == "click" else [])


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
    assert "U0ANA could not be told something" in caplog.text, "there is no Slack here, but it was tried"


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (interaction("nobody_knows_this", text="planted words"), "nobody_knows_this"),
        (
            enveloped({"type": "an_event\nof next year", "text": "planted words"}),
            "event_callback/an_event?of?next?year",
        ),
        (interaction("new_kind" * 40, text="planted words"), "new_kindnew_kind"),
        (interaction("block_actions", text="planted words"), "block_actions"),
        ({"team_id": "T1", "text": "planted words"}, "without a type"),
        (enveloped(type="event_callback", event=None), "event_callback"),
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


ELSEWHERE: dict[str, dict[str, Any]] = {
    "a command": command(team_id="T2"),
    "a command of another app": command(api_app_id="A2"),
    "a command from nowhere": command(team_id=""),
    "an event": enveloped(
        team_id="T2", context_team_id="T2", authorizations=[{"team_id": "T2", "enterprise_id": None}]
    ),
    "an event of another app": enveloped(api_app_id="A2"),
    "a click": click("send_again", team={"id": "T2"}, user={"id": "U1", "team_id": "T2"}),
    "a click of another app": click("send_again", api_app_id="A2"),
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
        enveloped(authorizations=[{"enterprise_id": "E1", "team_id": None, "is_enterprise_install": True}]),
        enveloped(team_id="T9", authorizations=[{"enterprise_id": "E1", "team_id": "T1"}]),
        click("send_again", team=None, enterprise={"id": "E1", "name": "Org"}, is_enterprise_install=True),
        click("send_again", team={"id": "T1", "enterprise_id": "E1"}, user={"id": "U0ANA", "team_id": "E1"}),
    ],
    ids=["sibling", "org-wide", "event org-wide", "event", "click org-wide", "click"],
)
async def test_the_whole_organization_is_ours(grid: ListeningWorld, payload: dict[str, Any]) -> None:
    await grid.both_ways(payload)
    assert [call[1].person for call in grid.service.calls] == [Person("U0ANA", "T1")]


async def test_without_a_known_app_id_signature_or_socket_authenticates() -> None:
    async with listening() as there:
        assert (await there.over_http(command())).body == RECORDED
        assert (await there.over_http(command(api_app_id="A2"))).body == RECORDED


CHANNEL = ChannelInfo("C1", "docs", is_shared_outside=False, is_private=False)
EDITED_AT = "1700000009.000000"
IN_EVENTS_ONLY = ("channel", "channel_type", "event_ts")


@pytest.fixture
async def past_world() -> AsyncIterator[ListeningWorld]:
    async with listening() as made:
        yield made


def as_kept(message: dict[str, Any]) -> dict[str, Any]:
    """A message as Slack's history has it."""
    return {key: value for key, value in message.items() if key not in IN_EVENTS_ONLY}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"text": f"<@{BOT}> fix the guides", "thread_ts": None},
        {"subtype": "thread_broadcast"},
        {"subtype": "file_share", "files": [{"id": "F1", "name": "a.txt", "mimetype": "text/plain"}]},
        {"text": "!stop"},
        {"user": "U0EXT", "user_team": "T9", "source_team": "T9"},
        {"subtype": "bot_message", "bot_id": "B9"},
        {"subtype": "channel_join"},
    ],
)
async def test_what_was_written_is_recorded_as_if_it_had_just_arrived(
    past_world: ListeningWorld, changes: dict[str, Any]
) -> None:
    live = event(**changes)
    await past_world.take(live)
    recorded, past_world.service.calls = past_world.service.calls, []
    await past_world.app.handle_past(history.written(as_kept(live["event"]), CHANNEL, IDENTITY), Arrival.LIVE)
    assert past_world.service.calls == recorded


async def test_an_edit_is_recorded_as_of_the_time_that_the_message_names(past_world: ListeningWorld) -> None:
    live = edit("New words", before=None)
    live["event"]["ts"] = EDITED_AT
    await past_world.take(live)
    recorded, past_world.service.calls = past_world.service.calls, []
    await past_world.app.handle_past(history.changed(live["event"]["message"], CHANNEL, IDENTITY), Arrival.LIVE)
    assert past_world.service.calls == recorded != []


async def test_what_was_written_and_edited_is_also_a_message_with_the_new_words(past_world: ListeningWorld) -> None:
    message = edit("New words")["event"]["message"]
    await past_world.app.handle_past(history.written(message, CHANNEL, IDENTITY), Arrival.LIVE)
    assert past_world.service.replies == {("1700000002.000100", "New words")}


async def test_an_unedited_message_has_no_edit(past_world: ListeningWorld) -> None:
    await past_world.app.handle_past(history.changed(as_kept(event()["event"]), CHANNEL, IDENTITY), Arrival.LIVE)
    assert past_world.service.calls == []


async def test_nobody_without_a_team_counts_as_ours_in_a_shared_channel(past_world: ListeningWorld) -> None:
    shared = ChannelInfo("C1", "docs", is_shared_outside=True, is_private=False)
    message = as_kept(event(team=None)["event"])
    await past_world.app.handle_past(history.written(message, shared, IDENTITY), Arrival.LIVE)
    assert [reply.person.team_id for reply in past_world.service.received] == [""]


@pytest.mark.parametrize("arrival", Arrival)
async def test_everything_that_is_written_says_how_it_arrived(past_world: ListeningWorld, arrival: Arrival) -> None:
    reply = as_kept(event()["event"])
    mention = as_kept(event(text=f"<@{BOT}> fix the guides", thread_ts=None)["event"])
    edited = edit()["event"]["message"]
    for payload in (
        history.written(reply, CHANNEL, IDENTITY),
        history.written(mention, CHANNEL, IDENTITY),
        history.written({**reply, "text": "!stop"}, CHANNEL, IDENTITY),
        history.changed(edited, CHANNEL, IDENTITY),
    ):
        await past_world.app.handle_past(payload, arrival)
    assert [call[1].arrival for call in past_world.service.calls] == [arrival] * 4


async def test_what_could_not_be_recorded_is_not_counted_as_handled(past_world: ListeningWorld) -> None:
    past_world.service.fault = StoreUnavailable("down")
    with pytest.raises(NotRecorded):
        await past_world.app.handle_past(history.written(as_kept(event()["event"]), CHANNEL, IDENTITY), Arrival.LIVE)


EVERY_METHOD: dict[type[ChatError], str] = {
    ChatNotAllowed: "accesslimited account_inactive ekm_access_denied invalid_auth not_allowed_token_type not_authed "
    "org_login_required team_access_not_granted token_expired token_revoked two_factor_setup_required",
    ChatMissingScope: "missing_scope",
    ChatUncertain: "fatal_error internal_error request_timeout service_unavailable team_added_to_org",
    ChatRateLimited: "ratelimited",
    ChatRejected: "a_code_of_next_year channel_not_found invalid_blocks is_archived restricted_action no_permission",
}
METHODS: dict[str, dict[type[ChatError], str]] = {
    "chat.postMessage": {
        ChatNotInChannel: "not_in_channel",
        ChatRateLimited: "message_limit_exceeded rate_limited",
    },
    "chat.update": {
        ChatRateLimited: "external_channel_migrating message_limit_exceeded",
        ChatUncertain: "update_failed",
    },
    "chat.postEphemeral": {ChatRateLimited: "message_limit_exceeded", ChatNotInChannel: "not_in_channel"},
    "reactions.add": {ChatNotInChannel: "not_in_channel"},
    "conversations.history": {ChatNotInChannel: "not_in_channel"},
}
"""Without most of those that mean a rejection, as every other code does."""
ANY_HISTORY = "channels:history,groups:history,mpim:history,im:history"
CASES = [
    (method, code, kind)
    for method, own in METHODS.items()
    for table in (EVERY_METHOD, own)
    for kind, codes in table.items()
    for code in codes.split()
]


def answer(method: str, **body: object) -> ChatError:
    response = AsyncSlackResponse(
        client=AsyncWebClient(),
        http_verb="POST",
        api_url=f"https://slack.com/api/{method}",
        req_args={},
        data={"ok": False, **body},
        headers={},
        status_code=200,
    )
    return chat_error_from(SlackApiError("it said no", response))  # type: ignore[no-untyped-call]  # not typed by slack-sdk


def test_each_error_code_has_its_remedy() -> None:
    errors = [(method, answer(method, error=code)) for method, code, _ in CASES]
    assert [(method, error.reason, type(error)) for method, error in errors] == CASES


@pytest.mark.parametrize("code", sorted(NOT_ALLOWED))
def test_the_log_explains_a_code_about_the_token_and_names_its_setting(code: str) -> None:
    assert str(answer("chat.postMessage", error=code)) == refusal(BOT_TOKEN, code)
    assert str(answer("apps.connections.open", error=code)) == refusal(APP_TOKEN, code)
    assert str(answer("apps.manifest.export", error=code)) == code, "its token is in no setting"
    assert str(answer("chat.postMessage", error="is_archived")) == "is_archived"


@pytest.mark.parametrize(
    ("needed", "provided", "scopes"),
    [
        ("reactions:write", "chat:write,commands", ("reactions:write",)),
        (ANY_HISTORY, "chat:write", ("channels:history", "groups:history", "im:history")),
        (ANY_HISTORY, "channels:history", ("groups:history", "im:history")),
        ("im:write", "chat:write", ("im:write",)),
        ("reactions:write", None, ("reactions:write",)),
        ("", "", ()),
        (None, None, ()),
        (["reactions:write"], {}, ()),
        ("<!channel>\nreactions:write, x y", "", ()),
        ("reactions:write,<!here>", "", ("reactions:write",)),
    ],
)
def test_a_missing_scope_has_slacks_name(needed: object, provided: object, scopes: tuple[str, ...]) -> None:
    error = answer("reactions.add", error="missing_scope", needed=needed, provided=provided)
    assert isinstance(error, ChatMissingScope)
    assert error.scopes == scopes


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def recording_health(clock: FakeClock) -> RecordingHealth:
    return RecordingHealth(clock.monotonic)


def test_one_failure_makes_it_unready_and_one_write_ready_again(
    recording_health: RecordingHealth, clock: FakeClock
) -> None:
    assert recording_health.status().ok()
    recording_health.record_failure(StoreUnavailable("The database's disk is full."))
    clock.advance(1)
    part = recording_health.status()
    assert (part.ok(), part.critical, part.failing_seconds, part.reason) == (
        False,
        True,
        1,
        "The database's disk is full.",
    )
    recording_health.record_success()
    assert recording_health.status().ok()
    clock.advance(RECORDING_RECOVERY_SECONDS - 1)
    assert recording_health.failing(), "the database is probed more often for a while"
    recording_health.record_failure(StoreUnavailable("The database's disk is full."))
    assert not recording_health.status().ok()
    recording_health.record_success()
    clock.advance(RECORDING_RECOVERY_SECONDS)
    assert not recording_health.failing()


@pytest.mark.parametrize("fault", [UnreadableRow("a damaged row"), KeyError("ours")])
def test_an_error_of_one_request_is_no_outage(
    recording_health: RecordingHealth, clock: FakeClock, fault: Exception
) -> None:
    recording_health.record_failure(fault)
    clock.advance(1)
    assert recording_health.status().ok()
