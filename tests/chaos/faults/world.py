"""The whole bot in the test's process, over a real workspace, a real job API and a real database, and what must be true
of it whatever goes wrong.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ledger import KEY, PROJECT, Ledger
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from bot.app import App, Edges, open_edges
from bot.config import Config, load
from bot.demo import manifest
from bot.domain.models import Mark, Thread
from bot.slack.cards import card
from bot.slack.listeners.commands import GOT_IT
from bot.store.engine import engine_for
from bot.workspace.interactions import Answer
from bot.workspace.models import Message
from bot.workspace.server import WorkspaceServer
from bot.workspace.text import stored_app_text

Found = TypeVar("Found")

PATIENCE = 60.0
"""Seconds to wait for what takes a few, on a busy machine."""
LONGEST_PAUSE = 75.0
"""Seconds: no wait that Pagehand chooses by itself is longer (60 with jitter)."""
WATCHED = (
    "SELECT job_id, known FROM threads JOIN watches ON thread_id = threads.id"
    " WHERE due_at IS NOT NULL AND job_id IS NOT NULL"
)
OPEN = "SELECT count(*) FROM {} WHERE due_at IS NOT NULL"


@dataclass
class Instance:
    """A bot at work."""

    app: App
    edges: Edges

    async def stop(self) -> None:
        await self.app.stop()


@dataclass
class World:
    """A workspace, a job API and a database, with as many bots as a test starts."""

    workspace: WorkspaceServer
    ledger: Ledger
    database_url: str
    settings: dict[str, str]
    engine: AsyncEngine
    instances: list[Instance] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    """Prompts of slash commands that were acknowledged as recorded."""
    replied: list[str] = field(default_factory=list)
    """Replies whose event was acknowledged, or will be."""

    # -- running --------------------------------------------------------------------------------------------------

    def environment(self, **settings: str) -> dict[str, str]:
        return {
            "SLACK_BOT_TOKEN": self.workspace.bot_token,
            "SLACK_APP_TOKEN": self.workspace.app_token,
            "SLACK_API_URL": self.workspace.api_url,
            "JOB_API_URL": self.ledger.url,
            "JOB_API_KEY": KEY,
            "JOB_API_PROJECT": PROJECT,
            "JOB_API_TIMEOUT": "5",
            "DATABASE_URL": self.database_url,
            "PAGEHAND_POLL_FASTEST": "0.1",
            "PAGEHAND_POLL_SLOWEST": "1",
            **self.settings,
            **settings,
        }

    def config(self, **settings: str) -> Config:
        return load(self.environment(**settings))

    async def start(self, **settings: str) -> Instance:
        """Starts one more bot."""
        config = self.config(**settings)
        edges = await open_edges(config)
        instance = Instance(App(config, edges), edges)
        await instance.app.start()
        self.instances.append(instance)
        return instance

    async def stop(self) -> None:
        """Stops every bot."""
        instances, self.instances = self.instances, []
        await asyncio.gather(*(instance.stop() for instance in instances))

    # -- what people do -------------------------------------------------------------------------------------------

    async def ask(self, prompt: str, *, channel: str = "docs", person: str = "ana") -> Answer:
        """`/docs <prompt>`; every prompt of a test is unlike the others."""
        answer = await self.workspace.person(person).command(channel, "/docs", prompt)
        if answer.text == GOT_IT:
            self.asked.append(prompt)
        return answer

    async def reply(self, prompt: str, words: str, *, channel: str = "docs", person: str = "ana") -> Message:
        """A reply in the thread of the job that was asked for with `prompt`."""
        ts = await self.card(prompt, channel=channel)
        self.replied.append(words)
        return await self.workspace.person(person).say(channel, words, thread_ts=ts)

    async def begin(self, *prompts: str, channel: str = "docs") -> list[str]:
        """Asks for these, waits till each thread was told that it has started, and returns the jobs' ids."""
        for prompt in prompts:
            await self.ask(prompt, channel=channel)
        for prompt in prompts:
            await self.until_said(prompt, "started", channel=channel)
        return [self.ledger.job_of(prompt) for prompt in prompts]

    def complete(self, *jobs: str, link: str = "https://git.example/pull/{}") -> None:
        """The jobs finish, each with a link."""
        for job in jobs:
            self.ledger.show(job, "completed", link.format(job))

    async def press(
        self, prompt: str, action_id: str, *, key: str, channel: str = "docs", person: str = "ana"
    ) -> Answer:
        """Presses a button of the message in the thread whose key contains `key`."""
        found = next(message for message in self.thread(prompt, channel=channel) if key in key_of(message))
        return await self.workspace.person(person).press(channel, found.ts, action_id)

    # -- what people see ------------------------------------------------------------------------------------------

    async def card(self, prompt: str, *, channel: str = "docs", seconds: float = PATIENCE) -> str:
        """Waits for the card of a prompt, and returns its ts."""
        return await self.workspace.wait_for(lambda: self.card_ts(prompt, channel=channel), seconds)

    def card_ts(self, prompt: str, *, channel: str = "docs") -> str:
        cards = [
            message.ts
            for message in self.workspace.messages(channel)
            if key_of(message).endswith("/card") and f"asked: {prompt}\n" in message.text
        ]
        return cards[0] if cards else ""

    def thread(self, prompt: str, *, channel: str = "docs") -> list[Message]:
        ts = self.card_ts(prompt, channel=channel)
        return self.workspace.thread(channel, ts) if ts else []

    def said(self, prompt: str, *, channel: str = "docs") -> list[str]:
        """What the bot said in a thread after its card, in order: the keys within the thread, without hashes."""
        return [_short(key_of(message)) for message in self.thread(prompt, channel=channel)[1:] if key_of(message)]

    async def until_said(self, prompt: str, *keys: str, channel: str = "docs", seconds: float = PATIENCE) -> None:
        """Waits till the bot has said just this in a thread; what it did say is told when the time is up."""
        try:
            await self.workspace.wait_for(lambda: self.said(prompt, channel=channel) == list(keys), seconds)
        except TimeoutError:
            raise AssertionError(f"{prompt!r}: said {self.said(prompt, channel=channel)}, not {list(keys)}") from None

    async def until_steered(self, job_id: str, *words: str, seconds: float = PATIENCE) -> None:
        """Waits till a job has taken just these follow-ups, in this order."""
        await self.ledger.until(lambda: self.ledger.told(job_id) == list(words), seconds)

    async def until_ended(self, *prompts: str, seconds: float = PATIENCE) -> None:
        """Waits till each thread was told of an end after its one follow-up went out."""

        def ended(prompt: str) -> bool:
            return any(re.search(r"/r[1-9]\d*/completed$", key_of(message)) for message in self.thread(prompt))

        await self.workspace.wait_for(lambda: all(ended(prompt) for prompt in prompts), seconds)

    async def until_marked(self, message: Message, mark: Mark) -> None:
        """Waits till a message carries this mark alone."""
        await self.workspace.wait_for(lambda: self.marks(message) == [mark.value])

    def marks(self, message: Message, *, channel: str = "docs") -> list[str]:
        """The bot's reactions on a message."""
        return list(self.workspace.state.message(self.workspace.channel(channel), message.ts).reactions)

    def told(self, person: str) -> str:
        """All that only this person was told, in any channel and in their direct messages."""
        state, who = self.workspace.state, self.workspace.person(person).id
        alone = [message for channel in state.channels.values() for message in state.ephemerals(channel, who)]
        direct = [m for m in self.workspace.messages(person) if m.user == self.workspace.app.bot_user_id]
        return "\n".join(message.text for message in (*alone, *direct))

    # -- the database ---------------------------------------------------------------------------------------------

    async def sql(self, statement: str, **values: object) -> Sequence[tuple[Any, ...]]:
        async with self.engine.begin() as connection:
            result = await connection.execute(text(statement), values)
            return [tuple(row) for row in result] if result.returns_rows else []

    async def hurry(self) -> None:
        """Makes all that waits due now, once it is seen that none of it waits for long: time travel."""
        now = await self.instances[0].edges.store.transact(_now)
        for table in ("requests", "notices", "watches"):
            late = await self.sql(f"SELECT due_at FROM {table} WHERE due_at > :late", late=now + LONGEST_PAUSE)  # noqa: S608 - our own names
            assert not late, f"{table} wait for {[due - now for (due,) in late]} s"
            await self.sql(f"UPDATE {table} SET due_at = :now WHERE due_at > :now", now=now)  # noqa: S608 - the same
        for instance in self.instances:
            instance.app.wake()

    async def settled(self, seconds: float = PATIENCE) -> None:
        """Waits till each job that is watched has been seen as it is, and no request and no notice is open."""

        async def idle() -> bool:
            for job_id, known in await self.sql(WATCHED):
                seen, shown = json.loads(known)["job"], self.ledger.jobs[job_id]
                if seen["status"] != shown["status"] or shown["prLink"] not in {None, seen["pr_link"]}:
                    return False
            counts = [(await self.sql(OPEN.format(table)))[0][0] for table in ("requests", "notices")]
            return not any(counts)

        await until(idle, seconds)

    async def until_true(self, condition: Callable[[], Awaitable[bool]], seconds: float = PATIENCE) -> None:
        """Waits till the database says so."""
        await until(condition, seconds)

    async def known(self, prompt: str) -> Thread:
        """The thread as the database has it."""
        rows = await self.sql("SELECT id FROM threads WHERE prompt = :prompt", prompt=prompt)
        return await self._thread(str(rows[0][0]))

    async def _thread(self, thread_id: str) -> Thread:
        thread = await self.instances[0].edges.store.transact(lambda tx: tx.thread(thread_id))
        assert thread is not None
        return thread

    # -- what must be true ----------------------------------------------------------------------------------------

    async def check(self) -> None:
        """Nothing lost, nothing said twice, in order, one owner, and every card at the newest state."""
        assert self.ledger.repeated() == {}
        assert self.ledger.overlapping_polls() == []
        self._said_once()
        await self._said_in_order()
        await self._accounted_for()
        await self._cards_are_newest()

    def _said_once(self) -> None:
        keys = Counter(key_of(m) for channel in self.workspace.state.channels for m in self.workspace.messages(channel))
        keys.pop("", None)
        assert [key for key, times in keys.items() if times > 1] == []

    async def _said_in_order(self) -> None:
        rows = await self.sql("SELECT thread_id, key FROM notices WHERE kind = 'post' AND state = 'done' ORDER BY id")
        for thread_id, channel, ts in await self.sql("SELECT id, channel_id, ts FROM threads WHERE ts IS NOT NULL"):
            meant = [key for owner, key in rows if owner == thread_id]
            there = [key_of(message) for message in self.workspace.thread(channel, ts)[1:] if key_of(message)]
            assert there == meant

    async def _accounted_for(self) -> None:
        rows = await self.sql("SELECT id, text, kind, state, person_id FROM requests")
        by_text: dict[str, tuple[Any, ...]] = {row[1]: row for row in rows}
        created = Counter(entry.prompt for entry in self.ledger.created)
        taken = Counter(entry.prompt for entry in self.ledger.messages)
        for words in (*self.asked, *self.replied):
            assert words in by_text, f"{words!r} is lost"
            request_id, _, kind, state, person = by_text[words]
            times = (created if kind == "start" else taken)[words]
            if state == "taken":
                assert times == 1, f"{words!r} was taken {times} times"
            else:
                assert times <= 1
                assert self._explained(request_id, person), f"{words!r} is {state}, and nobody was told"

    def _explained(self, request_id: str, person: str) -> bool:
        everything = [key_of(m) for channel in self.workspace.state.channels for m in self.workspace.messages(channel)]
        in_words = any(f"/{request_id}/{end}/" in key for key in everything for end in ("refused", "unsure"))
        return in_words or bool(self.told(person))

    async def _cards_are_newest(self) -> None:
        given_up = {key for (key,) in await self.sql("SELECT key FROM notices WHERE state = 'given_up'")}
        ids = await self.sql("SELECT id FROM threads WHERE ts IS NOT NULL")
        for (thread_id,) in ids:
            thread = await self._thread(thread_id)
            assert thread.ts is not None
            if f"{thread.id}/card" not in given_up:
                shown = self.workspace.thread(thread.channel_id, thread.ts)[0]
                assert shown.text == stored_app_text(card(thread, self.instances[0].edges.wording).text)


