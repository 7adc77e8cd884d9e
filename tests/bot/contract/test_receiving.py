"""Receiving over real sockets, with the workspace instead of Slack: payloads are recorded once, or sent again."""

import asyncio
import io
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.fakes.slack_payloads import edit, signed
from support.hypothesis_settings import examples
from support.servers.free_ports import free_port
from support.worlds.listening_world import JSON
from support.worlds.slack_world import SlackWorld, slack_world

from bot.domain.findings import LastTime
from bot.domain.requests.request import WayIn
from bot.domain.threads.thread import ThreadOrigin
from bot.errors import ChatNotAllowed, StoreUnavailable
from bot.runtime.health import ComponentStatus, Health
from bot.runtime.http.health_pages import health_routes
from bot.runtime.http.server import listening_socket
from bot.runtime.rotating_secrets import RotatingSecret
from bot.slack.receiving import slack_app
from bot.slack.receiving.http_receiver import HttpReceiver, is_signed, signature_of
from bot.slack.receiving.socket_mode_receiver import SocketReceiver
from bot.slack.rendering.ephemeral_texts import NOT_RECORDED, RECORDED, STILL_RECORDING
from bot.workspace import Credentials, InteractionResult
from bot.workspace.model.app_config import AppConfig

world_with = partial(slack_world, ack_timeout=1.0, retry_delays=(0.01, 0.02, 0.03))
SECRET = "signing-secret"


@pytest.fixture
async def world() -> AsyncIterator[SlackWorld]:
    async with world_with() as made:
        yield made


async def until(condition: Callable[[], object]) -> None:
    """Polls a condition that cannot be awaited; the test's time limit bounds it."""
    while not condition():  # noqa: ASYNC110 - a log or a health state has no event to wait on
        await asyncio.sleep(0.01)


@asynccontextmanager
async def receiving(world: SlackWorld, **options: Any) -> AsyncIterator[SocketReceiver]:
    """Over Socket Mode."""
    receiver = world.receiver(**options)
    await receiver.start()
    yield receiver
    await receiver.stop(2)


async def until_both_connected(world: SlackWorld) -> None:
    await world.workspace.changes.wait_for(lambda: len(world.workspace.socket_mode.connections) == 2, 20)


@pytest.fixture
async def connected(world: SlackWorld) -> AsyncIterator[SocketReceiver]:
    async with receiving(world) as receiver:
        await until_both_connected(world)
        yield receiver


@dataclass
class Http:
    world: SlackWorld
    receiver: HttpReceiver
    session: aiohttp.ClientSession
    noted: list[LastTime]
    ok: bool = True

    async def post(self, body: bytes, headers: Mapping[str, str]) -> int:
        url = f"http://127.0.0.1:{self.receiver.port}/slack/events"
        async with self.session.post(url, data=io.BytesIO(body), headers=headers) as answer:
            return answer.status

    async def post_signed(self, body: bytes, *, age: float = 0.0) -> int:
        return await self.post(body, signed(SECRET, body, age=age, content_type=JSON))


@pytest.fixture
async def http() -> AsyncIterator[Http]:
    port = free_port()
    config = AppConfig(request_url=f"http://127.0.0.1:{port}/slack/events")
    async with (
        world_with(config, credentials=Credentials(signing_secret=SECRET)) as world,
        aiohttp.ClientSession() as session,
    ):
        part, noted = ComponentStatus("recording", critical=True, grace_seconds=0.0), list[LastTime]()
        health = Health(lambda: [part if made.ok else replace(part, failing_seconds=1.0, reason="disk full")])
        receiver = HttpReceiver(
            world.app,
            RotatingSecret(SECRET),
            listen=partial(listening_socket, "127.0.0.1", port),
            pages=health_routes(health),
            note=noted.append,
        )
        made = Http(world, receiver, session, noted)
        await made.receiver.start()
        yield made
        await made.receiver.stop(2)


@pytest.fixture(params=["Socket Mode", "HTTP"])
def linked(request: pytest.FixtureRequest) -> SlackWorld:
    """Over either transport."""
    if request.param == "HTTP":
        over_http: Http = request.getfixturevalue("http")
        return over_http.world
    request.getfixturevalue("connected")
    world: SlackWorld = request.getfixturevalue("world")
    return world


