"""Receiving over real sockets, with the workspace in Slack's place: what it sends is recorded once, or sent again."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ports import free_port
from pydantic import SecretStr
from slack_sdk.web.async_client import AsyncWebClient

from bot.domain.models import Person
from bot.errors import ChatNotAllowed, StoreUnavailable
from bot.slack.app import SlackApp
from bot.slack.listeners.commands import GOT_IT
from bot.slack.receiving.http_events import MAX_BODY, HttpReceiver
from bot.slack.receiving.signature import is_signed, signed
from bot.slack.receiving.socket_mode import SocketReceiver
from bot.slack.recording import LATE, NOT_RECORDED
from bot.slack.response_urls import ResponseUrls
from bot.slack.web_api import identify, new_client, new_session
from bot.slack.whispers import Whispers
from bot.slack.wording import Wording, unknown_job
from bot.workspace import WorkspaceServer
from bot.workspace.app_config import AppConfig
from bot.workspace.interactions import Answer


@dataclass
class Recorded:
    """The service's interface over a set, as the store refuses duplicates; `fault` is raised, `gate` waited for."""

    starts: set[str] = field(default_factory=set)
    replies: set[tuple[str, str]] = field(default_factory=set)
    clicks: list[tuple[str, str]] = field(default_factory=list)
    taken: int = 0
    fault: Exception | None = None
    knows: bool = True
    gate: asyncio.Event | None = None
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    async def start(self, person: Person, channel_id: str, prompt: str, *, source_key: str) -> None:
        await self._through()
        self.starts.add(source_key)

    async def steer(self, person: Person, channel_id: str, thread_ts: str, message_ts: str, text: str) -> bool:
        await self._through()
        self.replies.add((message_ts, text))
        return self.knows

    async def send_again(self, person: Person, channel_id: str, request_id: str) -> None:
        await self._through()
        self.clicks.append(("send_again", request_id))

    async def show_prompt(self, person: Person, channel_id: str, thread_id: str, *, source_key: str) -> None:
        await self._through()
        self.clicks.append(("show_prompt", thread_id))

    async def _through(self) -> None:
        self.taken += 1
        self.reached.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.fault is not None:
            raise self.fault


@dataclass
class World:
    """A workspace, the app that listens to it, and the client that both it and posts use."""

    workspace: WorkspaceServer
    service: Recorded
    app: SlackApp
    client: AsyncWebClient

    def receiver(self, **options: Any) -> SocketReceiver:
        return SocketReceiver(self.app, self.client, SecretStr(self.workspace.app_token), **options)

    async def post(self) -> str:
        """A message of the bot's with buttons, to reply to."""
        button = {"type": "button", "text": {"type": "plain_text", "text": "Again"}, "value": "r1"}
        elements = [{**button, "action_id": "send_again"}, {**button, "action_id": "unknown"}]
        answer = await self.client.chat_postMessage(
            channel=self.workspace.channel("docs").id, text="card", blocks=[{"type": "actions", "elements": elements}]
        )
        return str(answer["ts"])


@asynccontextmanager
async def world_with(config: AppConfig | None = None, signing_secret: str | None = None) -> AsyncIterator[World]:
    workspace = WorkspaceServer(
        config, signing_secret=signing_secret, redeliver_after=1.0, retry_delays=(0.01, 0.02, 0.03)
    )
    await workspace.start()
    session = new_session()
    client = new_client(workspace.bot_token, session, base_url=workspace.api_url)
    identity, service = await identify(client), Recorded()
    app = SlackApp(
        service, identity=identity, wording=Wording(), whispers=Whispers(client, ResponseUrls(session)), patience=0.3
    )
    try:
        yield World(workspace, service, app, client)
    finally:
        await session.close()
        await workspace.stop()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with world_with() as made:
        yield made


async def until(condition: Callable[[], object]) -> None:
    """Waits for something that wakes nobody; the test's time limit bounds it."""
    while not condition():  # noqa: ASYNC110 - a log or a health state has no event to wait on
        await asyncio.sleep(0.01)


@pytest.fixture
async def connected(world: World) -> AsyncIterator[SocketReceiver]:
    receiver = world.receiver()
    await receiver.start()
    await world.workspace.wait_for(lambda: world.workspace.socket_mode.connections == 2)
    yield receiver
    await receiver.stop(2)


# -- Socket Mode ------------------------------------------------------------------------------------------------------


