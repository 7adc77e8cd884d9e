"""`pagehand doctor --live`: against a workspace like ours it finds nothing; each difference is named; whatever happens,
what it posted is deleted, and its record has nobody's words.
"""

import asyncio
import json
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from click.testing import CliRunner
from support.fakes.github import LINK, WEB, GitHubInMemory, pull
from support.servers.fake_job_api import KEY, PROJECT
from support.servers.slack_differences import Changed, DifferentWorkspace

from bot.app.settings.config import Config, load
from bot.cli.demo_services import manifest
from bot.cli.live import Rehearsing, Terminal, play_live
from bot.cli.live_shapes import add_shape, differences
from bot.cli.live_story import Act, Story
from bot.cli.main import main
from bot.runtime.http.server import listening_socket

pytestmark = pytest.mark.promise("doctor")
CODE_HOST_TOKEN = "planted-token-of-the-code-host"


class Operator(Terminal):
    """Types `lines`, one for each question, and acts at once, unless the act is `left_out`."""

    def __init__(self, workspace: DifferentWorkspace, *lines: str, seconds: float = 20.0) -> None:
        super().__init__(seconds)
        self._patience = seconds
        self.lines = list(lines)
        self.asked: list[str] = []
        self.left_out: set[Act] = set()
        self.reached = asyncio.Event()
        self._hands = Rehearsing(workspace)

    async def line(self, words: str) -> str:
        self.asked.append(words)
        if words.startswith("->"):
            self.reached.set()
            await asyncio.Event().wait()
        return self.lines.pop(0)

    async def does(self, act: Act, story: Story, seen: Awaitable[Any], /) -> Any:
        acting = [] if act in self.left_out else [asyncio.create_task(self._hands.acts(act, story))]
        self._seconds = self._patience if acting else 0.1
        try:
            return await super().does(act, story, seen)
        finally:
            await asyncio.gather(*acting)


@dataclass
class World:
    workspace: DifferentWorkspace
    config: Config
    directory: Path
    told: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def play(self, operator: Operator | None = None, channel: str = "#docs", link: str = "") -> int:
        try:
            return await play_live(
                self.config, operator or Operator(self.workspace, "docs"), channel, link, self.directory
            )
        finally:
            self.told = {step["step"]: step for step in self.record.get("steps", ())}

    @property
    def record(self) -> dict[str, Any]:
        """What was recorded: for its owner only, without secrets, ids, names and texts."""
        files = list(self.directory.glob("pagehand-live-*.json"))
        if not files:
            return {}
        text = files[0].read_text(encoding="utf-8")
        credentials, state = self.workspace.credentials, self.workspace.state
        secret = [credentials.bot_token, credentials.app_token, credentials.signing_secret, KEY, CODE_HOST_TOKEN]
        ids = [*state.users, *state.channels, state.team.id, self.workspace.app.app_id, self.workspace.app.bot_id]
        sent = [str(call.args.get("text") or "") for call in self.workspace.web_api.calls]
        lines = [line for each in sent for line in each.splitlines() if line]
        names = ["Hello", "#docs", "Local workspace", "acme", "git.example"]
        assert [each for each in (*secret, *ids, *lines, *names) if each in text] == []
        assert stat.S_IMODE(files[0].stat().st_mode) == 0o600
        return dict(json.loads(text))

    @property
    def verdicts(self) -> dict[str, str]:
        return {step: told["verdict"] for step, told in self.told.items() if told["verdict"] != "ok"}

    @property
    def posted(self) -> list[str]:
        return [message.text for message in self.workspace.channels.messages("docs")]


@asynccontextmanager
async def a_world(directory: Path, **environ: str) -> AsyncIterator[World]:
    workspace = DifferentWorkspace(manifest(), ack_timeout=1.0)
    await workspace.start()
    settings = {
        "SLACK_BOT_TOKEN": workspace.credentials.bot_token,
        "SLACK_APP_TOKEN": workspace.credentials.app_token,
        "SLACK_API_URL": workspace.api_url.rstrip("/"),
        "JOB_API_URL": "http://127.0.0.1:9",
        "JOB_API_KEY": KEY,
        "JOB_API_PROJECT": PROJECT,
    }
    yield World(workspace, load(settings | environ), directory)
    await workspace.stop()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as made:
        yield made


