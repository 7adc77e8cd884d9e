"""One message of a person, with its edits and its deletion, as Slack delivers them through real Bolt to the core."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from support.fakes.listening_app import OURS, listening_app
from support.worlds.core_world import CoreWorld

from bot.domain.requests.request import MessageVersion
from bot.slack.receiving.slack_app import SlackApp
from bot.workspace.wire.rendering import rich_text_of

BOT = OURS.bot_user_id
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
        return _envelope(self._message(text) | {"channel": self.channel, "event_ts": TS})

    def edited(self, before: str, after: str, at: str = SOON[0]) -> Json:
        """An edit of it."""
        edited = {"edited": {"user": "UANA", "ts": at}}
        versions = {"message": self._message(after) | edited, "previous_message": self._message(before)}
        return self._changed("message_changed", at, versions)

    def deleted(self, before: str, at: str = SOON[2]) -> Json:
        """Its deletion."""
        return self._changed("message_deleted", at, {"deleted_ts": TS, "previous_message": self._message(before)})

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

    def _changed(self, subtype: str, at: str, what: Json) -> Json:
        changed = {"type": "message", "subtype": subtype, "hidden": True}
        return _envelope(changed | {"channel": self.channel, "ts": at, "event_ts": at} | what)


def _envelope(event: Json) -> Json:
    return {
        "type": "event_callback",
        "team_id": "T1",
        "api_app_id": "A1",
        "event": event,
        "authorizations": [{"team_id": "T1", "user_id": BOT, "is_bot": True}],
        "is_ext_shared_channel": False,
    }


@asynccontextmanager
async def message_versions(world: CoreWorld) -> AsyncIterator[MessageVersions]:
    """A root message in a channel, without a Slack for immediate private answers."""
    async with listening_app(world.service) as app:
        yield MessageVersions(world, app)