async def test_commands_replies_and_clicks_arrive(world: World, connected: SocketReceiver) -> None:
    ana, workspace = world.workspace.person("ana"), world.workspace
    answer = await ana.command("docs", "/docs", "fix the guides")
    assert (answer.ok, answer.text) == (True, GOT_IT)
    ts = await world.post()
    reply = await ana.say("docs", "and the manual", thread_ts=ts)
    await workspace.settled()
    assert (await ana.press("docs", ts, "send_again")).ok
    assert (await ana.press("docs", ts, "unknown")).ok
    assert len(world.service.starts) == 1
    assert world.service.replies == {(reply.ts, "and the manual")}
    assert world.service.clicks == [("send_again", "r1")]


async def test_help_is_for_the_person_only(world: World, connected: SocketReceiver) -> None:
    ana = world.workspace.person("ana")
    answer = await ana.command("docs", "/docs", "help")
    assert "Steer" in answer.text
    assert len(ana.ephemerals("docs")) == 1
    assert world.workspace.person("ben").ephemerals("docs") == []


async def test_a_reply_that_mentions_the_bot_is_one_message_in_two_events(
    world: World, connected: SocketReceiver
) -> None:
    ana, ts = world.workspace.person("ana"), await world.post()
    reply = await ana.say("docs", f"@{world.workspace.app.name} and the manual", thread_ts=ts)
    await world.workspace.settled()
    types = [d.envelope.payload["event"]["type"] for d in world.workspace.deliveries if "event" in d.envelope.payload]
    assert {"message", "app_mention"} <= set(types)
    assert world.service.replies == {(reply.ts, "and the manual")}


async def test_a_reply_below_a_card_that_is_known_no_more_is_answered(world: World, connected: SocketReceiver) -> None:
    world.service.knows = False
    ana, ben, ts = world.workspace.person("ana"), world.workspace.person("ben"), await world.post()
    question = await ben.say("docs", "What about lunch?")
    await ana.say("docs", f"@{world.workspace.app.name} and the manual", thread_ts=ts)
    await ana.say("docs", "Gladly", thread_ts=question.ts)
    await world.workspace.settled()
    await world.app.drain(5)
    assert [message.text for message in ana.ephemerals("docs")] == [unknown_job(Wording())]
    assert ben.ephemerals("docs") == []


async def test_duplicated_and_reordered_envelopes_are_harmless(world: World, connected: SocketReceiver) -> None:
    ana, ts = world.workspace.person("ana"), await world.post()
    world.workspace.faults.duplicate_envelope(count=3)
    world.workspace.faults.reorder_envelope("events_api", count=2)
    await ana.command("docs", "/docs", "fix the guides")
    said = [(await ana.say("docs", f"reply {n}", thread_ts=ts)).ts for n in range(4)]
    await world.workspace.settled()
    assert len(world.service.starts) == 1
    assert {ts for ts, _ in world.service.replies} == set(said)
    assert all(delivery.acked for delivery in world.workspace.deliveries)


async def test_a_reply_comes_again_while_the_store_is_down(world: World, connected: SocketReceiver) -> None:
    ana, ts = world.workspace.person("ana"), await world.post()
    await world.workspace.settled()
    world.service.fault = StoreUnavailable("locked")
    reply = await ana.say("docs", "and the manual", thread_ts=ts)
    await world.service.reached.wait()
    world.service.fault = None
    await world.workspace.settled()
    assert world.workspace.deliveries[-1].acked
    assert world.workspace.deliveries[-1].attempts > 1
    assert world.service.replies == {(reply.ts, "and the manual")}


async def test_a_command_is_answered_in_words_while_the_store_is_down(world: World, connected: SocketReceiver) -> None:
    world.service.fault = StoreUnavailable("locked")
    answer = await world.workspace.person("ana").command("docs", "/docs", "fix the guides")
    assert (answer.ok, answer.text) == (True, NOT_RECORDED)


async def test_a_click_is_answered_in_words_while_the_store_is_down(world: World, connected: SocketReceiver) -> None:
    ana, ts = world.workspace.person("ana"), await world.post()
    world.service.fault = StoreUnavailable("locked")
    assert (await ana.press("docs", ts, "send_again")).ok
    await world.workspace.wait_for(lambda: ana.ephemerals("docs"))
    assert ana.ephemerals("docs")[0].text == NOT_RECORDED


async def test_a_slow_store_leaves_the_answer_in_time_and_a_late_failure_told(
    world: World, connected: SocketReceiver
) -> None:
    ana = world.workspace.person("ana")
    world.service.gate = asyncio.Event()
    answer = await ana.command("docs", "/docs", "fix the guides")
    assert (answer.ok, answer.text) == (True, LATE)
    world.service.fault = StoreUnavailable("locked")
    world.service.gate.set()
    await world.workspace.wait_for(lambda: len(ana.ephemerals("docs")) == 2)
    assert ana.ephemerals("docs")[1].text == NOT_RECORDED