async def test_a_workspace_like_ours_differs_in_nothing(world: World) -> None:
    assert await world.play() == 0
    assert world.verdicts == {"pull request": "skipped"}
    assert len(world.told) == 15
    assert world.posted == []


def without_metadata(answer: dict[str, Any]) -> None:
    for message in answer["messages"]:
        message.pop("metadata", None)


def of_event(**changed: object) -> Changed:
    return lambda payload: payload["event"].update(changed)


def of_message(**changed: object) -> Changed:
    return lambda answer: answer["message"].update(changed)


DIFFERENT: list[tuple[str, Changed, str, str]] = [
    ("conversations.history", without_metadata, "look-up", "a post is found by its key in the channel: no, not yes"),
    ("conversations.replies", without_metadata, "edit", "an edited card keeps its key: no, not yes"),
    ("conversations.replies", lambda answer: answer["messages"].reverse(), "reply", "oldest first: no, not yes"),
    ("chat.postMessage", of_message(room=None), "post", "chat.postMessage.message.room is new (null)"),
    ("chat.postMessage", of_message(text="1 < 2"), "post", "chat.postMessage: text as sent: no, not yes"),
    ("chat.update", of_message(blocks=[]), "edit", "chat.update: blocks as sent: no, not yes"),
    ("chat.postMessage", lambda answer: answer["message"].pop("app_id"), "post", "app_id is missing (text)"),
    ("views.open", lambda answer: answer["view"].update(hash=7), "button and form", "view.hash: number, not text"),
]
DIFFERENT_PAYLOADS: list[tuple[str, Changed, str, str]] = [
    ("message", of_event(team=None), "person's reply", "payload.event.team: null, not text"),
    ("message_changed", of_event(hidden="Hello"), "person's edit", "payload.event.hidden: text, not yes or no"),
    ("reaction_added", of_event(C0SECRET=1), "person's reaction", "payload.event.* is new (number)"),
    ("message_deleted", lambda sent: sent["event"].pop("previous_message"), "person's deletion", "previous_message"),
    ("block_actions", lambda sent: sent.update(enterprise={"id": "E0"}), "button and form", "payload.enterprise"),
]


@pytest.mark.first(method=1)
@pytest.mark.parametrize(("method", "change", "step", "line"), DIFFERENT)
async def test_a_different_answer_is_named(world: World, method: str, change: Changed, step: str, line: str) -> None:
    world.workspace.answers[method] = change
    await world.play()
    assert any(line in each for each in world.told[step]["differences"]), world.told[step]["differences"]
    assert world.posted == []


@pytest.mark.first(kind=1)
@pytest.mark.parametrize(("kind", "change", "step", "line"), DIFFERENT_PAYLOADS)
async def test_a_different_payload_is_named(world: World, kind: str, change: Changed, step: str, line: str) -> None:
    world.workspace.payloads[kind] = change
    assert await world.play() == 0
    assert [line in each for each in world.told[step]["differences"]] == [True]
    assert world.verdicts == {step: "different", "pull request": "skipped"}


@pytest.mark.full
async def test_refused_blocks_are_told_and_the_story_goes_on(world: World) -> None:
    world.workspace.refused_blocks.add("context")
    operator = Operator(world.workspace, "docs")
    operator.left_out = {Act.PRESS}
    assert await world.play(operator) == 1
    assert "the card is taken with its blocks: no, not yes" in world.told["post"]["differences"]
    assert world.told["edit"]["refused"] == "invalid_blocks"
    assert world.told["submitted form"]["why"] == "a step before it is missing"
    assert "person's reply" not in world.verdicts
    assert world.posted == []


