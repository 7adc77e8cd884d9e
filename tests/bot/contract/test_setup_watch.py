"""Faults in the set-up of a running bot are in the log and the health, and are reported in Slack once."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest
from support.fakes.ports import FakeClock
from support.servers.slack_faults import FaultyWorkspace
from support.worlds.store_world import Opener

from bot.app.checks.running import Check
from bot.app.checks.slack import check_app_token, check_bot
from bot.app.checks.watch import SetupWatch, WatchTimings
from bot.cli.demo_services import manifest
from bot.domain.findings import Finding
from bot.runtime.health.report import Health
from bot.scheduler.fault_reporter import FaultReporter
from bot.scheduler.worker import WorkerSettings
from bot.slack.sending.identity import identify
from bot.slack.sending.operator import SlackOperator
from bot.slack.sending.scopes import MissingScopes
from bot.slack.sending.web_api import new_client, new_session
from bot.store.transaction import Store
from bot.workspace.model.entities import Message

DAY, HOUR = 86_400.0, 3_601.0


@dataclass
class Instance:
    """A bot's watch and its reporter."""

    watch: SetupWatch
    reporter: FaultReporter
    missing_scopes: MissingScopes
    checks: Sequence[Check]
    clock: FakeClock

    async def look(self) -> None:
        await self.watch.look(self.checks)

    async def report(self) -> None:
        """Reports whatever is due."""
        for item in await self.reporter.claim(10):
            await self.reporter.process(item, self.clock.monotonic())

    def health(self) -> Health:
        return Health(lambda: [self.watch.status()], [self.watch.warning, self.missing_scopes.warning])


class BrokenOperator:
    """An operator with a bug."""

    async def find(self, key: str, *, since: float) -> bool | None:
        raise RuntimeError(key, since)

    async def tell(self, words: str, key: str) -> None:
        raise AssertionError(words, key)


@dataclass
class World:
    """A workspace with an operator, and any number of instances on one database."""

    workspace: FaultyWorkspace
    another_store: Opener
    clock: FakeClock
    address: str
    more: list[Finding] = field(default_factory=list)
    """The findings of another check."""
    _closing: list[object] = field(default_factory=list)

    async def instance(self, owner: str = "one") -> Instance:
        credentials, session = self.workspace.credentials, new_session()
        self._closing.append(session)
        client = new_client(credentials.bot_token, session, base_url=self.workspace.api_url)
        app_client = new_client(credentials.app_token, session, base_url=self.workspace.api_url)
        store, missing = await self.another_store(), MissingScopes()

        async def slack() -> Sequence[Finding]:
            return await check_bot(client, now=time.time())

        async def app_token() -> Sequence[Finding]:
            return await check_app_token(app_client)

        async def more() -> Sequence[Finding]:
            return self.more

        checks = [Check("slack", slack), Check("slack.app_token", app_token), Check("more", more)]
        operator = SlackOperator(client, await identify(client), self.address)
        reporter = FaultReporter(store, operator, self.settings(owner))
        return Instance(self._watch(checks, store, missing), reporter, missing, checks, self.clock)

    def settings(self, owner: str) -> WorkerSettings:
        return WorkerSettings(owner, self.clock, lease=30.0, call_timeout=14.0, on_commit=lambda _: None)

    def _watch(self, checks: Sequence[Check], store: Store, missing: MissingScopes) -> SetupWatch:
        return SetupWatch(
            checks,
            store,
            tells=True,
            secrets=[self.workspace.credentials.bot_token],
            missing_scopes=missing,
            token_refused=asyncio.Event(),
            monotonic=self.clock.monotonic,
        )

    def reports(self) -> list[str]:
        """Returns the faults that the administrator reads."""
        return [message.text for message in self._messages()]

    def reported_at(self) -> list[str]:
        """The messages' timestamps."""
        return [message.ts for message in self._messages()]

    def _messages(self) -> list[Message]:
        messages = self.workspace.channels.messages("docs" if self.address[0] == "C" else "ana")
        return [message for message in messages if "set-up broke" in message.text]

    def make_administrator(self, place: str) -> None:
        """Makes a person or a channel the administrator."""
        is_person = place == "ana"
        self.address = self.workspace.people[place].user.id if is_person else self.workspace.channels[place].id

    async def broken(self, *owners: str) -> list[Instance]:
        """Instances that have all detected a fault."""
        instances = [await self.instance(owner) for owner in owners]
        await instances[0].look()
        self.more = [Finding.error("more", "It broke.", why="It matters.", fix="Mend it <now>.")]
        for instance in instances:
            await instance.look()
        return instances

    async def close(self) -> None:
        for session in self._closing:
            await session.close()  # type: ignore[attr-defined]
        await self.workspace.stop()


