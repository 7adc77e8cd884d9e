"""The whole bot in the test's process, over a real workspace, a real job API and a real database, and what must be
true of it under any fault.
"""

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pytest
from sqlalchemy import URL, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from support.databases import engine_for
from support.fakes.slack_limits import ANY_NUMBER
from support.oracles.notice_keys import all_keys, explained, key_of
from support.oracles.promises import AskedFor, History, Said, Shown, broken, check
from support.oracles.slack_samples import invented
from support.servers.fake_job_api import KEY, PROJECT, FakeJobApiServer
from support.servers.slack_faults import FaultyWorkspace, RateLimits

from bot.app.application import App, HealthTimings, Role
from bot.app.checks.watch import WatchTimings
from bot.app.edges import Edges, EdgeTimings, open_edges
from bot.app.settings.config import Config, load
from bot.cli.demo_services import manifest
from bot.domain.requests.request import RequestState
from bot.domain.threads.thread import FollowUpCounts, Thread
from bot.notices.notice import Reaction
from bot.queue.engine import sqlite_path
from bot.slack.rendering.cards import card
from bot.slack.rendering.ephemeral_texts import RECORDED
from bot.workspace import InteractionResult
from bot.workspace.model.entities import Message
from bot.workspace.model.text import stored_app_text

Found = TypeVar("Found")

UNWATCHED = HealthTimings(watch=WatchTimings(first=3_600.0))
"""Failing calls are the test's, not those of a check."""
AT_ONCE = EdgeTimings(slack_limits=ANY_NUMBER, hold_back=0.0)
"""Slack may be called at any time, and no line is held back."""
PATIENCE = 300.0
"""Seconds to wait for something that takes a few, on a busy machine."""
_DEADLOCKS = 20
"""This many consecutive failures are not bad luck."""
LONGEST_PAUSE = 75.0
"""Seconds: no wait that Pagehand chooses by itself is longer (60 with jitter)."""
WATCHED = (
    "SELECT job_id, state FROM threads JOIN polls ON thread_id = threads.id"
    " WHERE due_at IS NOT NULL AND job_id IS NOT NULL"
)
OPEN = "SELECT count(*) FROM {} WHERE due_at IS NOT NULL"


@dataclass
class Instance:
    """A running bot."""

    app: App
    edges: Edges

    async def stop(self) -> None:
        await self.app.stop()


