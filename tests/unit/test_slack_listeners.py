"""The listeners behind a real Bolt app: what each payload records, and that each is answered."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from slack_bolt.response import BoltResponse
from whispering import whispers_to_nobody

from bot.domain.models import Person
from bot.errors import StoreUnavailable
from bot.slack.app import SlackApp
from bot.slack.listeners.commands import GOT_IT, UNREADABLE
from bot.slack.recording import LATE, NOT_RECORDED
from bot.slack.response_urls import ResponseUrls
from bot.slack.web_api import Identity, new_session
from bot.slack.whispers import Whispers
from bot.slack.wording import Wording

BOT = "U0BOT"
IDENTITY = Identity(team_id="T1", team="Team", bot_user_id=BOT, bot_id="B0BOT")
ANA = Person("U0ANA", "T1")


@dataclass
class Recorded:
    """The service's interface, keeping what it was asked; `fault` is raised, `gate` waited for."""

    calls: list[tuple[Any, ...]] = field(default_factory=list)
    fault: Exception | None = None
    gate: asyncio.Event | None = None

    async def start(self, person: Person, channel_id: str, prompt: str, *, source_key: str) -> None:
        await self._keep("start", person, channel_id, prompt, source_key)

    async def steer(self, person: Person, channel_id: str, thread_ts: str, message_ts: str, text: str) -> bool:
        await self._keep("steer", person, channel_id, thread_ts, message_ts, text)
        return True

    async def send_again(self, person: Person, channel_id: str, request_id: str) -> None:
        await self._keep("send_again", person, channel_id, request_id)

    async def show_prompt(self, person: Person, channel_id: str, thread_id: str, *, source_key: str) -> None:
        await self._keep("show_prompt", person, channel_id, thread_id, source_key)

    async def _keep(self, *call: Any) -> None:
        if self.gate is not None:
            await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        self.calls.append(call)


@dataclass
class World:
    """A service and the app that asks it."""

    service: Recorded
    app: SlackApp
    whispers: Whispers

    async def take(self, payload: Any) -> BoltResponse:
        return await self.app.take_payload(payload)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    session = new_session()
    service, whispers = Recorded(), whispers_to_nobody(session)
    app = SlackApp(service, identity=IDENTITY, wording=Wording(bot_user_id=BOT), whispers=whispers, patience=0.05)
    yield World(service, app, whispers)
    await app.drain(1)
    await session.close()


def command(text: str = "Fix the guides", **changes: Any) -> dict[str, Any]:
    return {
        "command": "/docs",
        "text": text,
        "team_id": "T1",
        "user_id": "U0ANA",
        "channel_id": "C1",
        "trigger_id": "1.2.abc",
        "response_url": "http://127.0.0.1:9/secret",
        "api_app_id": "A1",
    } | changes


def event(**changes: Any) -> dict[str, Any]:
    message = {
        "type": "message",
        "user": "U0ANA",
        "text": "Also fix &lt;this&gt;",
        "ts": "1700000002.000100",
        "thread_ts": "1700000001.000100",
        "channel": "C1",
        "channel_type": "channel",
        "team": "T1",
    } | changes
    return {
        "type": "event_callback",
        "team_id": "T1",
        "api_app_id": "A1",
        "event_id": "Ev1",
        "event": {name: value for name, value in message.items() if value is not None},
        "authorizations": [{"team_id": "T1", "user_id": BOT, "is_bot": True}],
    }


def click(action_id: str, value: str = "r1", **changes: Any) -> dict[str, Any]:
    return {
        "type": "block_actions",
        "user": {"id": "U0ANA", "team_id": "T1"},
        "team": {"id": "T1"},
        "channel": {"id": "C1"},
        "trigger_id": "1.2.abc",
        "response_url": "http://127.0.0.1:9/secret",
        "actions": [{"type": "button", "action_id": action_id, "block_id": "b", "value": value, "action_ts": "1.1"}],
    } | changes


async def test_a_command_is_recorded_with_its_words_as_people_read_them(world: World) -> None:
    answer = await world.take(command('Replace &lt;b&gt; with <https://x.example|x.example> "now"'))
    assert (answer.status, answer.body) == (200, GOT_IT)
    assert world.service.calls == [
        ("start", ANA, "C1", 'Replace <b> with https://x.example "now"', "command/T1/1.2.abc")
    ]


