"""The faults that tests can switch on, with slack_sdk and a real slack-bolt app."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import ClientSession
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from support.servers.slack_faults import FaultyWorkspace

DOCS = "C0DOCS001"


@pytest.fixture
async def workspace() -> AsyncIterator[FaultyWorkspace]:
    server = FaultyWorkspace(ack_timeout=0.2, retry_delays=(0.01, 0.02, 0.03))
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def client(workspace: FaultyWorkspace) -> AsyncIterator[AsyncWebClient]:
    async with ClientSession() as session:
        yield AsyncWebClient(
            token=workspace.credentials.bot_token, base_url=workspace.api_url, session=session, retry_handlers=[]
        )


@pytest.fixture
async def events(workspace: FaultyWorkspace) -> AsyncIterator[list[dict[str, Any]]]:
    """The message events that a connected app has received, in order."""
    client = AsyncWebClient(token=workspace.credentials.bot_token, base_url=workspace.api_url)
    app = AsyncApp(client=client, signing_secret=workspace.credentials.signing_secret)
    taken: list[dict[str, Any]] = []

    @app.event("message")
    async def on_message(body: dict[str, Any]) -> None:
        taken.append(body)

    handler: Any = AsyncSocketModeHandler(app, workspace.credentials.app_token, web_client=client, ping_interval=0.2)
    await handler.connect_async()
    await workspace.changes.wait_for(lambda: workspace.connected)
    yield taken
    await handler.close_async()


# calls


@pytest.mark.parametrize("applied", [False, True])
async def test_a_dropped_call_gets_no_answer(workspace: FaultyWorkspace, client: AsyncWebClient, applied: bool) -> None:  # noqa: FBT001 - parametrized
    fault = workspace.faults.drop(applied=applied, method="chat.postMessage")
    with pytest.raises(aiohttp.ClientConnectionError):
        await client.chat_postMessage(channel=DOCS, text="x")
    assert len(workspace.channels.messages("docs")) == int(applied)
    assert (workspace.web_api.calls[-1].applied, fault.hits) == (applied, 1)
    await client.chat_postMessage(channel=DOCS, text="x")


@pytest.mark.parametrize("applied", [False, True])
async def test_a_server_error_before_and_after(
    workspace: FaultyWorkspace,
    client: AsyncWebClient,
    applied: bool,  # noqa: FBT001 - parametrized
) -> None:
    workspace.faults.server_error(applied=applied, status=503, channel="docs", count=1)
    await client.chat_postMessage(channel="C0PARTNER", text="another channel is spared")
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel=DOCS, text="x")
    assert caught.value.response.status_code == 503
    assert [m.text for m in workspace.channels.messages("docs")] == ["x"] * applied


async def test_rate_limits_and_slack_errors(workspace: FaultyWorkspace, client: AsyncWebClient) -> None:
    workspace.faults.rate_limit(7, method="chat.postMessage")
    workspace.faults.error("fatal_error", method="chat.postMessage", count=2)
    codes = []
    for _ in range(3):
        with pytest.raises(SlackApiError) as caught:
            await client.chat_postMessage(channel=DOCS, text="x")
        response = caught.value.response
        codes.append((response["error"], response.status_code, response.headers.get("Retry-After")))
    assert codes == [("ratelimited", 429, "7"), ("fatal_error", 200, None), ("fatal_error", 200, None)]
    assert not any(call.applied for call in workspace.web_api.calls)
    await client.chat_postMessage(channel=DOCS, text="x")


async def test_a_delay_ends_when_the_faults_are_cleared(workspace: FaultyWorkspace, client: AsyncWebClient) -> None:
    fault = workspace.faults.delay(600)
    late = asyncio.create_task(client.chat_postMessage(channel=DOCS, text="late"))
    await workspace.changes.wait_for(lambda: fault.hits == 1)
    assert workspace.channels.messages("docs") == []
    workspace.faults.clear()
    assert (await late)["ok"]


async def test_an_outage_refuses_connections_and_ends_at_the_same_address(
    workspace: FaultyWorkspace, events: list[dict[str, Any]]
) -> None:
    client = AsyncWebClient(token=workspace.credentials.bot_token, base_url=workspace.api_url, retry_handlers=[])
    await workspace.begin_outage()
    with pytest.raises(aiohttp.ClientConnectorError):
        await client.auth_test()
    await workspace.changes.wait_for(lambda: not workspace.connected)
    await workspace.people["ana"].say("docs", "while it was away")
    await workspace.end_outage()
    assert (await client.auth_test())["ok"]
    await workspace.changes.wait_for(lambda: workspace.connected)
    await workspace.people["ana"].say("docs", "afterwards")
    await workspace.changes.wait_for(lambda: "afterwards" in [body["event"]["text"] for body in events])


# envelopes


async def test_a_duplicate_has_the_same_event_id(workspace: FaultyWorkspace, events: list[dict[str, Any]]) -> None:
    workspace.faults.duplicate_envelope("events_api")
    await workspace.people["ana"].say("docs", "twice")
    await workspace.deliveries.settled()
    assert len(events) == 2
    assert events[0]["event_id"] == events[1]["event_id"]


async def test_two_events_out_of_order(workspace: FaultyWorkspace, events: list[dict[str, Any]]) -> None:
    workspace.faults.reorder_envelope("events_api")
    ana = workspace.people["ana"]
    await ana.say("docs", "first")
    await ana.say("docs", "second")
    await workspace.deliveries.settled()
    assert [body["event"]["text"] for body in events] == ["second", "first"]


async def test_an_event_is_sent_again_after_a_lost_ack(
    workspace: FaultyWorkspace, events: list[dict[str, Any]]
) -> None:
    workspace.faults.drop_ack("events_api")
    await workspace.people["ana"].say("docs", "again")
    await workspace.deliveries.settled()
    assert [body["event"]["text"] for body in events] == ["again", "again"]
    assert workspace.deliveries.records[-1].attempts == 2


async def test_a_lost_envelope_is_sent_again(workspace: FaultyWorkspace, events: list[dict[str, Any]]) -> None:
    workspace.faults.lose_envelope("events_api")
    await workspace.people["ana"].say("docs", "at last")
    await workspace.deliveries.settled()
    assert [body["event"]["text"] for body in events] == ["at last"]


async def test_an_event_is_given_up_after_three_retries(workspace: FaultyWorkspace) -> None:
    await workspace.people["ana"].say("docs", "nobody listens")
    await workspace.deliveries.settled()
    delivery = workspace.deliveries.records[-1]
    assert (delivery.attempts, delivery.acked, delivery.failed) == (4, False, "no_connection")
    assert delivery.given_up


# connections


async def test_a_ticket_is_valid_once_and_expires() -> None:
    clock = [1_700_000_000.0]
    server = FaultyWorkspace(now=lambda: clock[0])
    await server.start()
    try:
        client = AsyncWebClient(token=server.credentials.bot_token, base_url=server.api_url)
        async with ClientSession() as session:

            async def opened(url: str) -> int:
                try:
                    async with session.ws_connect(url) as socket:
                        hello = await socket.receive_json()
                        assert hello["type"] == "hello"
                        assert hello["connection_info"]["app_id"] == server.app.app_id
                        return 101
                except aiohttp.WSServerHandshakeError as refusal:
                    return refusal.status

            url = (await client.apps_connections_open(app_token=server.credentials.app_token))["url"]
            assert [await opened(url), await opened(url)] == [101, 403]
            late = (await client.apps_connections_open(app_token=server.credentials.app_token))["url"]
            clock[0] += 31
            assert await opened(late) == 403
            refused = (await client.apps_connections_open(app_token=server.credentials.app_token))["url"]
            server.faults.refuse_handshake()
            assert await opened(refused) == 403
    finally:
        await server.stop()


async def test_a_ping_is_echoed(workspace: FaultyWorkspace) -> None:
    async with ClientSession() as session:
        url = workspace.socket_mode.open_url()
        async with session.ws_connect(url, autoping=False) as socket:
            await socket.receive_json()
            await socket.ping(b"sdk-ping-pong:1.5")
            pong = await socket.receive()
            assert (pong.type, bytes(pong.data)) == (aiohttp.WSMsgType.PONG, b"sdk-ping-pong:1.5")


async def test_a_warning_leaves_the_connection_open(workspace: FaultyWorkspace) -> None:
    async with ClientSession() as session:
        url = workspace.socket_mode.open_url()
        async with session.ws_connect(url) as socket:
            await socket.receive_json()
            await workspace.disconnect("warning")
            assert (await socket.receive_json())["reason"] == "warning"
            await workspace.disconnect("link_disabled")
            assert (await socket.receive_json())["reason"] == "link_disabled"
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