async def test_acknowledging_needs_no_web_api(world: World, connected: SocketReceiver) -> None:
    world.workspace.faults.server_error(count=None)
    calls = len(world.workspace.calls)
    answer = await world.workspace.person("ana").command("docs", "/docs", "fix the guides")
    assert answer.text == GOT_IT
    assert len(world.workspace.calls) == calls


async def test_a_refresh_leaves_no_gap(world: World, connected: SocketReceiver) -> None:
    ana = world.workspace.person("ana")
    opened = connected._open[0]
    await world.workspace.disconnect("warning")
    answers: list[Answer] = []
    while connected._open[0] is opened or not answers:
        answers.append(await ana.command("docs", "/docs", f"job {len(answers)}"))
    assert all(answer.ok for answer in answers)
    assert connected.health().connected == 2


async def test_connections_come_back_after_a_disconnect(world: World, connected: SocketReceiver) -> None:
    await world.workspace.disconnect("refresh_requested")
    await world.workspace.wait_for(lambda: world.workspace.socket_mode.connections == 2)
    assert (await world.workspace.person("ana").command("docs", "/docs", "go on")).ok


async def test_connections_come_back_after_being_cut(world: World, connected: SocketReceiver) -> None:
    world.workspace.socket_mode.cut()
    await world.workspace.wait_for(lambda: world.workspace.socket_mode.connections == 0)
    await world.workspace.wait_for(lambda: world.workspace.socket_mode.connections == 2)
    assert (await world.workspace.person("ana").command("docs", "/docs", "go on")).ok


async def test_a_ticket_that_expired_at_reconnect_is_replaced(world: World, connected: SocketReceiver) -> None:
    """slack-sdk's own reconnecting would try the dead address for ever."""
    world.workspace.faults.refuse_handshake(1)
    opened = len([call for call in world.workspace.calls if call.method == "apps.connections.open"])
    await world.workspace.disconnect("refresh_requested", only=1)
    await world.workspace.wait_for(lambda: world.workspace.socket_mode.handshakes_refused >= 1)
    await world.workspace.wait_for(lambda: world.workspace.socket_mode.connections == 2, 20)
    calls = [call for call in world.workspace.calls if call.method == "apps.connections.open"]
    assert len(calls) >= opened + 2