async def _now(tx: Any) -> float:
    return float(tx.now)


async def until(condition: Callable[[], Awaitable[Found]], seconds: float) -> Found:
    """Waits for what only asking can tell."""
    async with asyncio.timeout(seconds):
        while not (found := await condition()):  # noqa: ASYNC110 - a database tells nobody of its changes
            await asyncio.sleep(0.05)
    return found


def key_of(message: Message) -> str:
    """The notice's key that a message carries; empty for all others."""
    payload = (message.metadata or {}).get("event_payload", {})
    return str(payload.get("key", ""))


def _short(key: str) -> str:
    """`<thread>/<request>/refused/1`, `<thread>/link/<hash>` and `<thread>/r<round>/active` without what no test can
    know; a round for each time that a follow-up went out.
    """
    parts = key.split("/")[1:]
    return "/".join(part for part in parts if len(part) < 16 and not re.fullmatch(r"r\d+", part))


@asynccontextmanager
async def a_world(database_url: str, *, redeliver_after: float = 1.0, **settings: str) -> AsyncIterator[World]:
    """A workspace and a job API that run; no bot yet. What a test leaves running is stopped."""
    workspace = WorkspaceServer(manifest(), redeliver_after=redeliver_after, retry_delays=(0.05, 1.0, 30.0))
    ledger = Ledger()
    await ledger.start()
    await workspace.start()
    engine = engine_for(database_url)
    world = World(workspace, ledger, database_url, settings, engine)
    try:
        yield world
    finally:
        await world.stop()
        await engine.dispose()
        await workspace.stop()
        await ledger.stop()