@pytest.mark.parametrize("text", ["", "  ", "help", "HELP"])
async def test_the_command_alone_explains_itself_and_records_nothing(world: World, text: str) -> None:
    answer = await world.take(command(text))
    assert answer.status == 200
    assert "`//`" in answer.body
    assert world.service.calls == []


async def test_the_command_has_the_name_that_was_set() -> None:
    session = new_session()
    service = Recorded()
    app = SlackApp(service, identity=IDENTITY, wording=Wording(command="/pages"), whispers=whispers_to_nobody(session))
    assert (await app.take_payload(command(command="/pages"))).body == GOT_IT
    assert "/pages help" in (await app.take_payload(command(command="/docs"))).body
    assert len(service.calls) == 1
    await session.close()


async def test_a_command_that_could_not_be_recorded_is_answered_in_plain_words(world: World) -> None:
    world.service.fault = StoreUnavailable("locked")
    answer = await world.take(command())
    assert (answer.status, answer.body) == (200, NOT_RECORDED)


async def test_a_fault_nobody_expected_is_answered_without_its_words(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.service.fault = RuntimeError("the secret prompt")
    answer = await world.take(command())
    assert (answer.status, answer.body) == (200, NOT_RECORDED)
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text


async def test_slow_recording_is_answered_in_time_and_finishes_behind(world: World) -> None:
    world.service.gate = asyncio.Event()
    answer = await world.take(command())
    assert (answer.status, answer.body) == (200, LATE)
    world.service.gate.set()
    await world.app.drain(1)
    assert len(world.service.calls) == 1


async def test_an_incomplete_command_is_answered(world: World) -> None:
    assert (await world.take(command(trigger_id=None))).body == UNREADABLE
    assert (await world.take(command(user_id=7))).body == UNREADABLE
    assert world.service.calls == []


async def test_a_reply_is_recorded_as_people_read_it(world: World) -> None:
    assert (await world.take(event())).status == 200
    assert world.service.calls == [("steer", ANA, "C1", "1700000001.000100", "1700000002.000100", "Also fix <this>")]


@pytest.mark.parametrize(
    "changes", [{"subtype": "file_share"}, {"subtype": "thread_broadcast"}, {"type": "app_mention"}]
)
async def test_replies_come_in_several_forms(world: World, changes: dict[str, str]) -> None:
    await world.take(event(**changes))
    assert [call[0] for call in world.service.calls] == ["steer"]


async def test_mentioning_the_bot_is_not_part_of_what_it_is_told(world: World) -> None:
    await world.take(event(text=f"<@{BOT}> go on"))
    assert world.service.calls[0][-1] == "go on"


@pytest.mark.parametrize(
    "changes",
    [
        {"thread_ts": None},
        {"thread_ts": "1700000002.000100"},
        {"user": BOT},
        {"user": "USLACKBOT"},
        {"user": None},
        {"bot_id": "B0OTHER"},
        {"hidden": True},
        {"edited": {"user": "U0ANA", "ts": "1.000001"}},
        {"text": "// what do you think?"},
        {"text": f"<@{BOT}>"},
        {"text": ""},
        {"ts": "yesterday"},
        {"ts": None},
        {"channel": None},
        *({"subtype": name} for name in ("message_changed", "message_deleted", "channel_join", "channel_leave")),
        *({"subtype": name} for name in ("bot_message", "message_replied", "tombstone", "reminder_add")),
        {"subtype": ["file_share"]},
    ],
    ids=str,
)
async def test_what_is_no_reply_by_a_person_is_acknowledged_and_left_alone(
    world: World, changes: dict[str, Any]
) -> None:
    assert (await world.take(event(**changes))).status == 200
    assert world.service.calls == []


@pytest.mark.parametrize(
    ("changes", "team"),
    [
        ({"user_team": "T2"}, "T2"),
        ({"team": "T2"}, "T2"),
        ({"team": None, "source_team": "T2"}, "T2"),
        ({"team": None}, "T1"),
    ],
)
async def test_people_of_other_organisations_keep_their_team(world: World, changes: dict[str, Any], team: str) -> None:
    await world.take(event(**changes))
    assert world.service.calls[0][1] == Person("U0ANA", team)


@pytest.mark.parametrize("fault", [StoreUnavailable("locked"), RuntimeError("unexpected")])
async def test_a_reply_that_could_not_be_recorded_is_not_acknowledged(world: World, fault: Exception) -> None:
    world.service.fault = fault
    assert (await world.take(event())).status != 200
    world.service.fault = None
    assert (await world.take(event())).status == 200
    assert len(world.service.calls) == 1


async def test_buttons_are_recorded(world: World) -> None:
    assert (await world.take(click("send_again", "r1"))).status == 200
    assert (await world.take(click("show_prompt", "th1"))).status == 200
    assert (await world.take(click("open_pull_request"))).status == 200
    assert world.service.calls == [
        ("send_again", ANA, "C1", "r1"),
        ("show_prompt", ANA, "C1", "th1", "click/T1/1.2.abc"),
    ]


async def test_an_external_person_who_clicks_keeps_their_team(world: World) -> None:
    await world.take(click("send_again", user={"id": "U0EXT", "team_id": "T2"}))
    assert world.service.calls[0][1] == Person("U0EXT", "T2")


@pytest.mark.parametrize(
    "payload",
    [
        click("something_else"),
        command(command="/other"),
        event(type="channel_archive"),
        {"type": "message_action", "callback_id": "x", "user": {"id": "U0ANA"}},
        {"type": "shortcut", "callback_id": "x", "user": {"id": "U0ANA"}},
        {"type": "view_submission", "view": {"callback_id": "x"}, "user": {"id": "U0ANA"}},
        {"type": "view_closed", "view": {"callback_id": "x"}, "user": {"id": "U0ANA"}},
        {"type": "block_suggestion", "action_id": "x", "value": "y"},
        {"type": "interactive_message", "callback_id": "x", "actions": [{}]},
        {"type": "nobody_knows_this"},
        {},
    ],
    ids=lambda payload: str(payload.get("type") or payload.get("command")),
)
async def test_nothing_is_left_without_an_answer(world: World, payload: dict[str, Any]) -> None:
    assert (await world.take(payload)).status == 200
    assert world.service.calls == []


async def test_acknowledging_calls_no_web_api(world: World) -> None:
    """Sockets are forbidden but to this machine, and Bolt's client has no token: auth.test would fail the answer."""
    assert world.app.bolt.client.token is None
    assert (await world.take(event())).status == 200


async def test_variables_that_would_turn_bolt_to_oauth_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLACK_CLIENT_ID", "SLACK_CLIENT_SECRET", "SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET"):
        monkeypatch.setenv(name, "x")
    session = new_session()
    service = Recorded()
    app = SlackApp(service, identity=IDENTITY, wording=Wording(), whispers=whispers_to_nobody(session))
    assert app.bolt.oauth_flow is None
    assert (await app.take_payload(command())).body == GOT_IT
    await session.close()


def test_response_urls_are_in_no_repr() -> None:
    urls = ResponseUrls.__new__(ResponseUrls)
    ResponseUrls.__init__(urls, None)  # type: ignore[arg-type]  # nothing is sent here
    urls.remember("U", "C", "https://hooks.example/secret")
    assert "secret" not in repr(urls) + repr(urls._addresses)


# -- payloads of any shape --------------------------------------------------------------------------------------------

LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["C1", "U0ANA", "1.000001"])
SHAPES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=5,
)
BASES: list[Callable[[], dict[str, Any]]] = [
    command,
    event,
    lambda: event(type="app_mention"),
    lambda: click("send_again"),
    lambda: click("show_prompt"),
    lambda: {"type": "view_submission", "view": {"callback_id": "x", "state": {}}, "user": {"id": "U"}},
]


@st.composite
def broken(draw: st.DrawFn) -> dict[str, Any]:
    """A payload as documented, with a few of its fields removed or replaced by anything."""
    payload = json.loads(json.dumps(draw(st.sampled_from(BASES))()))
    for _ in range(draw(st.integers(1, 4))):
        place = payload
        while True:
            key = draw(st.sampled_from(sorted(place)))
            inner = place[key]
            if isinstance(inner, dict) and inner and draw(st.booleans()):
                place = inner
                continue
            break
        if draw(st.booleans()):
            place[key] = draw(SHAPES)
        elif len(place) > 1:
            del place[key]
    return payload  # type: ignore[no-any-return]  # it went through JSON


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(payload=broken())
async def test_a_payload_of_any_shape_is_acknowledged_without_a_traceback(
    world: World, caplog: pytest.LogCaptureFixture, payload: dict[str, Any]
) -> None:
    caplog.clear()
    assert (await world.take(payload)).status == 200
    assert "Traceback" not in caplog.text
    assert all(record.levelno < logging.ERROR for record in caplog.records)
    for call in world.service.calls:
        assert all(isinstance(part, str | Person) for part in call)
