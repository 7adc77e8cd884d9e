"""Samples of all that Slack sends, given to the bot: each is acknowledged or read, and nothing goes wrong.

What our own workspace sends is compared with the samples whenever a test uses one (`slack_samples.invented`).
"""

import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from support.oracles.slack_samples import SAME_ANSWER, SAMPLES, sample, surplus
from support.servers.file_server import file_server
from support.worlds.listening_world import listening
from support.worlds.slack_world import SlackWorld, slack_world

from bot.app.manifest import SlackAppRefused, SlackApps
from bot.domain.delivery import ReactionCall
from bot.domain.messages import SlackFile
from bot.domain.people import HomeContent
from bot.errors import ChatError
from bot.notices.answers import PromptRequested
from bot.notices.notice import Notice, Reaction
from bot.slack.receiving.history import SlackPastMessages
from bot.slack.sending.conversations import SlackChannels
from bot.slack.sending.files import SlackFiles
from bot.slack.sending.identity import identify
from bot.slack.sending.people import SlackGroups
from bot.slack.sending.user_directory import SlackMembers, UserDirectory
from bot.slack.sending.views import ShownView
from bot.slack.sending.web_api import SlackClient, call, new_session

pytestmark = pytest.mark.skipif(not SAMPLES.exists(), reason=f"the samples of Slack are not in {SAMPLES}")
RECEIVED = [
    path.relative_to(SAMPLES).with_suffix("")
    for part in ("events", "app-backend")
    for path in sorted((SAMPLES / part).rglob("*.json"))
]
OURS = {"team_id": "T1", "team": "T1", "user": "U0ANA", "user_id": "U0ANA", "channel": "C1", "channel_id": "C1"}
TEXTS = {
    "text": "<@U0BOT> Fix it",
    "ts": "1700000002.000100",
    "event_ts": "1700000002.000100",
    "command": "/docs",
    "id": "X1",
    "next_cursor": "",
}


def filled(told: Any, key: str = "") -> Any:
    """Returns a sample as if it came from our workspace."""
    match told:
        case dict():
            ids = {"team": "T1", "user": "U0ANA", "channel": "C1"}
            return {name: filled(each, name) for name, each in told.items()} | ({"id": ids[key]} if key in ids else {})
        case list():
            return [filled(each, key) for each in told]
        case str():
            return (OURS | TEXTS).get(key, told)
        case _:
            return told


def nothing_went_wrong(caplog: pytest.LogCaptureFixture) -> None:
    assert [
        record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR or record.exc_info
    ] == []


async def test_every_sample_is_acknowledged(caplog: pytest.LogCaptureFixture) -> None:
    async with listening() as world:
        for name in map(str, RECEIVED):
            for payload in (sample(name), filled(sample(name))):
                assert (name, (await world.over_http(payload)).status) == (name, 200)
    nothing_went_wrong(caplog)


def past_messages(world: SlackWorld) -> SlackPastMessages:
    return SlackPastMessages(world.client, world.identity)


TOLD = Notice(1, "k", "th1", PromptRequested("U0ANA", "Fix it"), 0.0)
CALLS: dict[str, Callable[[SlackWorld], Awaitable[object]]] = {
    "auth.test": lambda world: identify(world.client),
    "apps.manifest.create": lambda world: SlackApps(world.client).create({}),
    "apps.manifest.export": lambda world: SlackApps(world.client).manifest_of("A1"),
    "apps.manifest.update": lambda world: SlackApps(world.client).update("A1", {}),
    "apps.manifest.validate": lambda world: SlackApps(world.client).update("A1", {}),
    "chat.delete": lambda world: call(world.client.chat_delete(channel="C1", ts="1.000001")),
    "chat.getPermalink": lambda world: world.permalinks.soon("C1", "1.000001", seconds=5),
    "chat.postEphemeral": lambda world: world.chat.tell(world.thread, TOLD),
    "chat.postMessage": lambda world: world.posted(),
    "chat.update": lambda world: world.chat.update_card(replace(world.thread, card_ts="1.000001")),
    "conversations.history": lambda world: SlackPastMessages(world.client, world.identity).messages(
        "C1", "", oldest=""
    ),
    "conversations.info": lambda world: SlackChannels(world.client).channel("C1"),
    "conversations.join": lambda world: world.chat.join("C1"),
    "users.conversations": lambda world: past_messages(world).channels(),
    "conversations.replies": lambda world: world.conversations.thread("C1", "1.000001"),
    "reactions.add": lambda world: world.chat.react(world.thread, "1.000001", ReactionCall(Reaction.RECORDED)),
    "reactions.remove": lambda world: world.chat.react(
        world.thread, "1.000001", ReactionCall(Reaction.RECORDED, removes=True)
    ),
    "users.info": lambda world: SlackMembers(UserDirectory(world.client), world.identity).member("U1"),
    "usergroups.list": lambda world: world.people.names(["S1", "C1", "U1"]),
    "usergroups.users.list": lambda world: SlackGroups(world.client).members_of(["S1"]),
    "files.info": lambda world: SlackFiles(world.client, world.session).look_up(
        SlackFile("F1", "a", must_look_up=True)
    ),
    "views.publish": lambda world: world.views.publish_home(HomeContent("U1")),
    "views.open": lambda world: world.views.open("t1", {}),
    "views.update": lambda world: world.views.update(ShownView("V1"), {}),
}


@pytest.mark.first(is_ok=1)
@pytest.mark.parametrize("is_ok", [True, False])
@pytest.mark.parametrize("method", CALLS)
async def test_every_answer_is_read(method: str, is_ok: bool, caplog: pytest.LogCaptureFixture) -> None:  # noqa: FBT001 - a case
    """Of all other methods, the answer is the sample of a success."""
    async with slack_world(names_within=1.0) as world, file_server() as slack, new_session() as session:
        for name in CALLS | {"bots.info": None}:
            answer = filled(sample(f"api/{SAME_ANSWER.get(name, name)}")) | {"ok": is_ok or name != method}
            slack.gives(f"/{name}", json.dumps(answer).encode(), content_type="application/json")
        client = SlackClient("xoxb-planted", session, base_url=f"{slack.address}/")
        try:
            await CALLS[method](replace(world, client=client))
        except (ChatError, SlackAppRefused):
            assert not is_ok
        assert f"/{method}" in [path for path, _ in slack.asked]
    nothing_went_wrong(caplog)


def test_a_key_that_no_sample_has_is_found() -> None:
    told = {"ok": True, "channel": "C1", "made_up": 1, "message": {"text": "x", "made_up": {}, "blocks": [{"any": 1}]}}
    assert list(surplus(sample("api/chat.postMessage"), told, "answer")) == ["answer.made_up", "answer.message.made_up"]