@dataclass
class AppWorld:
    """A workspace, a job API and a database, with as many bots as a test starts."""

    workspace: FaultyWorkspace
    fake_job_api: FakeJobApiServer
    database_url: str
    settings: dict[str, str]
    engine: AsyncEngine
    edge_timings: EdgeTimings = AT_ONCE
    instances: list[Instance] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    """Prompts of slash commands that were acknowledged as recorded."""
    replied: list[str] = field(default_factory=list)
    """Replies whose event was acknowledged, or will be."""

    # -- running --------------------------------------------------------------------------------------------------

    def environment(self, **settings: str) -> dict[str, str]:
        return {
            "SLACK_BOT_TOKEN": self.workspace.credentials.bot_token,
            "SLACK_APP_TOKEN": self.workspace.credentials.app_token,
            "SLACK_API_URL": self.workspace.api_url,
            "JOB_API_URL": self.fake_job_api.url,
            "JOB_API_KEY": KEY,
            "JOB_API_PROJECT": PROJECT,
            "JOB_API_TIMEOUT": "5",
            "DATABASE_URL": self.database_url,
            "PAGEHAND_MERGE_SECONDS": "0",
            "PAGEHAND_POLL_FASTEST": "0.1",
            "PAGEHAND_POLL_SLOWEST": "1",
            **self.settings,
            **settings,
        }

    def config(self, **settings: str) -> Config:
        return load(self.environment(**settings))

    async def start(self, role: Role = Role.RUN, *, timings: HealthTimings | None = None, **settings: str) -> Instance:
        """Starts one more bot, or this role of one."""
        config = self.config(**settings)
        edges = await open_edges(config, self.edge_timings)
        instance = Instance(App(config, edges, role, timings=timings or UNWATCHED), edges)
        await instance.app.start()
        self.instances.append(instance)
        return instance

    async def stop(self) -> None:
        """Stops every bot."""
        instances, self.instances = self.instances, []
        await asyncio.gather(*(instance.stop() for instance in instances))

    # -- what people do -------------------------------------------------------------------------------------------

    async def ask(self, prompt: str, *, channel: str = "docs", person: str = "ana") -> InteractionResult:
        """Runs `/docs <prompt>`; every prompt of a test is unique."""
        answer = await self.workspace.people[person].command(channel, "/docs", prompt)
        if answer.text == RECORDED:
            self.asked.append(prompt)
        return answer

    async def reply(self, prompt: str, words: str, *, channel: str = "docs", person: str = "ana") -> Message:
        """Replies in the thread of the job with this `prompt`."""
        ts = await self.card(prompt, channel=channel)
        self.replied.append(words)
        return await self.workspace.people[person].say(channel, words, thread_ts=ts)

    async def begin(self, *prompts: str, channel: str = "docs") -> list[str]:
        """Asks for these, waits until each thread announced its start, and returns the jobs' ids."""
        for prompt in prompts:
            await self.ask(prompt, channel=channel)
        for prompt in prompts:
            await self.until_said(prompt, "started", channel=channel)
        return [self.fake_job_api.job_of(prompt) for prompt in prompts]

    def complete(self, *jobs: str) -> None:
        """Completes the jobs, each with a link."""
        for job in jobs:
            self.fake_job_api.show(job, "completed", f"https://git.example/pull/{job}")

    async def press(self, prompt: str, action_id: str, *, key: str) -> InteractionResult:
        """Presses a button of the message in the thread whose key contains `key`."""
        found = next(message for message in self.thread(prompt) if key in key_of(message))
        return await self.workspace.people["ana"].press("docs", found.ts, action_id)

    # -- what people see ------------------------------------------------------------------------------------------

    async def card(self, prompt: str, *, channel: str = "docs") -> str:
        """Waits for the card of a prompt, and returns its ts."""
        return await self.workspace.changes.wait_for(lambda: self.card_ts(prompt, channel=channel), PATIENCE)

    def card_ts(self, prompt: str, *, channel: str = "docs") -> str:
        cards = [
            message.ts
            for message in self.workspace.channels.messages(channel)
            if key_of(message).endswith("/card") and f"asked: {prompt}\n" in message.text
        ]
        return cards[0] if cards else ""

    def thread(self, prompt: str, *, channel: str = "docs") -> list[Message]:
        ts = self.card_ts(prompt, channel=channel)
        return self.workspace.channels.thread(channel, ts) if ts else []

    def said(self, prompt: str, *, channel: str = "docs") -> list[str]:
        """Returns the bot's posts in a thread after its card, in order: the keys within the thread, without hashes."""
        return [_short(key_of(message)) for message in self.thread(prompt, channel=channel)[1:] if key_of(message)]

    async def until_said(self, prompt: str, *keys: str, channel: str = "docs", seconds: float = PATIENCE) -> None:
        """Waits until these are the bot's posts in a thread; the error at the timeout lists the actual ones."""
        try:
            await self.workspace.changes.wait_for(lambda: self.said(prompt, channel=channel) == list(keys), seconds)
        except TimeoutError:
            raise AssertionError(f"{prompt!r}: said {self.said(prompt, channel=channel)}, not {list(keys)}") from None

    async def until_steered(self, job_id: str, *words: str) -> None:
        """Waits until a job has taken exactly these follow-ups, in this order."""
        await self.fake_job_api.until(lambda: self.fake_job_api.follow_ups(job_id) == list(words), PATIENCE)

    async def until_ended(self, *prompts: str) -> None:
        """Waits until each thread announced an end after its one follow-up was sent."""

        def ended(prompt: str) -> bool:
            return any(re.search(r"/r[1-9]\d*/completed$", key_of(message)) for message in self.thread(prompt))

        await self.workspace.changes.wait_for(lambda: all(ended(prompt) for prompt in prompts), PATIENCE)

    async def until_marked(self, message: Message, reaction: Reaction) -> None:
        """Waits until a message has this mark alone."""
        await self.workspace.changes.wait_for(lambda: self.reactions(message) == [reaction.value])

    def reactions(self, message: Message) -> list[str]:
        """Returns the bot's reactions on a message."""
        return list(self.workspace.state.message(self.workspace.channels["docs"], message.ts).reactions)

    def private_text(self, person: str) -> str:
        """Returns all private messages to this person, in any channel and in their direct messages."""
        state, who = self.workspace.state, self.workspace.people[person].id
        alone = [message for channel in state.channels.values() for message in state.ephemerals(channel, who)]
        direct = [m for m in self.workspace.channels.messages(person) if m.user == self.workspace.app.bot_user_id]
        return "\n".join(message.text for message in (*alone, *direct))

    # -- the database ---------------------------------------------------------------------------------------------

    async def sql(self, statement: str, **values: object) -> Sequence[tuple[Any, ...]]:
        async with self.engine.begin() as connection:
            result = await connection.execute(text(statement), values)
            return [tuple(row) for row in result] if result.returns_rows else []

    async def hurry(self) -> None:
        """Makes everything that waits due now, after checking that nothing waits for long."""
        now = await self.instances[0].edges.store.transact(_now)
        for table in ("requests", "request_files", "notices", "polls", "homes"):
            late = await self.sql(f"SELECT due_at FROM {table} WHERE due_at > :late", late=now + LONGEST_PAUSE)  # noqa: S608 - our own names
            assert not late, f"{table} wait for {[due - now for (due,) in late]} s"
            await self._hurry_rows(table, now)
        for instance in self.instances:
            instance.app.wake()

    @asynccontextmanager
    async def hurrying(self) -> AsyncIterator[None]:
        """Makes everything that waits due again and again, until the block ends: no backoff takes its time."""

        async def hurry() -> None:
            while True:
                await self.hurry()
                await asyncio.sleep(0.25)

        async with asyncio.TaskGroup() as group:
            task = group.create_task(hurry())
            yield
            task.cancel()

    async def _hurry_rows(self, table: str, now: float) -> None:
        """Repeats if the bot, which updates in another order, interfered: PostgreSQL aborts one of the two."""
        statement = f"UPDATE {table} SET due_at = :now WHERE due_at > :now"  # noqa: S608 - our own names
        for _ in range(_DEADLOCKS):
            try:
                await self.sql(statement, now=now)
            except DBAPIError as error:
                if "deadlock" not in str(error):
                    raise
            else:
                return
        pytest.fail(f"{table} cannot be changed for deadlocks")

    async def settled(self) -> None:
        """Waits until each watched job has been polled in its current state, and no request or notice is open."""

        async def idle() -> bool:
            for job_id, state in await self.sql(WATCHED):
                seen, shown = json.loads(state)["job"], self.fake_job_api.jobs[job_id]
                if seen["status"] != shown["status"] or shown["prLink"] not in {None, seen["pr_link"]}:
                    return False
            counts = [(await self.sql(OPEN.format(table)))[0][0] for table in ("requests", "notices")]
            return not any(counts)

        await until(idle)

    async def state(self, prompt: str) -> Thread:
        """Returns the thread as stored."""
        rows = await self.sql("SELECT id FROM threads WHERE prompt = :prompt", prompt=prompt)
        return await self._thread(str(rows[0][0]))

    async def _thread(self, thread_id: str) -> Thread:
        thread = await self.instances[0].edges.store.transact(lambda tx: tx.threads.get(thread_id))
        assert thread is not None
        return thread

    # -- what must be true ----------------------------------------------------------------------------------------

    async def check(self) -> None:
        """Waits until all is settled, and checks that nothing is lost or posted twice, the order, one owner, and that
        every card shows the newest state.
        """
        await self.settled()
        check(broken(await self.history()))

    async def history(self) -> History:
        """Returns what happened, for the oracle."""
        requests, threads = await self._requests(), await self._threads()
        return History(
            requests=[*(self._asked_for(words, requests) for words in (*self.asked, *self.replied)), *self._unasked()],
            posts=all_keys(self.workspace),
            threads=await self._said(threads),
            shown=await self._cards(threads),
            polls=self.fake_job_api.polls,
        )

    async def _requests(self) -> dict[str, tuple[str, RequestState, str]]:
        """Returns by their words: id, state, and author."""
        rows = await self.sql("SELECT text, id, state, person_id FROM requests")
        return {words: (request_id, RequestState(state), person) for words, request_id, state, person in rows}

    def _asked_for(self, words: str, requests: Mapping[str, tuple[str, RequestState, str]]) -> AskedFor:
        if words not in requests:
            return AskedFor(words, acknowledged=True, taken=0)
        request_id, state, person = requests[words]
        in_words = request_id in explained(all_keys(self.workspace))
        return AskedFor(
            words,
            acknowledged=True,
            taken=self._taken()[words],
            explained=in_words or bool(self.private_text(person)),
            state=state,
        )

    def _taken(self) -> Counter[str]:
        """Returns how often the job API carried each out: tests give every request unique words."""
        created, taken = self.fake_job_api.created, self.fake_job_api.messages
        return Counter([*(entry.prompt for entry in created), *(entry.prompt for entry in taken)])

    def _unasked(self) -> Iterator[AskedFor]:
        """Returns what the job API carried out although its acknowledgement was not seen."""
        known = {*self.asked, *self.replied}
        for words, times in self._taken().items():
            if words not in known:
                yield AskedFor(words, acknowledged=False, taken=times)

    async def _threads(self) -> list[Thread]:
        """Returns those with a card."""
        return [await self._thread(row[0]) for row in await self.sql("SELECT id FROM threads WHERE ts IS NOT NULL")]

    async def _said(self, threads: Sequence[Thread]) -> list[Said]:
        rows = await self.sql(
            "SELECT thread_id, key FROM notices WHERE delivery = 'post' AND state = 'done' ORDER BY id"
        )
        said: list[Said] = []
        for thread in threads:
            done = [key for owner, key in rows if owner == thread.id]
            messages = self.workspace.channels.thread(thread.channel_id, str(thread.ts))[1:]
            said.append(Said(thread.id, [key_of(message) for message in messages if key_of(message)], done, done))
        return said

    async def _cards(self, threads: Sequence[Thread]) -> list[Shown]:
        given_up = {key for (key,) in await self.sql("SELECT key FROM notices WHERE state = 'given_up'")}
        shown: list[Shown] = []
        for thread in threads:
            if f"{thread.id}/card" not in given_up:
                counts = await self._follow_ups(thread.id)
                newest = card(thread, self.instances[0].edges.message_context, counts).text
                message = self.workspace.channels.thread(thread.channel_id, str(thread.ts))[0]
                shown.append(Shown(f"{thread.id}/card", message.text, {stored_app_text(newest)}))
        return shown

    async def _follow_ups(self, thread_id: str) -> FollowUpCounts:
        """Returns how many follow-ups the job API took, and how many wait."""
        rows = await self.sql(
            "SELECT state, due_at IS NOT NULL FROM requests WHERE kind = 'follow_up' AND thread_id = :thread",
            thread=thread_id,
        )
        return FollowUpCounts(sum(state == "accepted" for state, _ in rows), sum(bool(due) for _, due in rows))


