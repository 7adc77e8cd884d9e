"""`pagehand doctor --live` plays its story in our own workspace and then in the real one, prints what differs, and
records it without anybody's words.
"""

import asyncio
import json
import logging
import platform
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from pydantic import SecretStr

from bot import __version__
from bot.app.edges import Edges, open_edges
from bot.app.manifest import ManifestChoices, manifest_for
from bot.app.settings.config import Config, load
from bot.cli.live_shapes import differences
from bot.cli.live_story import STEPS, Act, Ear, Operator, Outcome, SkippedStep, Story, Watch, follow
from bot.cli.starting import BOT_FILE, environment
from bot.cli.terminal import typed_line
from bot.domain.people import ChannelInfo
from bot.runtime.private_files import owner_only
from bot.runtime.rotating_secrets import RotatingSecret
from bot.runtime.secrets.masking import SecretMasker
from bot.runtime.text import printable_line
from bot.runtime.untrusted_json import text_at
from bot.slack.rendering.blocks import FOLLOW_UP
from bot.slack.rendering.modals import Input
from bot.workspace import AppConfig, WorkspaceServer

PERSON_SECONDS = 300.0
"""How long each thing that only a person can do is waited for."""
REHEARSAL_SECONDS = 10.0
_COLORS = {"ok": "green", "different": "yellow", "skipped": "cyan"}
_SENDING = "It has keys, types and codes, but no texts, names, ids and tokens: please look at it, and send it to us."


class Terminal:
    """The operator at this process's terminal."""

    def __init__(self, seconds: float = PERSON_SECONDS) -> None:
        self._seconds = seconds

    async def line(self, words: str) -> str:
        """Returns what is typed; empty for Enter."""
        click.echo(words, nl=False)
        return await typed_line()

    async def does(self, act: Act, _story: Story, seen: Awaitable[Any], /) -> Any:
        """See Operator."""
        waits = [asyncio.ensure_future(seen), asyncio.ensure_future(self.line(f"-> {act} (Enter: skip this) "))]
        try:
            done, _ = await asyncio.wait(waits, timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED)
            if waits[0] in done:
                click.echo()
                return waits[0].result()
            raise SkippedStep("you went on" if done else f"nothing arrived within {self._seconds:.0f} s")
        finally:
            for each in waits:
                each.cancel()


class Rehearsing:
    """The operator in our own workspace."""

    def __init__(self, workspace: WorkspaceServer) -> None:
        self._ana = workspace.people["ana"]

    async def does(self, act: Act, story: Story, seen: Awaitable[Any], /) -> Any:
        """See Operator."""
        await self.acts(act, story)
        try:
            return await asyncio.wait_for(seen, REHEARSAL_SECONDS)
        except TimeoutError:
            raise SkippedStep(f"nothing arrived within {REHEARSAL_SECONDS:.0f} s") from None

    async def acts(self, act: Act, story: Story) -> None:
        """Does it."""
        ana, channel, card_ts = self._ana, story.channel_id, story.needs()
        reply_ts = text_at(story.heard.get(Act.WRITE), "event", "ts")
        match act:
            case Act.PRESS:
                await ana.press(channel, card_ts, FOLLOW_UP)
            case Act.SUBMIT:
                await ana.views.enter(Input.PROMPT, "Hello")
                await ana.views.submit()
            case Act.WRITE:
                await ana.say(channel, "Hello", thread_ts=card_ts)
            case Act.EDIT:
                await ana.edit(channel, reply_ts, "Hello!")
            case Act.MARK:
                await ana.react(channel, reply_ts, "x")
            case Act.DELETE:
                await ana.delete(channel, reply_ts)
            case Act.MERGE:
                pass


def run_live(channel: str, link: str) -> int:
    """Plays it with the settings of the environment, and returns 1 if Slack refused a step, or something is left.

    Raises ConfigError, PagehandError, and KeyboardInterrupt once it has cleaned up.
    """
    logging.basicConfig(level=logging.CRITICAL)
    return asyncio.run(play_live(load(environment(BOT_FILE)), Terminal(), channel, link))


async def play_live(config: Config, operator: Terminal, wanted: str, link: str, directory: Path = Path()) -> int:
    """See run_live. The record is written to `directory`."""
    expected = await _rehearse(config)
    async with _opened(config, operator) as story:
        if not (channel_id := await _confirmed(story.edges, operator, wanted)):
            click.echo("Nothing was posted.")
            return 1
        if story.ear and story.ear.greeting.get("num_connections", 1) > 1:
            await operator.line("Pagehand runs, and gets half of what you do. Stop it, and press Enter. ")
        story.begin(channel_id)
        told: list[dict[str, object]] = []
        try:
            async for outcome in story.play((*STEPS, ("pull request", partial(follow, link)))):
                told += [_told(outcome, expected.get(outcome.step))]
        finally:
            left = ["perhaps all that was posted"]  # a second Ctrl-C ends the cleaning up, too
            try:
                left = await story.clean_up()
            finally:
                click.echo(f"\nLeft for you to delete: {', '.join(left)}." if left else "\nAll is deleted again.")
                _record(config, story.watch, told, left, directory)
    return 1 if left or any(each["refused"] for each in told) else 0


