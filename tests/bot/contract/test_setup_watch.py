"""Faults in the set-up of a running bot are in the log, the health and the metrics."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.fakes.ports import FakeClock
from support.servers.slack_faults import FaultyWorkspace

from bot.app.checks.slack import check_app_token, check_bot
from bot.app.checks.watch import SetupWatch, WatchTimings
from bot.app.checks.whole import Check
from bot.cli.demo_services import manifest
from bot.domain.findings import Finding, FindingStatus
from bot.runtime.health import Health
from bot.slack.sending.web_api import SlackClient, new_session

pytestmark = pytest.mark.promise("setup watch")


def watching(checks: Sequence[Check], **more: Any) -> SetupWatch:
    options: dict[str, Any] = {"secrets": (), "token_refused": asyncio.Event()} | more
    return SetupWatch(checks, monotonic=FakeClock().monotonic, **options)


@dataclass
class World:
    """A workspace, and a bot's watch there. `more`: the findings of another check."""

    workspace: FaultyWorkspace
    watch: SetupWatch
    checks: Sequence[Check]
    more: list[Finding] = field(default_factory=list)

    async def look(self) -> None:
        await self.watch.look(self.checks)

    def report(self) -> dict[str, object]:
        return dict(Health(lambda: [self.watch.status()], [self.watch.warning]).report())


@pytest.fixture
async def world() -> AsyncIterator[World]:
    workspace, more = FaultyWorkspace(manifest()), list[Finding]()
    await workspace.start()
    async with new_session() as session:
        credentials = workspace.credentials
        client = SlackClient(credentials.bot_token, session, base_url=workspace.api_url)
        app_client = SlackClient(credentials.app_token, session, base_url=workspace.api_url)

        async def slack() -> Sequence[Finding]:
            return await check_bot(client, now=time.time)

        async def app_token() -> Sequence[Finding]:
            return await check_app_token(app_client, client)

        async def found() -> Sequence[Finding]:
            return more

        checks = [Check("slack", slack), Check("slack.app_token", app_token), Check("more", found)]
        yield World(workspace, watching(checks, secrets=[credentials.bot_token]), checks, more)
    await workspace.stop()


async def test_a_removed_scope_is_logged_once_and_shown_until_granted(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.look()
    assert not world.watch.counts()
    world.workspace.credentials.remove_scopes("files:read")
    with caplog.at_level(logging.WARNING):
        await world.look()
        await world.look()
    (told,) = [record for record in caplog.records if "files:read" in record.message]
    assert (told.levelname, "Reinstall to Workspace" in told.message) == ("WARNING", True)
    assert world.report()["ok"] is True
    assert "files:read" in str(world.report()["warnings"])
    assert world.watch.counts() == {FindingStatus.WARNING: 1}
    world.workspace.credentials.reinstall()
    await world.look()
    assert not world.watch.counts()


async def test_an_outage_that_may_pass_is_no_fault_and_clears_none(world: World) -> None:
    world.more[:] = [Finding.warning("more.part", "Broken.", why="It matters.", fix="Fix it.")]
    await world.look()
    world.more[:] = [Finding.error("more", "Away.", why="Away.", fix="Wait.", passing=True)]
    await world.look()
    assert world.report()["ok"] is True
    assert world.watch.counts() == {FindingStatus.WARNING: 1}


async def test_a_revoked_token_turns_health_red_and_is_explained(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.look()
    assert world.report()["ok"] is True
    world.workspace.credentials.revoke()
    with caplog.at_level(logging.ERROR):
        await world.look()
    assert "Slack does not accept SLACK_BOT_TOKEN (token_revoked): it was revoked." in caplog.text
    assert world.report()["ok"] is False
    assert world.watch.counts()[FindingStatus.ERROR]
    assert "OAuth & Permissions" in str(world.report()["parts"])
    world.workspace.credentials.refusal = None
    await world.look()
    assert world.report()["ok"] is True


async def test_an_error_is_checked_again_soon_until_it_is_fixed() -> None:
    errors = [Finding.error("job_api.docs", "Refused.", why="No job works.", fix="Fix it.")]
    looks = asyncio.Queue[str]()

    def check(name: str, found: Sequence[Finding]) -> Check:
        async def look() -> Sequence[Finding]:
            looks.put_nowait(name)
            return [*found] or [Finding.ok(name, "Well.")]

        return Check(name, look)

    timings = WatchTimings(first=0.0, every=3_600.0, slack=3_600.0, retry=0.01)
    watch = watching([check("job_api.docs", errors), check("job_api.other", [])], timings=timings)
    running = asyncio.create_task(watch.run())
    async with asyncio.timeout(10):
        assert [await looks.get() for _ in range(4)] == ["job_api.docs", "job_api.other", *["job_api.docs"] * 2]
        assert not watch.status().ok()
        errors.clear()
        while not watch.status().ok():  # noqa: ASYNC110 - it tells nobody when it has noted what it found
            await asyncio.sleep(0.005)
    running.cancel()


async def test_a_refused_call_triggers_a_check_at_once(world: World) -> None:
    refused, looked = asyncio.Event(), asyncio.Event()

    async def look() -> Sequence[Finding]:
        looked.set()
        return []

    never = WatchTimings(first=3_600.0, every=3_600.0, slack=3_600.0)
    watch = watching([Check("slack", look)], token_refused=refused, timings=never)
    running = asyncio.create_task(watch.run())
    async with new_session() as session:
        client = SlackClient("xoxb-planted-other", session, base_url=world.workspace.api_url, token_refused=refused)
        await asyncio.sleep(0)
        assert not looked.is_set()
        with pytest.raises(Exception, match="invalid_auth"):
            await client.auth_test()
    async with asyncio.timeout(10):
        await looked.wait()
    running.cancel()
