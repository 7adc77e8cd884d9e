"""People in Slack, the whole bot, and a job API: what people do, and what they see. The error at a timeout
shows what was there instead.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from support.oracles.notice_keys import key_of
from support.servers.fake_job_api import Created, FakeJobApiServer
from support.servers.slack_faults import FaultyWorkspace
from support.worlds.app_world import AppWorld, a_world

from bot.slack.rendering.blocks import Block
from bot.workspace import WorkspaceServer
from bot.workspace.model.entities import Message
from bot.workspace.model.views import View
from bot.workspace.people import Actor

Found = TypeVar("Found")
PATIENCE = 300.0
"""Seconds; far more than anything here takes."""
PEOPLE = ("ana", "ben", "gia")
"""The people who have a direct conversation with the app."""
LINK = "https://git.example/docs/pull/1"


class OpenWorld(Protocol):
    """Opens a world; `without` are scopes that the app was not installed with."""

    async def __call__(self, *, without: Sequence[str] = (), **settings: str) -> "WaysInWorld": ...


@dataclass(frozen=True)
class Job:
    """A job's id and its card."""

    id: str
    card: Message

    @property
    def ts(self) -> str:
        return self.card.ts


@dataclass
class SeenInSlack:
    """People act through `ana` and the others; this is what they see."""

    workspace: WorkspaceServer

    @property
    def ana(self) -> Actor:
        return self.workspace.people["ana"]

    @property
    def ben(self) -> Actor:
        return self.workspace.people["ben"]

    @property
    def gia(self) -> Actor:
        """A guest."""
        return self.workspace.people["gia"]

    @property
    def emil(self) -> Actor:
        """A person of another organization, in #partners."""
        return self.workspace.people["emil"]

    @property
    def bot(self) -> str:
        """The mention of Pagehand."""
        return "@pagehand"

    # -- what people see ------------------------------------------------------------------------------------------

    async def until(self, seen: Callable[[], Found | None], what: str) -> Found:
        """Waits until something is visible in Slack, and returns it."""
        try:
            found = await self.workspace.changes.wait_for(seen, PATIENCE)
        except TimeoutError:
            found = None
        if found is None:
            raise AssertionError(f"{what} was not seen, but\n{self.all_seen()}")
        return found

    def all_seen(self) -> str:
        """Returns everything in Slack."""
        state, lines = self.workspace.state, []
        for channel in state.channels.values():
            for message in state.conversation(channel):
                marks = " ".join(f":{name}:" for name in message.reactions)
                lines.append(f"{channel.name or channel.user} {message.user}: {message.text} {marks}")
            for name in (*PEOPLE, "emil"):
                person = self.workspace.people[name].id
                lines += [f"{channel.name}, to {name} alone: {m.text}" for m in state.ephemerals(channel, person)]
        return "\n".join(lines)

    async def said(self, words: str, *, channel: str = "docs", thread_ts: str = "") -> Message:
        """Waits for a message of Pagehand with these words that is not a card."""

        def found() -> Message | None:
            for message in self.messages(channel, thread_ts):
                if message.bot_id and words in message.text and not _is_card(message):
                    return message
            return None

        return await self.until(found, f"{words!r} in {channel} {thread_ts}")

    def messages(self, channel: str = "docs", thread_ts: str = "") -> Sequence[Message]:
        channels = self.workspace.channels
        return channels.thread(channel, thread_ts) if thread_ts else channels.messages(channel)

    async def card(self, words: str = "", *, channel: str = "docs") -> Message:
        """Waits for a card with these words."""

        def found() -> Message | None:
            cards = [message for message in self.cards(channel) if words in message.text]
            return cards[0] if cards else None

        return await self.until(found, f"a card with {words!r} in {channel}")

    def cards(self, channel: str = "docs") -> list[Message]:
        """Returns all cards of a channel, the oldest first."""
        return [message for message in self.messages(channel) if _is_card(message)]

    async def private_message(self, person: Actor, words: str) -> Message:
        """Waits for words that only this person sees, in any channel or directly."""

        def found() -> Message | None:
            told = [message for message in self.private(person) if words in message.text]
            return told[-1] if told else None

        return await self.until(found, f"{words!r} to {person.user.name} alone")

    def private(self, person: Actor) -> list[Message]:
        """Returns all private messages to this person, by channel."""
        state, bot = self.workspace.state, self.workspace.app.bot_user_id
        alone = [message for channel in state.channels.values() for message in state.ephemerals(channel, person.id)]
        if person.is_external:
            return alone
        return [
            *alone,
            *(message for message in self.workspace.channels.messages(person.user.name) if message.user == bot),
        ]

    async def marked(self, message: Message, reaction: str) -> None:
        """Waits until a message has this mark of Pagehand, and no other."""
        await self.until(lambda: list(message.reactions) == [reaction], f":{reaction}: on {message.text!r}")

    async def modal(self, person: Actor, title: str) -> View:
        """Waits for a modal."""

        def found() -> View | None:
            top = person.views.top
            return top if top is not None and top.title == title else None

        return await self.until(found, f"the modal {title!r}")

    async def home(self, person: Actor, words: str, *, without: str = "") -> View:
        """Waits for a Home with these words, and without those."""

        def found() -> View | None:
            home = person.views.home()
            shown = text_of(home.blocks) if home is not None else ""
            return home if words in shown and not (without and without in shown) else None

        return await self.until(found, f"{words!r} on the Home of {person.user.name}")


