"""The addresses at which an app may answer a command or a press: five times within half an hour."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from bot.workspace.app_config import AppConfig
from bot.workspace.arguments import Arguments
from bot.workspace.blocks import checked_blocks
from bot.workspace.errors import SlackError
from bot.workspace.models import Json, Message
from bot.workspace.state import State
from bot.workspace.text import stored_app_text

USES = 5
LIFETIME_SECONDS = 30 * 60
OPEN_AT_ONCE = 10_000


@dataclass
class ResponseUrl:
    """One address: for whom, where, and the message it came from or last made."""

    user: str
    channel: str
    expires: float
    uses: int = 0
    message: Message | None = None


class ResponseUrls:
    """Issues addresses and carries out what is posted to them."""

    def __init__(self, state: State, app: AppConfig, now: Callable[[], float]) -> None:
        self._state = state
        self._app = app
        self._now = now
        self._open: dict[str, ResponseUrl] = {}

    def issue(self, origin: str, kind: str, user: str, channel: str, message: Message | None = None) -> str:
        """A new address. ``kind`` is ``commands`` or ``actions``, as in Slack's own."""
        while len(self._open) >= OPEN_AT_ONCE:
            del self._open[next(iter(self._open))]
        secret = secrets.token_urlsafe(18)
        self._open[secret] = ResponseUrl(user, channel, self._now() + LIFETIME_SECONDS, message=message)
        return f"{origin}/{kind}/{self._state.team.id}/{secret}"

    def use(self, secret: str, body: object) -> None:
        """Carry out what an app posted.

        Raises:
            SlackError: ``expired_url``, ``used_url``, or what is wrong with the message.
        """
        target = self._open.get(secret)
        if target is None or target.expires <= self._now():
            raise SlackError("expired_url")
        if target.uses >= USES:
            raise SlackError("used_url")
        if not isinstance(body, dict):
            raise SlackError("invalid_payload")
        self.respond(target, Arguments(body))
        target.uses += 1

    def answer(self, user: str, channel: str, payload: Json, typed: str | None = None) -> Message | None:
        """Show what an acknowledgement carried. None when it carried nothing to show."""
        arguments = Arguments(payload)
        if not (payload.get("text") or payload.get("blocks") or payload.get("attachments")):
            return None
        if typed and arguments.text("response_type") == "in_channel":
            self._state.post(Message(channel, "", user, typed))
        return self.respond(ResponseUrl(user, channel, 0), arguments)

    def respond(self, target: ResponseUrl, arguments: Arguments) -> Message | None:
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
        blocks = arguments.structure("blocks", "invalid_blocks_format")
        text = arguments.text("text")
        attachments = arguments.structure("attachments", "invalid_attachments")
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

    def _delete(self, target: ResponseUrl) -> None:
        message, target.message = target.message, None
        if message is None:
            return
        if message.ephemeral_to:
            self._state.delete_ephemeral(message)
        elif self._state.conversation(self._state.channels[message.channel]).get(message.ts):
            self._state.delete(message, self._app.bot_user_id)