async def held_reply(world: SlackWorld) -> tuple[str, str]:
    """A reply that is being recorded until the service's gate opens, as it is recorded then."""
    ts = await world.post()
    await world.workspace.deliveries.settled()
    world.service.gate = asyncio.Event()
    reply = await world.workspace.people["ana"].say("docs", "and the manual", thread_ts=ts)
    await world.service.reached.wait()
    return reply.ts, "and the manual"


def open_gate(world: SlackWorld) -> None:
    assert world.service.gate is not None
    world.service.gate.set()


# -- both transports --------------------------------------------------------------------------------------------------


async def test_commands_replies_and_clicks_arrive(linked: SlackWorld) -> None:
    ana, workspace = linked.workspace.people["ana"], linked.workspace
    answer = await ana.command("docs", "/docs", "fix the guides")
    assert (answer.ok, answer.text) == (True, RECORDED)
    ts = await linked.post()
    reply = await ana.say("docs", "and the manual", thread_ts=ts)
    await workspace.deliveries.settled()
    assert (await ana.press("docs", ts, "send_again")).ok
    assert (await ana.press("docs", ts, "unknown")).ok
    assert len(linked.service.starts) == 1
    assert linked.service.replies == {(reply.ts, "and the manual")}
    assert linked.service.clicks == [("send_again", "r1")]


async def test_a_reply_is_redelivered_after_the_store_was_down(linked: SlackWorld) -> None:
    ana, ts = linked.workspace.people["ana"], await linked.post()
    await linked.workspace.deliveries.settled()
    linked.service.fault = StoreUnavailable("locked")
    reply = await ana.say("docs", "and the manual", thread_ts=ts)
    await linked.service.reached.wait()
    linked.service.fault = None
    await linked.workspace.deliveries.settled()
    assert linked.workspace.deliveries.records[-1].acked
    assert linked.workspace.deliveries.records[-1].attempts > 1
    assert linked.service.replies == {(reply.ts, "and the manual")}


# -- Socket Mode ------------------------------------------------------------------------------------------------------


async def test_the_two_events_of_a_mention_start_one_job(world: SlackWorld, connected: SocketReceiver) -> None:
    """Slack sends two events with different ids, which name the same message."""
    ana, name = world.workspace.people["ana"], world.workspace.app.name
    asked = await ana.say("docs", f"@{name} quiet Replace colour & flavour")
    await world.workspace.deliveries.settled()
    told = [record.envelope.payload for record in world.workspace.deliveries.records]
    assert {body["event"]["type"] for body in told if "event" in body} == {"message", "app_mention"}
    assert len({body["event_id"] for body in told if "event" in body}) == 2
    assert len(world.service.started) == 2
    (job,) = set(world.service.started)
    assert (job.way_in, job.prompt, job.quiet) == (WayIn.MENTION, "Replace colour & flavour", True)
    assert (job.thread_ts, job.message_ts, job.origin) == (asked.ts, asked.ts, ThreadOrigin.REQUEST)


async def test_a_slow_store_delays_no_answer_and_its_failure_is_told(
    world: SlackWorld, connected: SocketReceiver
) -> None:
    ana = world.workspace.people["ana"]
    world.service.gate = asyncio.Event()
    answer = await ana.command("docs", "/docs", "fix the guides")
    assert (answer.ok, answer.text) == (True, STILL_RECORDING)
    world.service.fault = StoreUnavailable("locked")
    world.service.gate.set()
    await world.workspace.changes.wait_for(lambda: len(ana.ephemerals("docs")) == 2)
    assert ana.ephemerals("docs")[1].text == NOT_RECORDED


async def test_refreshing_a_connection_loses_no_event(world: SlackWorld, connected: SocketReceiver) -> None:
    ana = world.workspace.people["ana"]
    opened = connected._connections._slots[0]
    await world.workspace.disconnect("warning")
    answers: list[InteractionResult] = []
    while connected._connections._slots[0] is opened or not answers:
        answers.append(await ana.command("docs", "/docs", f"job {len(answers)}"))
    assert all(answer.ok for answer in answers)
    assert connected.health().connected == 2