@dataclass
class WaysInWorld(SeenInSlack):
    """What people see, and the job API."""

    workspace: FaultyWorkspace
    app: AppWorld

    @property
    def job_api(self) -> FakeJobApiServer:
        return self.app.fake_job_api

    def all_seen(self) -> str:
        """Returns everything in Slack, and everything the job API took."""
        lines = [f"created: {created}" for created in self.job_api.created]
        lines += [f"follow-up: {message}" for message in self.job_api.messages]
        return "\n".join([super().all_seen(), *lines])

    async def job(self, prompt: str) -> Created:
        """Waits for the job with exactly this prompt, or with it and another paragraph."""

        def found() -> list[Created]:
            return [
                one for one in self.job_api.created if one.prompt == prompt or one.prompt.startswith(f"{prompt}\n\n")
            ]

        await self._until_taken(lambda: bool(found()), f"a job {prompt!r}")
        (created,) = found()
        return created

    async def steered(self, job_id: str, *words: str) -> None:
        """Waits until a job has taken exactly these follow-ups; each may have another paragraph."""

        def just_these() -> bool:
            told = self.job_api.follow_ups(job_id)
            pairs = zip(told, words, strict=False)
            return len(told) >= len(words) and all(f"{text}\n\n".startswith(f"{word}\n\n") for text, word in pairs)

        await self._until_taken(just_these, f"the follow-ups {words}")
        assert len(self.job_api.follow_ups(job_id)) == len(words), self.all_seen()

    async def _until_taken(self, condition: Callable[[], bool], what: str) -> None:
        try:
            await self.job_api.until(condition, PATIENCE)
        except TimeoutError:
            raise AssertionError(f"{what} did not come, but\n{self.all_seen()}") from None

    # -- the beginnings of many tests -----------------------------------------------------------------------------

    async def begun(self, prompt: str = "Fix the guides", *, person: Actor | None = None, channel: str = "docs") -> Job:
        """Starts a job by the command; it is active."""
        asking = person or self.ana
        assert (await asking.command(channel, "/docs", prompt)).ok
        created = await self.job(prompt)
        card = await self.card(f"asked: {prompt}\n", channel=channel)
        await self.said("Started.", channel=channel, thread_ts=card.ts)
        return Job(created.job_id, card)

    async def finished(self) -> Job:
        """Does the same and ends the job."""
        job = await self.begun()
        self.job_api.show(job.id, "completed", LINK)
        await self.said("Done", thread_ts=job.card.ts)
        return job


def _is_card(message: Message) -> bool:
    return key_of(message).endswith("/card")


def labels(message: Message | View) -> list[str]:
    """Returns the labels of a message's buttons, in order; a menu has none."""
    rows = [block.get("actions") or block.get("elements", ()) for block in message.blocks or []]
    return [element["text"]["text"] for row in rows for element in row if element["type"] == "button"]


def text_of(blocks: Sequence[Block] | None) -> str:
    """Returns all text of some blocks."""
    return str(list(blocks or ()))


@asynccontextmanager
async def ways_in_world(directory: Path, *, without: Sequence[str] = (), **settings: str) -> AsyncIterator[WaysInWorld]:
    """All of it, running. Replies are not merged, unless the settings say otherwise."""
    database_url = f"sqlite:///{directory}/pagehand.sqlite3"
    slack = a_world(database_url, redeliver_after=20.0, trigger_lifetime=60.0, without=without)
    async with slack as app:
        app.settings |= {"PAGEHAND_MERGE_SECONDS": "0", **settings}
        await app.start()
        yield WaysInWorld(app.workspace, app)