@pytest.mark.full
@pytest.mark.parametrize("kind", ["plan", "card"])
async def test_a_kind_of_block_that_is_refused_is_named(world: World, kind: str) -> None:
    world.workspace.refused_blocks.add(kind)
    assert await world.play() == 0
    assert {
        "the card is taken with its blocks: no, not yes",
        f"chat.postMessage.message.blocks[{kind}] is missing (object)",
        "chat.postMessage.error is new (invalid_blocks)",
    } <= {*world.told["post"]["differences"]}
    assert world.told["edit"]["refused"] == ""


async def test_a_limit_is_waited_for(world: World) -> None:
    world.workspace.faults.rate_limit(1, method="chat.postMessage")
    assert await world.play() == 0
    assert world.record["limited"] == ["chat.postMessage"]
    assert world.verdicts == {"pull request": "skipped"}


async def test_what_a_missing_scope_prevents_is_skipped(world: World) -> None:
    world.workspace.credentials.remove_scopes("reactions:write")
    assert await world.play() == 0
    assert world.told["scopes"]["differences"] == ["scope reactions:write is missing (yes)"]
    assert world.told["reaction"]["why"] == "the app lacks the scope reactions:write"


@pytest.mark.full
async def test_what_never_arrives_is_not_waited_for_forever(world: World) -> None:
    world.workspace.faults.envelope("lose", "events_api", None)
    assert await world.play(Operator(world.workspace, "docs", seconds=1.0)) == 0
    assert world.told["person's reply"]["why"] == "nothing arrived within 1 s"
    assert world.told["person's edit"]["why"] == "a step before it is missing"


@pytest.mark.first(channel=1)
@pytest.mark.parametrize(
    ("channel", "lines"),
    [
        ("#docs", ["leads", ""]),
        ("", [""]),
        ("#partners", [""]),
        ("#general", [""]),
        ("C0NOWHERE", [""]),
    ],
)
async def test_nothing_is_posted_in_a_channel_that_was_not_confirmed(
    world: World, channel: str, lines: list[str]
) -> None:
    assert await world.play(Operator(world.workspace, *lines), channel) == 1
    assert not [call for call in world.workspace.web_api.calls if call.method.startswith(("chat.", "reactions."))]
    assert world.record == {}