async def _now(tx: Any) -> float:
    return float(tx.now)


async def until(condition: Callable[[], Awaitable[Found]], seconds: float = PATIENCE) -> Found:
    """Polls a condition that cannot be awaited."""
    async with asyncio.timeout(seconds):
        while not (found := await condition()):  # noqa: ASYNC110 - a database tells nobody of its changes
            await asyncio.sleep(0.05)
    return found


def _short(key: str) -> str:
    """Shortens `<thread>/<request>/refused/1`, `<thread>/link/<hash>` and `<thread>/r<round>/active` by the parts that
    no test can know; there is a round for each follow-up sent.
    """
    parts = key.split("/")[1:]
    return "/".join(part for part in parts if len(part) < 16 and not re.fullmatch(r"r\d+", part))


def reading_engine(database_url: str) -> AsyncEngine:
    """Opens a database for looks at it, and for single changes: unlike the application, it does not hold up writers
    of SQLite, and waits for them."""
    path = sqlite_path(database_url)
    if path is None:
        return engine_for(database_url)
    return create_async_engine(URL.create("sqlite+aiosqlite", database=path), connect_args={"timeout": 30.0})


@asynccontextmanager
async def a_world(
    database_url: str,
    *,
    redeliver_after: float = 3.0,
    trigger_lifetime: float = 3.0,
    without: Sequence[str] = (),
    edge_timings: EdgeTimings | None = None,
    rate_limited: bool = False,
    slack_behind: float = 0.0,
    **settings: str,
) -> AsyncIterator[AppWorld]:
    """Opens a running workspace and job API, without a bot. Bots that a test leaves running are stopped.
    `trigger_lifetime`: seconds for opening a modal. `without`: scopes that the app was not installed with.
    `rate_limited`: Slack enforces its limits. `slack_behind`: seconds by which Slack's clock is late, so that
    whatever people write was written that long ago.
    """
    app = manifest()
    app = replace(app, scopes=app.scopes.difference(without))
    workspace = FaultyWorkspace(
        app,
        ack_timeout=redeliver_after,
        retry_delays=(0.05, 1.0, 30.0),
        trigger_lifetime=trigger_lifetime,
        rate_limits=RateLimits() if rate_limited else None,
        now=lambda: time.time() - slack_behind,
    )
    fake_job_api = FakeJobApiServer()
    await fake_job_api.start()
    await workspace.start()
    engine = reading_engine(database_url)
    world = AppWorld(workspace, fake_job_api, database_url, settings, engine, edge_timings or AT_ONCE)
    try:
        yield world
        assert not (made_up := invented(workspace)), made_up
    finally:
        await world.stop()
        await engine.dispose()
        await workspace.stop()
        await fake_job_api.stop()
