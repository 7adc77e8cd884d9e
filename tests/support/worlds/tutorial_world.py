"""Pagehand as people in one channel see it: what they type and read, and the agent's side of it.

The core is the real one, over a real database, behind the real listeners; the texts are those that Slack would show.
Only Slack itself, the job API and the clock are fakes.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.fakes import slack_payloads
from support.fakes.ports import FakeChat
from support.worlds.core_world import CoreWorld, stored
from support.worlds.listening_world import BOT, slack_app

from bot.domain.threads.thread import Thread
from bot.notices.notice import Notice
from bot.slack.rendering.blocks import ChatMessage
from bot.slack.rendering.cards import card
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.notices import messages
from bot.slack.sending.web_api import new_session

ANA = "UANA"
CONTEXT = MessageContext(bot_user_id=BOT)


class ReadableChat(FakeChat):
    """Keeps each message as people see it."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[ChatMessage] = []

    async def post(self, thread: Thread, notice: Notice) -> str:
        ts = await super().post(thread, notice)
        self.shown += messages(thread, notice, CONTEXT)
        return ts


class TutorialWorld(CoreWorld):
    """One person, Ana, in one channel, with one job. After everything she does, the bot works for a few seconds."""

    chat: ReadableChat

    def open(self) -> "TutorialWorld":
        """Starts the bot."""
        self.chat = ReadableChat()
        self.assemble()
        self._session = new_session()
        self._written = 0
        self._listen()
        return self

    async def close(self) -> None:
        """Stops it for good."""
        await self._app.drain(1)
        await self._session.close()

    # -- what happens -----------------------------------------------------------------------------------------------

    async def types(self, command: str) -> str:
        """Types a slash command as Ana; returns what she alone reads in answer."""
        name, _, text = command.partition(" ")
        return str((await self._receive(slack_payloads.command(text, command=name, user_id=ANA))).body)

    async def replies(self, text: str) -> str:
        """Replies as Ana in the job's thread; returns the message's ts."""
        at = self._now()
        await self._receive(slack_payloads.event(user=ANA, text=text, ts=at, thread_ts=self._card().ts), seconds=0.5)
        return at

    async def edits(self, message: str, before: str, after: str) -> None:
        """Edits the words of a reply as Ana."""
        at, place = self._now(), {"user": ANA, "ts": message, "thread_ts": self._card().ts}
        edited = {**place, "edited": {"user": ANA, "ts": at}}
        await self._receive(slack_payloads.edit(after, before=before, at=at, **edited), seconds=0.5)

    async def presses(self, label: str) -> None:
        """Presses a button in the thread as Ana."""
        buttons = [button for message in self.chat.shown for button in _buttons(message)]
        pressed = next(button for button in reversed(buttons) if button["text"]["text"] == label)
        click = slack_payloads.click(pressed["action_id"], pressed["value"], user={"id": ANA, "team_id": "T1"})
        await self._receive(click)

    async def later(self, seconds: float = 40.0) -> None:
        """Lets time pass; the bot works on what falls due."""
        await self.pass_time(seconds)

    def crash(self) -> None:
        """Kills the process with everything it knew, and starts another one on the same database."""
        self.restart("another process")
        self._listen()

    # -- what people see ----------------------------------------------------------------------------------------------

    @property
    def card(self) -> str:
        """The current card."""
        return card(next(iter(self.chat.cards.values())), CONTEXT).text

    @property
    def said(self) -> list[str]:
        """The bot's messages below it, in order."""
        return [message.text for message in self.chat.shown]

    def reaction(self, message: str) -> str:
        """The bot's reaction on a reply."""
        return self.chat.reactions[message].value

    # -- implementation -----------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        self._app = slack_app(self.service, self._session)

    async def _receive(self, payload: dict[str, Any], seconds: float = 5.0) -> Any:
        answer = await self._app.handle_payload(payload)
        assert answer.status == 200
        await self.pass_time(seconds)
        return answer

    def _card(self) -> Any:
        return next(message for message in self.chat.messages if message.kind == "card_changed")

    def _now(self) -> str:
        self._written += 1
        return f"{int(self.clock.time)}.{self._written:06d}"


def _buttons(message: ChatMessage) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [dict(block) for block in message.blocks]
    return [dict(element) for block in blocks if block["type"] == "actions" for element in block["elements"]]


@asynccontextmanager
async def tutorial_world(template: Path) -> AsyncIterator[TutorialWorld]:
    """Pagehand in one channel with Ana, over its own database."""
    async with stored(TutorialWorld(), template) as world:
        yield world.open()
        await world.close()
