"""The faults that tests can switch on, with slack_sdk and a real slack-bolt app."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import ClientSession
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient
from support.servers.slack_faults import FaultyWorkspace
from support.worlds.workspace_world import client_of, running

DOCS = "C0DOCS001"


@pytest.fixture
async def workspace() -> AsyncIterator[FaultyWorkspace]:
    async with running(ack_timeout=0.2, retry_delays=(0.01, 0.02, 0.03)) as server:
        yield server


@pytest.fixture
async def client(workspace: FaultyWorkspace) -> AsyncIterator[AsyncWebClient]:
    async with ClientSession() as session:
        yield AsyncWebClient(
            token=workspace.credentials.bot_token, base_url=workspace.api_url, session=session, retry_handlers=[]
        )


@pytest.fixture
async def events(workspace: FaultyWorkspace) -> AsyncIterator[list[dict[str, Any]]]:
    """The message events that a connected app has received, in order."""
    client = client_of(workspace)
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
    async with running(now=lambda: clock[0]) as server:
        client = client_of(server)
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
