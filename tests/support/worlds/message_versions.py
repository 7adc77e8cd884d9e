"""One message of a person, with its edits and its deletion, as Slack delivers them through real Bolt to the core."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from support.fakes.slack_payloads import changed, event
from support.worlds.core_world import CoreWorld
from support.worlds.listening_world import listening_app

from bot.domain.requests.request import MessageVersion
from bot.slack.receiving.slack_app import SlackApp
from bot.workspace.wire.rendering import rich_text_of

ROOT = "1700000000.000100"
TS = "1700000005.000100"
SOON = ("1700000016.000100", "1700000017.000100", "1700000018.000100")
"""When it was changed, first to last."""
LATE = "1700000605.000200"
"""When an edit no longer asks for a job."""
Json = dict[str, Any]


@dataclass
class MessageVersions:
    """One message of Ana's: in a channel, in a thread (`thread_ts`) or in a direct message; and its delivery."""

    world: CoreWorld
    app: SlackApp
    channel: str = "C1"
    thread_ts: str = ""
    parent: str = ""

    def written(self, text: str) -> Json:
        """Its own event."""
        return event(**{"thread_ts": None} | self._message(text), **self._place(TS))

    def edited(self, before: str, after: str, at: str = SOON[0]) -> Json:
        """An edit of it."""
        message = self._message(after) | {"edited": {"user": "UANA", "ts": at}}
        return changed(
            "message_changed", at, message=message, previous_message=self._message(before), **self._place(at)
        )

    def deleted(self, before: str, at: str = SOON[2]) -> Json:
        """Its deletion."""
        return changed("message_deleted", at, deleted_ts=TS, previous_message=self._message(before), **self._place(at))

    def version(self, at: str) -> MessageVersion:
        """Its version as of a time."""
        return MessageVersion(self.channel, TS, "UANA", at)

    async def take(self, *payloads: Json, wait: float = 5) -> None:
        """Delivers them, and lets time pass."""
        for payload in payloads:
            assert (await self.app.handle_payload(payload)).status == 200
        await self.app.drain(5)
        if wait:
            await self.world.pass_time(wait)

    def _message(self, text: str) -> Json:
        message = {
            "type": "message",
            "user": "UANA",
            "text": text,
            "ts": TS,
            "team": "T1",
            "blocks": rich_text_of(text),
        }
        in_thread = {"thread_ts": self.thread_ts, "parent_user_id": self.parent or "UBEN"} if self.thread_ts else {}
        return message | in_thread

    def _place(self, at: str) -> Json:
        return {"channel": self.channel, "channel_type": None, "event_ts": at}


@asynccontextmanager
async def message_versions(world: CoreWorld) -> AsyncIterator[MessageVersions]:
    """A root message in a channel, without a Slack for immediate private answers."""
    async with listening_app(world.service) as app:
        yield MessageVersions(world, app)