async def test_what_cannot_be_deleted_is_told(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.workspace.answers["chat.delete"] = lambda answer: answer.update(ok=False, error="no_luck")
    operator = Operator(world.workspace, "docs")
    operator.left_out = {Act.DELETE}
    assert await world.play(operator) == 1
    left = "your reply in the thread, a message of mine (no_luck), a message of mine (no_luck)"
    assert f"Left for you to delete: {left}." in capsys.readouterr().out


async def interrupted(world: World, reached: Callable[[], Awaitable[object]], operator: Operator) -> None:
    playing = asyncio.create_task(world.play(operator))
    await reached()
    playing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await playing
    assert world.posted == []


async def test_interrupting_it_cleans_up_and_records_what_there_is(world: World) -> None:
    operator = Operator(world.workspace, "docs")
    operator.left_out = {Act.PRESS}
    await interrupted(world, operator.reached.wait, operator)
    assert list(world.told) == ["channel", "scopes", "post", "look-up", "edit", "reaction", "reply"]


async def test_names_of_the_workspace_send_nothing_to_the_terminal(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.workspace.answers["auth.test"] = lambda answer: answer.update(team="Evil\x1b]0;title\x07")
    world.workspace.answers["conversations.info"] = lambda answer: answer["channel"].update(name="docs\x1b]0;x\x07")
    operator = Operator(world.workspace, "docs", "")
    assert await world.play(operator, world.workspace.channels["docs"].id) == 1
    assert "This posts in #docs]0;x of Evil]0;title, and deletes it all at the end." in capsys.readouterr().out


async def test_a_post_whose_answer_is_lost_is_found_and_deleted(world: World) -> None:
    posts = world.workspace.faults.delay(30, applied=True, method="chat.postMessage")
    arrived = world.workspace.changes
    await interrupted(world, lambda: arrived.wait_for(lambda: bool(posts.hits), 20), Operator(world.workspace, "docs"))
    assert "chat.delete" in [call.method for call in world.workspace.web_api.calls]


@pytest.mark.full
async def test_over_http_what_people_do_is_skipped(tmp_path: Path) -> None:
    async with a_world(tmp_path, SLACK_APP_TOKEN="", SLACK_SIGNING_SECRET="planted-signing-secret") as world:
        assert await world.play() == 0
        assert world.told["button and form"]["why"] == "without SLACK_APP_TOKEN nothing arrives here"
        assert world.told["edit"]["verdict"] == "ok"


@pytest.mark.first(free=1)
@pytest.mark.parametrize("free", [True, False])
async def test_a_pull_request_is_followed_until_it_is_merged(tmp_path: Path, free: bool) -> None:  # noqa: FBT001
    github = GitHubInMemory()
    github.status["/check-runs"] = 403
    listener = listening_socket("127.0.0.1", 0)
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    left = [100]

    async def answer(request: web.Request) -> web.Response:
        etag, body = request.headers.get("If-None-Match", ""), await request.json() if request.can_read_body else None
        path = request.raw_path.removeprefix("/api/v3").removeprefix("/api")
        told = await github.send(request.method, path, body, etag=etag)
        left[0] -= told.status != 304 or not free
        headers = {**told.headers, "X-RateLimit-Remaining": str(left[0])}
        return web.json_response(told.data, status=told.status, headers=headers)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    settings = {"CODE_HOST_URL": address, "CODE_HOST_TOKEN": CODE_HOST_TOKEN}

    class Merging(Operator):
        async def does(self, act: Act, story: Story, seen: Awaitable[Any], /) -> Any:
            if act is Act.MERGE:
                github.answers["/repos/acme/docs/pulls/7"] = pull(
                    state="closed", merged=True, merged_by={"login": "ana"}
                )
            return await super().does(act, story, seen)

    async with a_world(tmp_path, **settings) as world:
        assert await world.play(Merging(world.workspace, "docs"), link=LINK.replace(WEB, address)) == 0
    told = world.told["pull request"]
    assert told["seen"] == {
        "an unchanged pull request is answered with 304": "yes",
        "that costs nothing": "yes" if free else "no",
        "the token may read checks": "no",
        "who merged it is told": "yes",
    }
    await runner.cleanup()


@pytest.mark.full
async def test_a_pull_request_that_cannot_be_read_is_skipped(world: World) -> None:
    assert await world.play(link="https://elsewhere.example/a/b/pull/1") == 0
    assert world.told["pull request"]["why"] == "it cannot be read (unknown_host)"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--live"], "run it at a terminal"),
        (["--live", "--json"], "its record is a file"),
        (["--channel", "#docs"], "need --live"),
        (["--pull-request", LINK], "need --live"),
    ],
)
def test_wrong_usage_is_explained(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(main, ["doctor", *arguments])
    assert result.exit_code == 2
    assert words in result.output


def test_a_shape_has_no_words_and_no_ids() -> None:
    value = {
        "type": "message",
        "subtype": "Not a code",
        "U0ANA": {"name": "ana"},
        "list": [{"type": "section", "text": "x"}, {"type": "divider"}, 3, None],
    }
    shape: dict[str, str] = {}
    add_shape(shape, "m", value)
    assert shape == {
        "m": "object",
        "m.type": "message",
        "m.subtype": "*",
        "m.*": "object",
        "m.*.name": "text",
        "m.list": "list",
        "m.list[section]": "object",
        "m.list[section].type": "section",
        "m.list[section].text": "text",
        "m.list[divider]": "object",
        "m.list[divider].type": "divider",
        "m.list[*]": "null | number",
    }
    assert differences({"m": "object"}, shape) == [
        "m.* is new (object)",
        "m.list is new (list)",
        "m.subtype is new (*)",
        "m.type is new (message)",
    ]