@pytest.fixture
async def world(another_store: Opener, clock: FakeClock) -> AsyncIterator[World]:
    workspace = FaultyWorkspace(manifest())
    await workspace.start()
    made = World(workspace, another_store, clock, workspace.channels["docs"].id)
    yield made
    await made.close()


@pytest.mark.either_database
async def test_a_removed_scope_is_reported_once_and_again_when_removed_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = await world.instance("one"), await world.instance("two")
    await one.look()
    await one.report()
    assert world.reports() == []
    world.workspace.credentials.remove_scopes("files:read")
    with caplog.at_level(logging.WARNING):
        await asyncio.gather(one.look(), two.look())
    assert [record.levelname for record in caplog.records if "files:read" in record.message] == ["WARNING"] * 2
    assert one.health().report()["ok"] is True
    assert "files:read" in str(one.health().report()["warnings"])
    await asyncio.gather(one.report(), two.report())
    await (restarted := await world.instance("three")).look()
    await restarted.report()
    (words,) = world.reports()
    assert "files:read" in words
    assert "Reinstall to Workspace" in words

    world.workspace.credentials.reinstall()
    await one.look()
    world.workspace.credentials.remove_scopes("files:read")
    await one.look()
    await one.report()
    assert len(world.reports()) == 1, "a fault that returns within a day is reported once"
    world.workspace.credentials.reinstall()
    await one.look()
    world.clock.advance(DAY + 1)
    world.workspace.credentials.remove_scopes("files:read")
    await one.look()
    await one.report()
    assert len(world.reports()) == 2


@pytest.mark.either_database
async def test_faults_at_the_first_check_are_not_reported(world: World) -> None:
    world.workspace.credentials.remove_scopes("files:read")
    instance = await world.instance()
    await instance.look()
    world.workspace.credentials.remove_scopes("reactions:write")
    await instance.look()
    await instance.report()
    (words,) = world.reports()
    assert "reactions:write" in words


@pytest.mark.either_database
@pytest.mark.parametrize("place", ["docs", "ana"])
async def test_a_report_in_doubt_is_looked_for_before_it_is_repeated(world: World, place: str) -> None:
    """Any instance that takes it up does this, for example after a crash."""
    world.make_administrator(place)
    one, two = await world.broken("one", "two")
    world.workspace.faults.drop(applied=True, method="chat.postMessage")
    await one.report()
    (words,) = world.reports()
    assert "It broke. It matters. Mend it &lt;now&gt;." in words
    for instance in (two, one, two):
        world.clock.advance(HOUR)
        await instance.report()
    assert world.reports() == [words]


@pytest.mark.either_database
@pytest.mark.parametrize("place", ["docs", "ana"])
async def test_a_report_that_did_not_arrive_is_repeated_later(world: World, place: str) -> None:
    world.make_administrator(place)
    (instance,) = await world.broken("one")
    world.workspace.faults.drop(applied=False, method="chat.postMessage")
    await instance.report()
    assert world.reports() == []
    world.clock.advance(HOUR)
    await instance.report()
    assert len(world.reports()) == 1


@pytest.mark.either_database
async def test_a_duplicate_report_is_deleted_even_if_the_first_look_fails(world: World) -> None:
    """Only Slack's answer to a message names the conversation in which to look for an earlier one."""
    world.make_administrator("ana")
    (one,) = await world.broken("one")
    world.workspace.faults.drop(applied=True, method="chat.postMessage")
    await one.report()
    first = world.reported_at()
    two = await world.instance("two")
    world.workspace.faults.server_error(method="conversations.history")
    world.clock.advance(HOUR)
    await two.report()
    assert len(world.reports()) == 2
    world.clock.advance(HOUR)
    await two.report()
    assert world.reported_at() == first
    world.clock.advance(HOUR)
    assert not await two.reporter.claim(10)


@pytest.mark.either_database
@pytest.mark.parametrize("first", [0, 1])
async def test_a_duplicate_report_is_deleted_while_another_fault_is_reported(world: World, first: int) -> None:
    """The report of the other fault shows the conversation with the person, before or after the duplicate is sent."""
    world.make_administrator("ana")
    (one,) = await world.broken("one")
    world.workspace.faults.drop(applied=True, method="chat.postMessage")
    await one.report()
    two = await world.instance("two")
    world.more.append(Finding.error("another", "It broke, too.", why="It matters.", fix="Mend it."))
    await two.look()
    world.clock.advance(31.0)
    claimed = await two.reporter.claim(10)
    assert len(claimed) == 2
    ordered = (claimed[first], claimed[1 - first])
    await asyncio.gather(*(two.reporter.process(item, world.clock.monotonic()) for item in ordered))
    assert len(world.reports()) == 2


