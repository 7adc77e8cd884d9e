"""Hostile input to every endpoint of the workspace gets an error as answer, and never a crash."""

import io
import json
from typing import Any

import pytest
from aiohttp import ClientSession
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.hypothesis_settings import examples
from support.worlds.workspace_world import running

from bot.workspace.delivery.deliveries import Ack
from bot.workspace.web_api.method import TokenKind
from bot.workspace.web_api.methods import METHODS

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=30)
    | st.sampled_from(
        [
            *("C0DOCS001", "C0LEADS01", "U0ANA0001", "1700000000.000100", "9" * 40, "²", "-1", "\ud800", "x" * 41_000),
            *('[{"type":"section"}]', "[" * 5000, "{}", "next_ts:1", "bmV4dF90czox", "b2Zmc2V0Oi0x", "C0DOCS001,U1"),
        ]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    [
        *("channel", "text", "ts", "thread_ts", "timestamp", "name", "user"),
        *("users", "blocks", "metadata", "attachments", "cursor", "limit", "oldest"),
        *("latest", "inclusive", "types", "message_ts", "reply_broadcast", "as", "action_id"),
        *("block_id", "value", "response_type", "replace_original", "delete_original", "token", "broadcast"),
        *("view", "view_id", "external_id", "trigger_id", "hash", "user_id", "file", "usergroup", "include_users"),
    ]
)
ARGUMENTS = st.dictionaries(NAMES, VALUES, max_size=6)
PLAUSIBLE = st.fixed_dictionaries(
    {"channel": st.just("C0DOCS001")}, optional={"text": VALUES, "ts": VALUES, "timestamp": VALUES, "name": VALUES}
)
many = settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@many
@given(method=st.sampled_from(sorted(METHODS)), values=ARGUMENTS | PLAUSIBLE, as_form=st.booleans())
async def test_web_api_arguments(method: str, values: dict[str, Any], as_form: bool) -> None:  # noqa: FBT001 - drawn
    async with running() as server, ClientSession() as session:
        credentials = server.credentials
        token = {
            TokenKind.BOT: credentials.bot_token,
            TokenKind.APP: credentials.app_token,
            TokenKind.CONFIGURATION: credentials.configuration_token,
        }[METHODS[method].token]
        headers = {"Authorization": f"Bearer {token}"}
        if as_form:
            form = {name: json.dumps(value) for name, value in values.items()}
            request = session.post(f"{server.api_url}{method}", data=form, headers=headers)
        else:
            body = json.dumps(values)
            headers["Content-Type"] = "application/json"
            request = session.post(f"{server.api_url}{method}", data=body, headers=headers)
        async with request as answer:
            assert answer.status == 200
            assert isinstance((await answer.json())["ok"], bool)


@many
@given(
    raw=st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode(errors="replace")),
    kind=st.sampled_from(
        ["application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "x"]
    ),
)
async def test_web_api_bodies(raw: bytes, kind: str) -> None:
    async with running() as server, ClientSession() as session:
        headers = {"Content-Type": kind}
        async with session.post(f"{server.api_url}auth.test", data=raw, headers=headers) as answer:
            assert answer.status == 200
            assert (await answer.json())["ok"] is False


@many
@given(
    path=st.sampled_from(["send", "press", "edit", "delete", "react", "join"]),
    body=ARGUMENTS.map(lambda values: {"as": "U0ANA0001", "channel": "docs"} | values) | VALUES,
)
async def test_page_bodies(path: str, body: object) -> None:
    async with running() as server, ClientSession(headers={"Content-Type": "application/json"}) as session:
        async with session.post(f"{server.origin}/page/{path}", data=json.dumps(body)) as answer:
            assert answer.status == 200
            assert isinstance((await answer.json())["ok"], bool)
        async with session.get(f"{server.origin}/page/snapshot?as=U0ANA0001") as answer:
            assert answer.status == 200


@many
@given(body=ARGUMENTS | VALUES)
async def test_response_url_bodies(body: object) -> None:
    async with running() as server, ClientSession() as session:
        url = server.response_urls.issue("U0ANA0001", "C0DOCS001")
        async with session.post(url, data=json.dumps(body)) as answer:
            assert answer.status in {200, 400}


@pytest.mark.full
@many
@given(frames=st.lists(VALUES.map(json.dumps) | st.text(max_size=50) | ARGUMENTS.map(json.dumps), max_size=4))
async def test_socket_mode_frames(frames: list[str]) -> None:
    async with (
        running() as server,
        ClientSession() as session,
        session.ws_connect(server.socket_mode.open_url()) as socket,
    ):
        await socket.receive_json()
        for frame in frames:
            await socket.send_str(frame.encode(errors="replace").decode())
        await server.people["ana"].say("docs", "still there?")
        envelope = await socket.receive_json()
        await socket.send_json({"envelope_id": envelope["envelope_id"], "payload": frames})
        await server.changes.wait_for(lambda: server.deliveries.records[-1].acked)


@many
@given(payload=ARGUMENTS)
async def test_acknowledgements(payload: dict[str, Any]) -> None:
    async with running() as server:
        answer = server.people["ana"].show_ack(server.channels["docs"], server.app.commands[0], Ack(payload))
        assert isinstance(answer.ok, bool)


@pytest.mark.parametrize("path", ["/api/chat.postMessage", "/page/send", "/commands/T/x"])
async def test_a_body_that_is_too_large_is_refused(path: str) -> None:
    async with running() as server, ClientSession() as session:
        headers = {"Content-Type": "application/json"}
        async with session.post(f"{server.origin}{path}", data=io.BytesIO(b"x" * (5 << 20)), headers=headers) as answer:
            refused = answer.status == 413 or (await answer.json())["ok"] is False
            assert refused
