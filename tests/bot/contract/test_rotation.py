"""Slack's secrets, the job API's key and the metrics' token are replaced while the bot runs."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer, TestServer
from support.fakes.slack_payloads import signed
from support.secret_files import SecretFileWorld
from support.worlds.listening_world import JSON, listening
from support.worlds.slack_world import SlackWorld, slack_world

from bot.errors import ChatNotAllowed, JobApiError, JobApiFailed, JobApiNotAllowed
from bot.jobapi.client import HttpJobApi
from bot.jobapi.models import PromptCall
from bot.jobapi.settings import JobApiSettings
from bot.runtime.http.health_pages import METRICS_PATH, metrics_route
from bot.runtime.http.server import listening_socket
from bot.slack.receiving.http_receiver import HttpReceiver
from bot.slack.receiving.socket_mode_receiver import SocketReceiver
from bot.slack.sending.identity import identify
from bot.slack.sending.web_api import SlackClient, new_session

OLD, NEW = "planted-old-secret", "planted-new-secret"


@pytest.fixture
async def world() -> AsyncIterator[SlackWorld]:
    async with slack_world() as made:
        yield made


@pytest.fixture
def file(tmp_path: Path) -> SecretFileWorld:
    made = SecretFileWorld(tmp_path)
    made.put(OLD)
    return made


# -- Slack ----------------------------------------------------------------------------------------------------------


async def test_requests_signed_with_either_signing_secret_are_accepted(file: SecretFileWorld) -> None:
    async with listening() as world, aiohttp.ClientSession() as session:
        receiver = HttpReceiver(world.app, file.secret(), listen=partial(listening_socket, "127.0.0.1", 0))
        await receiver.start()

        async def statuses() -> list[int]:
            found, url = [], f"http://127.0.0.1:{receiver.port}/slack/events"
            for secret in (OLD, NEW):
                async with session.post(url, data=b"{}", headers=signed(secret, b"{}", content_type=JSON)) as answer:
                    found.append(answer.status)
            return found

        assert await statuses() == [200, 401]
        file.put(f"{NEW}\n{OLD}\n")
        assert await statuses() == [200, 200]
        file.put("")
        assert await statuses() == [200, 200], "an empty file changes nothing"
        file.put(NEW)
        assert await statuses() == [401, 200]
        await receiver.stop(1)


async def test_a_new_bot_token_is_used_at_once(world: SlackWorld, file: SecretFileWorld) -> None:
    credentials = world.workspace.credentials
    file.put(credentials.bot_token)
    session = new_session()
    client = SlackClient(file.secret(), session, base_url=world.workspace.api_url)
    await identify(client)
    credentials.bot_token = "xoxb-planted-new-token"
    with pytest.raises(ChatNotAllowed, match="invalid_auth"):
        await identify(client)
    file.put(credentials.bot_token)
    assert (await identify(client)).bot_user_id == world.workspace.app.bot_user_id
    await session.close()


async def test_a_new_app_token_opens_the_next_connection(world: SlackWorld, file: SecretFileWorld) -> None:
    credentials = world.workspace.credentials
    file.put(credentials.app_token)
    receiver = SocketReceiver(world.app, world.client, file.secret(), connections=1)
    await receiver.start()
    credentials.app_token = "xapp-planted-new-token"
    file.put(credentials.app_token)
    await world.workspace.disconnect("refresh_requested")
    await world.workspace.changes.wait_for(lambda: len(world.workspace.socket_mode.connections) == 1)
    assert (await world.workspace.people["ana"].command("docs", "/docs", "go on")).ok
    await receiver.stop(1)


# -- metrics --------------------------------------------------------------------------------------------------------


async def test_metrics_are_served_for_either_token(file: SecretFileWorld) -> None:
    async def render() -> bytes:
        return b"pagehand_ready 1.0"

    app = web.Application()
    app.add_routes([metrics_route(render, file.secret())])
    async with TestServer(app) as server, aiohttp.ClientSession() as session:

        async def statuses() -> list[int]:
            found = []
            for given in (OLD, NEW):
                headers = {"Authorization": f"Bearer {given}"}
                async with session.get(server.make_url(METRICS_PATH), headers=headers) as answer:
                    found.append(answer.status)
            return found

        assert await statuses() == [200, 401]
        file.put(f"{NEW}\n{OLD}\n")
        assert await statuses() == [200, 200]
        file.put(NEW)
        assert await statuses() == [401, 200]


# -- the job API ----------------------------------------------------------------------------------------------------


class KeyedJobApi:
    """Answers 401 to a key that it does not know. `keys` has the key of each call."""

    def __init__(self) -> None:
        self.known = {OLD}
        self.keys: list[str] = []
        self.status = 200

    async def handle(self, request: web.BaseRequest) -> web.Response:
        key = request.headers["Authorization"].removeprefix("Bearer ")
        self.keys.append(key)
        if key not in self.known:
            return web.json_response({"error": f"unknown key {key}"}, status=401)
        return web.json_response({"id": "job_1", "status": "active"}, status=self.status)


@pytest.fixture
async def job_api(file: SecretFileWorld) -> AsyncIterator[tuple[KeyedJobApi, HttpJobApi]]:
    """A job API, and the client that has its key from the file."""
    api = KeyedJobApi()
    async with RawTestServer(api.handle) as server:
        settings = JobApiSettings(base_url=str(server.make_url("")), api_key=file.secret())
        client = HttpJobApi({"acme": ("acme", settings)})
        yield api, client
        await client.aclose()


async def test_the_key_that_the_api_takes_is_used(
    file: SecretFileWorld, job_api: tuple[KeyedJobApi, HttpJobApi]
) -> None:
    server, client = job_api

    async def calls() -> list[str]:
        server.keys.clear()
        await client.create("acme", PromptCall("Fix it", "k1"))
        await client.get("acme", "job_1")
        return server.keys

    assert await calls() == [OLD, OLD]
    file.put(f"{NEW}\n{OLD}\n")
    assert await calls() == [NEW, OLD, OLD], "the new one is not known yet: the old one is remembered"
    server.known = {NEW, OLD}
    assert await calls() == [OLD, OLD]
    server.known = {NEW}
    assert await calls() == [OLD, NEW, NEW]
    file.put("short")
    assert await calls() == [NEW, NEW], "a malformed file changes nothing"
    file.put(NEW)
    assert await calls() == [NEW, NEW]
    server.known = set()
    with pytest.raises(JobApiNotAllowed) as caught:
        await calls()
    assert server.keys == [NEW], "there is no other one to try"
    assert "planted" not in f"{caught.value} {caught.value.words}"


async def test_only_a_401_is_tried_with_another_key(
    file: SecretFileWorld, job_api: tuple[KeyedJobApi, HttpJobApi]
) -> None:
    """After anything else, the request may have been executed."""
    server, client = job_api
    file.put(f"{OLD}\n{NEW}\n")
    for status, error in ((403, JobApiNotAllowed), (500, JobApiFailed), (408, JobApiError)):
        server.status = status
        server.keys.clear()
        with pytest.raises(error):
            await client.create("acme", PromptCall("Fix it", "k1"))
        assert server.keys == [OLD]