@pytest.mark.full
async def test_a_ticket_that_expired_during_reconnect_is_replaced(world: SlackWorld, connected: SocketReceiver) -> None:
    """slack-sdk's own reconnecting would try the dead address forever."""
    world.workspace.faults.refuse_handshake(1)
    opened = len([call for call in world.workspace.web_api.calls if call.method == "apps.connections.open"])
    await world.workspace.disconnect("refresh_requested", only=1)
    await world.workspace.changes.wait_for(lambda: world.workspace.handshakes_refused >= 1)
    await until_both_connected(world)
    calls = [call for call in world.workspace.web_api.calls if call.method == "apps.connections.open"]
    assert len(calls) >= opened + 2


async def test_an_outage_and_its_end_are_logged_once_each(
    world: SlackWorld, connected: SocketReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bot.slack")
    assert connected.health().up_seconds > 0
    await world.workspace.begin_outage()
    await until(lambda: not connected.health().connected and "cannot be opened" in caplog.text)
    assert connected.health().down_seconds > 0
    assert connected.health().up_seconds == 0
    await world.workspace.end_outage()
    await until_both_connected(world)
    await until(lambda: connected.health().connected == 2)
    assert connected.health().down_seconds == 0
    assert connected.health().up_seconds > 0
    assert "is open again" in caplog.text
    assert "ticket" not in caplog.text


async def test_connections_that_slack_closes_at_once_are_reopened_with_backoff(
    world: SlackWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """Slack allows ten: the eleventh is disconnected at once."""
    async with receiving(world, connections=11):
        await until(lambda: "too_many_websockets" in caplog.text)
        opened = [call for call in world.workspace.web_api.calls if call.method == "apps.connections.open"]
        assert len(opened) <= 20, "one that is closed at once waits longer each time"
        assert (await world.workspace.people["ana"].command("docs", "/docs", "go on")).ok


async def test_a_dead_keeper_and_its_connection_are_replaced(
    world: SlackWorld, connected: SocketReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the library does unexpectedly: without a keeper, the slot would stay empty forever."""

    class Broken:
        def __init__(self, session: Any) -> None:
            self.close = session.close

        @property
        def closed(self) -> bool:
            raise RuntimeError("in a state that it can't be in")

    current = connected._connections._slots[0]
    assert current is not None
    current.current_session = Broken(current.current_session)  # type: ignore[assignment]  # that is the fault
    await until(lambda: connected._connections._slots[0] not in {None, current})
    await until_both_connected(world)
    (record,) = [record for record in caplog.records if record.exc_info and record.name == "bot.runtime.tasks"]
    assert record.getMessage().startswith("connection 1 to Slack ended unexpectedly")
    (part,) = connected._connections._supervisor.statuses()
    assert part.reason == "it ended unexpectedly (RuntimeError)"
    assert (await world.workspace.people["ana"].command("docs", "/docs", "go on")).ok


async def test_a_token_revoked_while_running_works_once_restored(
    world: SlackWorld, connected: SocketReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    world.workspace.credentials.revoke()
    await world.workspace.disconnect("link_disabled")
    await until(lambda: "Slack does not accept SLACK_APP_TOKEN (token_revoked): it was revoked." in caplog.text)
    world.workspace.credentials.refusal = None
    await until_both_connected(world)
    assert (await world.workspace.people["ana"].command("docs", "/docs", "go on")).ok


@pytest.mark.parametrize("token", ["xapp-wrong-secret", ""])
async def test_a_bad_app_token_fails_loudly_at_start(world: SlackWorld, token: str) -> None:
    receiver = SocketReceiver(world.app, world.client, RotatingSecret(token or world.workspace.credentials.bot_token))
    with pytest.raises(ChatNotAllowed) as caught:
        await receiver.start()
    assert "secret" not in repr(caught.value)


@pytest.mark.full
async def test_stopping_finishes_current_work_and_accepts_no_more(world: SlackWorld) -> None:
    receiver = world.receiver()
    await receiver.start()
    reply = await held_reply(world)
    stopping = asyncio.create_task(receiver.stop(5))
    await asyncio.sleep(0)
    ts = world.workspace.channels.messages("docs")[0].ts
    later = await world.workspace.people["ana"].say("docs", "too late for this process", thread_ts=ts)
    await world.workspace.changes.wait_for(lambda: world.workspace.deliveries.records[-1].failed == "timeout")
    open_gate(world)
    await stopping
    assert world.service.replies == {reply}
    first, second = world.workspace.deliveries.records[-2:]
    assert (first.acked, second.acked) == (True, False)
    async with receiving(world):
        await world.workspace.deliveries.settled()
        assert (later.ts, "too late for this process") in world.service.replies


async def test_stopping_has_a_deadline(world: SlackWorld) -> None:
    receiver = world.receiver()
    await receiver.start()
    await held_reply(world)
    await receiver.stop(0.1)
    assert world.service.replies == set()


async def test_concurrent_events_are_bounded(world: SlackWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slack_app, "AT_A_TIME", 2)
    async with receiving(world):
        ana, ts = world.workspace.people["ana"], await world.post()
        await world.workspace.deliveries.settled()
        world.service.gate = asyncio.Event()
        for number in range(6):
            await ana.say("docs", f"reply {number}", thread_ts=ts)
        await world.workspace.changes.wait_for(lambda: all(d.attempts for d in world.workspace.deliveries.records))
        assert world.service.asked <= 2
        world.service.gate.set()
        await world.workspace.changes.wait_for(lambda: len(world.service.replies) == 6)


# -- signed HTTP ------------------------------------------------------------------------------------------------------


async def test_wrongly_signed_requests_are_noted_and_not_logged(http: Http, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    body = b'{"type": "event_callback", "text": "planted words"}'
    right = signed(SECRET, body, content_type=JSON)
    assert await http.post(body, right | {"X-Slack-Signature": "v0=" + "0" * 64}) == 401
    assert await http.post(body + b" ", right) == 401
    assert await http.post_signed(body, age=301) == 401
    assert set(http.noted) == {LastTime.BAD_SIGNATURE}
    logged = "\n".join(r.getMessage() for r in caplog.records if not r.name.startswith("bot.workspace"))
    assert "planted words" not in logged


async def test_an_empty_signing_secret_accepts_nothing() -> None:
    body, stamp = b"{}", str(int(time.time()))
    assert not is_signed("", stamp, signature_of("", stamp, body).decode(), body, now=time.time())


async def test_an_edit_of_the_longest_message_arrives(http: Http) -> None:
    def blocks(words: str) -> list[dict[str, Any]]:
        element = {"type": "rich_text_section", "elements": [{"type": "text", "text": words}]}
        return [{"type": "rich_text", "block_id": "b1", "elements": [element]}]

    old, new = "\U00020001" * 40_000, "\U00020000" * 40_000
    event = edit(new, before=old, team=None, blocks=blocks(new))["event"]
    event["previous_message"]["blocks"] = blocks(old)
    body = {"type": "event_callback", "team_id": http.world.workspace.state.team.id, "event": event}
    assert await http.post_signed(json.dumps(body).encode()) == 200
    (reply,) = http.world.service.edits
    assert reply.text == new


@pytest.mark.parametrize("body", [b"{", b"[]", b"null", b'"x"', b"", b"payload=%7B", b"payload=[]", b"[" * 50_000])
async def test_any_signed_body_is_answered(http: Http, body: bytes) -> None:
    assert await http.post_signed(body) in {200, 400}
    assert await http.post_signed(b"\xff\xfe" + body) == 400


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=200), stamp=st.text(max_size=12), signature=st.text(max_size=80))
def test_any_signature_header_is_handled(body: bytes, stamp: str, signature: str) -> None:
    assert not is_signed(SECRET, stamp, signature, body, now=time.time())


async def test_stopping_over_http_finishes_current_work(http: Http) -> None:
    world = http.world
    reply = await held_reply(world)
    stopping = asyncio.create_task(http.receiver.stop(5))
    await asyncio.sleep(0)
    open_gate(world)
    await stopping
    await world.workspace.deliveries.settled()
    assert world.service.replies == {reply}
    assert world.workspace.deliveries.records[-1].acked
