"""Response URLs, at which an app may answer an interaction: five times within half an hour."""

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from aiohttp import web

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import Json, Message
from bot.workspace.model.errors import SlackError
from bot.workspace.model.state import State
from bot.workspace.model.text import stored_app_text
from bot.workspace.wire.arguments import Arguments
from bot.workspace.wire.blocks import checked_blocks

MAX_USES = 5
LIFETIME_SECONDS = 30 * 60
MAX_OPEN = 10_000
ResponseUrlKind = Literal["commands", "actions", "app"]
"""The first part of a response URL's path."""


@dataclass
class _ResponseUrl:
    """Who may see the answers, where they go, and the message that was used or last posted."""

    user: str
    channel: str
    expires: float
    uses: int = 0
    message: Message | None = None


class IssuedResponseUrls:
    """Issues response URLs and carries out what the app posts to them.

    Args:
        state: The workspace.
        app: The app.
        now: The clock, in seconds.
        origin: Returns the workspace's own address.
    """

    def __init__(self, state: State, app: AppConfig, now: Callable[[], float], origin: Callable[[], str]) -> None:
        self._state = state
        self._app = app
        self._now = now
        self._origin = origin
        self._open: dict[str, _ResponseUrl] = {}

    def issue(self, kind: ResponseUrlKind, user: str, channel: str, message: Message | None = None) -> str:
        """Returns a new URL for answers to a person in a channel; `message` is the one whose element they used."""
        while len(self._open) >= MAX_OPEN:
            del self._open[next(iter(self._open))]
        secret = secrets.token_urlsafe(18)
        self._open[secret] = _ResponseUrl(user, channel, self._now() + LIFETIME_SECONDS, message=message)
        return f"{self._origin()}/{kind}/{self._state.team.id}/{secret}"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Serves a response URL. The answer is ``ok`` as plain text, or Slack's error."""
        try:
            body = json.loads(await request.read())
            self._use(request.match_info["secret"], body)
        except (ValueError, RecursionError, web.RequestPayloadError):
            return web.json_response({"ok": False, "error": "invalid_payload"}, status=400)
        except SlackError as error:
            status = 404 if error.code in {"expired_url", "used_url"} else 400
            return web.json_response(error.response_body(), status=status)
        return web.Response(text="ok")

    def _use(self, secret: str, body: object) -> None:
        """Carries out what an app posted.

        Raises:
            SlackError: ``expired_url``, ``used_url``, or an error in the message.
        """
        target = self._open.get(secret)
        if target is None or target.expires <= self._now():
            raise SlackError("expired_url")
        if target.uses >= MAX_USES:
            raise SlackError("used_url")
        if not isinstance(body, dict):
            raise SlackError("invalid_payload")
        self._respond(target, Arguments(body))
        target.uses += 1

    def show_ack(self, user: str, channel: str, payload: Json, typed: str) -> Message | None:
        """Shows the content of an acknowledgement; in a channel, the typed command comes first.

        Returns None if there was nothing to show.

        Raises:
            SlackError: There is an error in the message.
        """
        arguments = Arguments(payload)
        if not (payload.get("text") or payload.get("blocks") or payload.get("attachments")):
            return None
        if arguments.text("response_type") == "in_channel":
            self._state.post(Message(channel, "", user, typed))
        return self._respond(_ResponseUrl(user, channel, 0), arguments)

    def _respond(self, target: _ResponseUrl, arguments: Arguments) -> Message | None:
        if arguments.flag("delete_original"):
            self._delete(target)
            return None
        content = self._content(arguments)
        if arguments.flag("replace_original") and target.message is not None:
            self._replace(target.message, content)
            return target.message
        message = Message(target.channel, "", self._app.bot_user_id, **content)
        message.bot_id, message.app_id = self._app.bot_id, self._app.app_id
        message.thread_ts = arguments.timestamp("thread_ts")
        if arguments.text("response_type") == "in_channel":
            message.subtype = "bot_message"
            target.message = self._state.post(message)
        else:
            message.ephemeral_to = target.user
            target.message = self._state.show_ephemeral(message)
        return target.message

    def _content(self, arguments: Arguments) -> Json:
        blocks = arguments.json_value("blocks", "invalid_blocks_format")
        text = arguments.text("text")
        attachments = arguments.json_value("attachments", "invalid_attachments")
        if not text and not blocks and not attachments:
            raise SlackError("no_text")
        return {
            "text": stored_app_text(text),
            "blocks": checked_blocks(blocks) if blocks else None,
            "attachments": attachments if isinstance(attachments, list) else None,
        }

    def _replace(self, message: Message, content: Json) -> None:
        if message.ephemeral_to:
            self._state.edit_ephemeral(message, **content)
        else:
            self._state.edit(message, self._app.bot_user_id, **content)

    def _delete(self, target: _ResponseUrl) -> None:
        message, target.message = target.message, None
        if message is None:
            return
        if message.ephemeral_to:
            self._state.delete_ephemeral(message)
        elif self._state.conversation(self._state.channels[message.channel]).get(message.ts):
            self._state.delete(message, self._app.bot_user_id)