async def _rehearse(config: Config) -> dict[str, Outcome]:
    """Plays it in a workspace of our own, with an app like the real one."""
    workspace = WorkspaceServer(AppConfig.from_manifest(manifest_for(ManifestChoices(config.command))))
    await workspace.start()
    try:
        tokens = {
            "slack_bot_token": RotatingSecret(workspace.credentials.bot_token),
            "slack_app_token": RotatingSecret(workspace.credentials.app_token),
        }
        ours = config.model_copy(update={**tokens, "slack_api_url": workspace.api_url.rstrip("/")})
        async with _opened(ours, Rehearsing(workspace)) as story:
            story.begin(workspace.channels["docs"].id)
            return {outcome.step: outcome async for outcome in story.play(STEPS)}
    finally:
        await workspace.stop()


@asynccontextmanager
async def _opened(config: Config, operator: Operator) -> AsyncIterator[Story]:
    """Opens the bot's own edges, on a database that is thrown away, and a connection."""
    watch = Watch()
    with TemporaryDirectory() as directory:
        url = SecretStr(f"sqlite:///{directory}/live.sqlite3")
        edges = await open_edges(config.model_copy(update={"database_url": url}), new_client=watch.client)
        async with edges.closing as closing:
            edges.session.trace_configs.append(watch.of_requests())
            story = Story(edges, watch, operator)
            if config.slack_app_token is not None:
                story.ear = Ear(watch.clients[0], config.slack_app_token.newest)
                closing.push_async_callback(story.ear.close)
                await story.ear.open()
            yield story


async def _confirmed(edges: Edges, operator: Terminal, wanted: str) -> str:
    """Returns the id of the channel whose name the operator typed when asked; empty if they typed nothing."""
    while wanted := wanted or await operator.line("Channel for the try-out, #name or C… (Enter: none): "):
        channel, wanted = await _found(edges, wanted), ""
        if channel is None or channel.is_shared_outside:
            click.echo("Pagehand is in no such channel of your own people only: invite it there, or name another.")
            continue
        place = printable_line(f"#{channel.name} of {edges.identity.team}", 200)
        click.echo(f"This posts in {place}, and deletes it all at the end.")
        if (await operator.line("Type the channel's name to begin: ")).removeprefix("#") == channel.name:
            return channel.id
        click.echo("That is not its name.")
    return ""


async def _found(edges: Edges, wanted: str) -> ChannelInfo | None:
    cursor, by_id = "", wanted[:1] in {"C", "G"}
    while True:
        page = await edges.history.channels(cursor)
        for channel_id in page.items:
            if not by_id or channel_id == wanted:
                channel = await edges.reading.channels.channel(channel_id)
                if by_id or channel.name == wanted.removeprefix("#"):
                    return channel
        if not (cursor := page.next_cursor):
            return None


def _told(outcome: Outcome, rehearsed: Outcome | None) -> dict[str, object]:
    """Prints what became of a step, and returns it for the record. Of one that has no rehearsal, all facts hold."""
    expected, skipped = rehearsed.seen if rehearsed else dict.fromkeys(outcome.seen, "yes"), outcome.skipped
    if rehearsed and rehearsed.skipped and not (skipped or outcome.refused):
        skipped = f"its rehearsal in our own workspace was: {rehearsed.skipped}"
    found = [] if skipped or outcome.refused else differences(expected, outcome.seen)
    verdict = "skipped" if skipped else "different" if found or outcome.refused else "ok"
    why = f" because {skipped}" if skipped else f" refused: {outcome.refused}" * bool(outcome.refused)
    click.echo(f"{click.style(f'{verdict}:', fg=_COLORS[verdict])} {outcome.step}{why}")
    for line in found:
        click.echo(f"    {line}")
    told = {"step": outcome.step, "verdict": verdict, "why": skipped, "refused": outcome.refused}
    return told | {"seconds": outcome.seconds, "differences": found, "seen": outcome.seen}


def _record(config: Config, watch: Watch, told: list[dict[str, object]], left: list[str], directory: Path) -> None:
    versions = {name: version(name) for name in ("slack_sdk", "slack_bolt", "aiohttp")}
    document = {
        "versions": {"pagehand": __version__, "python": platform.python_version(), **versions},
        "limited": watch.limited,
        "left": len(left),
        "steps": told,
    }
    file = directory / f"pagehand-live-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}.json"
    owner_only(file)
    file.write_text(SecretMasker(config.secrets).mask(json.dumps(document, indent=1)).text, encoding="utf-8")
    click.echo(f"{file} is what this found out. {_SENDING}")