async def test_an_outage_is_told_once_and_so_is_its_end(
    world: World, connected: SocketReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bot.slack")
    await world.workspace.begin_outage()
    await until(lambda: not connected.health().connected and "can't be opened" in caplog.text)
    assert connected.health().down_seconds > 0
    await world.workspace.end_outage()
    await world.workspace.wait_for(lambda: world.workspace.socket_mode.connections == 2, 20)
    await until(lambda: connected.health().connected == 2)
    assert connected.health().down_seconds == 0
    assert "is open again" in caplog.text
    assert "ticket" not in caplog.text


async def test_a_long_outage_is_in_the_health_and_once_in_the_log(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    receiver = world.receiver(monotonic=lambda: now[0])
    await world.workspace.begin_outage()
    await receiver.start()
    assert receiver.health().ok
    now[0] = 301.0
    assert not receiver.health().ok
    await until(lambda: "5 minutes" in caplog.text)
    await world.workspace.end_outage()
    await world.workspace.wait_for(lambda: world.workspace.socket_mode.connections == 2, 20)
    await until(lambda: receiver.health().ok)
    assert caplog.text.count("5 minutes") == 1
    await receiver.stop(2)


async def test_connections_that_slack_closes_at_once_are_not_opened_in_a_rush(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Slack allows ten: the eleventh is told to leave as soon as it comes."""
    receiver = world.receiver(connections=11)
    await receiver.start()
    await until(lambda: "too_many_websockets" in caplog.text)
    opened = [call for call in world.workspace.calls if call.method == "apps.connections.open"]
    assert len(opened) <= 20, "one that is closed at once waits longer each time"
    assert (await world.workspace.person("ana").command("docs", "/docs", "go on")).ok
    await receiver.stop(2)


async def test_a_token_revoked_while_running_works_again_once_restored(
    world: World, connected: SocketReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    world.workspace.revoke_tokens()
    await world.workspace.disconnect("link_disabled")
    await until(lambda: "token_revoked" in caplog.text)
    world.workspace.restore_tokens()
    await world.workspace.wait_for(lambda: world.workspace.socket_mode.connections == 2, 20)
    assert (await world.workspace.person("ana").command("docs", "/docs", "go on")).ok


@pytest.mark.parametrize("token", ["xapp-wrong-secret", ""])
async def test_a_bad_app_token_fails_loudly_at_start(world: World, token: str) -> None:
    receiver = SocketReceiver(world.app, world.client, SecretStr(token or world.workspace.bot_token))
    with pytest.raises(ChatNotAllowed) as caught:
        await receiver.start()
    assert "secret" not in repr(caught.value)


async def test_stopping_finishes_what_was_begun_and_takes_nothing_new(world: World) -> None:
    receiver = world.receiver()
    await receiver.start()
    ana, ts = world.workspace.person("ana"), await world.post()
    await world.workspace.settled()
    world.service.gate = asyncio.Event()
    reply = await ana.say("docs", "and the manual", thread_ts=ts)
    await world.service.reached.wait()
    stopping = asyncio.create_task(receiver.stop(5))
    await asyncio.sleep(0)
    later = await ana.say("docs", "too late for this process", thread_ts=ts)
    await world.workspace.wait_for(lambda: world.workspace.deliveries[-1].failed == "timeout")
    world.service.gate.set()
    await stopping
    assert world.service.replies == {(reply.ts, "and the manual")}
    first, second = world.workspace.deliveries[-2:]
    assert (first.acked, second.acked) == (True, False)
    again = world.receiver()
    await again.start()
    await world.workspace.settled()
    assert (later.ts, "too late for this process") in world.service.replies
    await again.stop(2)


async def test_stopping_does_not_wait_for_ever(world: World) -> None:
    receiver = world.receiver()
    await receiver.start()
    ana, ts = world.workspace.person("ana"), await world.post()
    world.service.gate = asyncio.Event()
    await ana.say("docs", "and the manual", thread_ts=ts)
    await world.service.reached.wait()
    await receiver.stop(0.1)
    assert world.service.replies == set()


async def test_only_so_many_are_worked_on_at_once(world: World) -> None:
    receiver = world.receiver(at_once=2)
    await receiver.start()
    ana, ts = world.workspace.person("ana"), await world.post()
    await world.workspace.settled()
    world.service.gate = asyncio.Event()
    for number in range(6):
        await ana.say("docs", f"reply {number}", thread_ts=ts)
    await world.workspace.wait_for(lambda: all(d.attempts for d in world.workspace.deliveries))
    assert world.service.taken <= 2
    world.service.gate.set()
    await world.workspace.wait_for(lambda: len(world.service.replies) == 6)
    await receiver.stop(2)


async def test_no_secret_and_no_text_is_logged_even_at_debug(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    receiver = world.receiver()
    await receiver.start()
    await world.workspace.person("ana").command("docs", "/docs", "planted words")
    world.workspace.faults.refuse_handshake(1)
    await world.workspace.disconnect("refresh_requested", only=1)
    await world.workspace.wait_for(lambda: world.workspace.socket_mode.handshakes_refused >= 1)
    await receiver.stop(2)
    logged = "\n".join(r.getMessage() for r in caplog.records if not r.name.startswith("bot.workspace"))
    for planted in ("planted words", "ticket=", world.workspace.app_token, world.workspace.bot_token):
        assert planted not in logged


# -- signed HTTP ------------------------------------------------------------------------------------------------------

SECRET = "signing-secret"


@dataclass
class Http:
    world: World
    receiver: HttpReceiver
    session: aiohttp.ClientSession
    ok: bool = True

    async def post(self, body: bytes, **headers: str) -> int:
        url = f"http://127.0.0.1:{self.receiver.port}/slack/events"
        async with self.session.post(url, data=body, headers=headers) as answer:
            return answer.status

    async def post_signed(self, body: bytes, *, age: float = 0.0) -> int:
        stamp = str(int(time.time() - age))
        signature = signed(SECRET, stamp, body).decode()
        return await self.post(
            body,
            **{"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": signature, "Content-Type": "application/json"},
        )


@pytest.fixture
async def http() -> AsyncIterator[Http]:
    port = free_port()
    config = AppConfig(request_url=f"http://127.0.0.1:{port}/slack/events")
    async with world_with(config, signing_secret=SECRET) as world, aiohttp.ClientSession() as session:
        made = Http(world, HttpReceiver(world.app, SecretStr(SECRET), host="127.0.0.1", port=port), session)
        made.receiver._health = lambda: {"ok": made.ok, "connections": 0}
        await made.receiver.start()
        yield made
        await made.receiver.stop(2)


async def test_commands_replies_and_clicks_arrive_signed(http: Http) -> None:
    world, ana = http.world, http.world.workspace.person("ana")
    assert await world.workspace.verify_request_url()
    assert (await ana.command("docs", "/docs", "fix the guides")).text == GOT_IT
    ts = await world.post()
    reply = await ana.say("docs", "and the manual", thread_ts=ts)
    await world.workspace.settled()
    assert (await ana.press("docs", ts, "send_again")).ok
    assert len(world.service.starts) == 1
    assert world.service.replies == {(reply.ts, "and the manual")}
    assert world.service.clicks == [("send_again", "r1")]


async def test_over_http_too_a_reply_comes_again_while_the_store_is_down(http: Http) -> None:
    world, ana = http.world, http.world.workspace.person("ana")
    ts = await world.post()
    await world.workspace.settled()
    world.service.fault = StoreUnavailable("locked")
    reply = await ana.say("docs", "and the manual", thread_ts=ts)
    await world.service.reached.wait()
    world.service.fault = None
    await world.workspace.settled()
    assert world.service.replies == {(reply.ts, "and the manual")}


async def test_what_slack_did_not_sign_is_turned_away_and_not_logged(
    http: Http, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    body, stamp = b'{"type": "event_callback", "text": "planted words"}', str(int(time.time()))
    right = signed(SECRET, stamp, body).decode()
    wrong = [
        {},
        {"X-Slack-Request-Timestamp": stamp},
        {"X-Slack-Signature": right},
        {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": "v0=" + "0" * 64},
        {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": "v0=\u00e9\u00e9"},
        {"X-Slack-Request-Timestamp": "soon", "X-Slack-Signature": right},
        {"X-Slack-Request-Timestamp": "-1", "X-Slack-Signature": right},
        {"X-Slack-Request-Timestamp": "9" * 400, "X-Slack-Signature": right},
        {"X-Slack-Request-Timestamp": "\u0661\u0662", "X-Slack-Signature": right},
        {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": ""},
    ]
    for headers in wrong:
        assert await http.post(body, **headers) == 401
    assert await http.post(body + b" ", **{"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": right}) == 401
    assert await http.post_signed(body, age=301) == 401
    assert await http.post_signed(body, age=-310) == 401
    logged = "\n".join(r.getMessage() for r in caplog.records if not r.name.startswith("bot.workspace"))
    assert "planted words" not in logged


async def test_an_empty_secret_lets_nothing_pass() -> None:
    body, stamp = b"{}", str(int(time.time()))
    assert not is_signed("", stamp, signed("", stamp, body).decode(), body, now=time.time())


async def test_a_body_over_a_megabyte_is_turned_away_and_not_logged(
    http: Http, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert await http.post_signed(b'{"text": "' + b"planted words " * (MAX_BODY // 14 + 1) + b'"}') == 413
    assert "planted words" not in caplog.text


@pytest.mark.parametrize("body", [b"{", b"[]", b"null", b'"x"', b"", b"payload=%7B", b"payload=[]", b"[" * 50_000])
async def test_a_signed_body_of_any_shape_is_answered(http: Http, body: bytes) -> None:
    assert await http.post_signed(body) in {200, 400}


async def test_a_signed_body_that_is_not_text_is_a_bad_request(http: Http) -> None:
    assert await http.post_signed(b"\xff\xfe") == 400


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=200), stamp=st.text(max_size=12), signature=st.text(max_size=80))
def test_no_signature_raises(body: bytes, stamp: str, signature: str) -> None:
    assert not is_signed(SECRET, stamp, signature, body, now=time.time())


async def test_health(http: Http) -> None:
    url = f"http://127.0.0.1:{http.receiver.port}/health"
    async with http.session.get(url) as answer:
        assert (answer.status, json.loads(await answer.text())["ok"]) == (200, True)
    http.ok = False
    async with http.session.get(url) as answer:
        assert answer.status == 503


async def test_stopping_over_http_finishes_what_was_begun(http: Http) -> None:
    world, ana = http.world, http.world.workspace.person("ana")
    ts = await world.post()
    await world.workspace.settled()
    world.service.gate = asyncio.Event()
    reply = await ana.say("docs", "and the manual", thread_ts=ts)
    await world.service.reached.wait()
    stopping = asyncio.create_task(http.receiver.stop(5))
    await asyncio.sleep(0)
    world.service.gate.set()
    await stopping
    await world.workspace.settled()
    assert world.service.replies == {(reply.ts, "and the manual")}
    assert world.workspace.deliveries[-1].acked