@pytest.mark.either_database
async def test_a_fault_is_reported_even_without_the_look_up_scope(world: World) -> None:
    """The missing scope for looking it up is reported as well."""
    instance = await world.instance()
    await instance.look()
    world.workspace.credentials.remove_scopes("channels:history")
    await instance.look()
    await instance.report()
    (words,) = world.reports()
    assert "channels:history" in words


@pytest.mark.either_database
async def test_a_report_is_found_behind_any_number_of_messages(world: World) -> None:
    (instance,) = await world.broken("one")
    world.workspace.faults.drop(applied=True, method="chat.postMessage")
    await instance.report()
    for number in range(250):
        await world.workspace.people["ana"].say("docs", f"line {number}")
    world.clock.advance(HOUR)
    await instance.report()
    assert len(world.reports()) == 1


@pytest.mark.either_database
async def test_an_unreported_fault_is_reported_when_it_returns(world: World) -> None:
    """A reported fault would not be repeated on the same day."""
    (instance,) = await world.broken("one")
    fault, well = world.more, [Finding.ok("more", "Well.")]
    world.more = well
    await instance.look()
    await instance.report()
    assert world.reports() == []
    world.more = fault
    await instance.look()
    await instance.report()
    assert len(world.reports()) == 1
    world.more = well
    await instance.look()
    world.more = fault
    await instance.look()
    await instance.report()
    assert len(world.reports()) == 1


@pytest.mark.either_database
async def test_a_transient_outage_is_not_reported_and_clears_nothing(world: World) -> None:
    instance = await world.instance()
    await instance.look()
    world.more = [Finding.error("more", "Away.", why="Away.", fix="Wait.", passing=True)]
    await instance.look()
    await instance.report()
    assert world.reports() == []
    assert instance.health().report()["ok"] is True


async def test_a_revoked_token_turns_the_health_red_and_explains_itself(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    instance = await world.instance()
    await instance.look()
    assert instance.health().report()["ok"] is True
    world.workspace.credentials.revoke()
    with caplog.at_level(logging.ERROR):
        await instance.look()
    assert "Slack does not accept SLACK_BOT_TOKEN (token_revoked): it was revoked." in caplog.text
    report = instance.health().report()
    assert report["ok"] is False
    assert "OAuth & Permissions" in str(report["parts"])
    world.workspace.credentials.restore()
    await instance.look()
    assert instance.health().report()["ok"] is True


async def test_an_error_is_checked_again_soon_until_it_is_fixed(world: World) -> None:
    errors = [Finding.error("job_api.docs", "Refused.", why="No job works.", fix="Fix it.")]
    looks = asyncio.Queue[str]()

    def check(name: str, found: Sequence[Finding]) -> Check:
        async def look() -> Sequence[Finding]:
            looks.put_nowait(name)
            return [*found] or [Finding.ok(name, "Well.")]

        return Check(name, look)

    timings = WatchTimings(first=0.0, every=3_600.0, slack=3_600.0, retry=0.01)
    watch = SetupWatch(
        [check("job_api.docs", errors), check("job_api.other", [])],
        None,
        tells=False,
        secrets=[],
        missing_scopes=MissingScopes(),
        token_refused=asyncio.Event(),
        monotonic=world.clock.monotonic,
        timings=timings,
    )
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

    checks = [Check("slack", look)]
    never = WatchTimings(first=3_600.0, every=3_600.0, slack=3_600.0)
    watch = SetupWatch(
        checks,
        None,
        tells=False,
        secrets=[],
        missing_scopes=MissingScopes(),
        token_refused=refused,
        monotonic=world.clock.monotonic,
        timings=never,
    )
    running = asyncio.create_task(watch.run())
    async with new_session() as session:
        client = new_client("xoxb-planted-other", session, base_url=world.workspace.api_url, token_refused=refused)
        await asyncio.sleep(0)
        assert not looked.is_set()
        with pytest.raises(Exception, match="invalid_auth"):
            await client.auth_test()
    async with asyncio.timeout(10):
        await looked.wait()
    running.cancel()


@pytest.mark.either_database
async def test_a_report_is_given_up_after_enough_internal_errors(world: World) -> None:
    (instance,) = await world.broken("one")
    reporter = FaultReporter(await world.another_store(), BrokenOperator(), world.settings("two"))
    attempts = 0
    while items := await reporter.claim(10):
        attempts += 1
        assert attempts <= 51
        with contextlib.suppress(RuntimeError):
            await reporter.process(items[0], world.clock.monotonic())
        world.clock.advance(HOUR)
    assert attempts == 51
    await instance.report()
    assert world.reports() == []
