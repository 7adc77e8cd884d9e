"""Response URLs, at which an app may answer an interaction: five times within half an hour, to the person only."""

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import Json, Message, SlackError
from bot.workspace.model.state import State
from bot.workspace.model.text import stored_app_text
from bot.workspace.wire.arguments import Arguments
from bot.workspace.wire.views import checked_blocks

MAX_USES = 5
LIFETIME_SECONDS = 30 * 60
MAX_OPEN = 10_000


@dataclass
class _ResponseUrl:
    """Who may see the answers, and where they go."""

    user: str
    channel: str
    expires: float
    uses: int = 0


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

    def issue(self, user: str, channel: str) -> str:
        """Returns a new URL for answers to a person in a channel."""
        while len(self._open) >= MAX_OPEN:
            del self._open[next(iter(self._open))]
        secret = secrets.token_urlsafe(18)
        self._open[secret] = _ResponseUrl(user, channel, self._now() + LIFETIME_SECONDS)
        return f"{self._origin()}/commands/{self._state.team.id}/{secret}"

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
        self._respond(target.user, target.channel, Arguments(body))
        target.uses += 1

    def show_ack(self, user: str, channel: str, payload: Json) -> Message | None:
        """Shows the content of an acknowledgement. Returns None if there was nothing to show.

        Raises:
            SlackError: There is an error in the message.
        """
        if not (payload.get("text") or payload.get("blocks")):
            return None
        return self._respond(user, channel, Arguments(payload))

    def _respond(self, user: str, channel: str, arguments: Arguments) -> Message:
        blocks, text = arguments.json_value("blocks", "invalid_blocks_format"), arguments.text("text")
        if not text and not blocks:
            raise SlackError("no_text")
        checked = checked_blocks(blocks) if blocks else None
        message = self._app.message(channel, stored_app_text(text), checked, ephemeral_to=user)
        return self._state.show_ephemeral(message)
