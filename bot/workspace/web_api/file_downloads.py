"""Downloads of files by the app: those in conversations that its bot is in and in public channels."""

from dataclasses import dataclass

from aiohttp import web

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import Channel, File, Json
from bot.workspace.model.errors import SlackError
from bot.workspace.model.state import State
from bot.workspace.web_api.credentials import Credentials
from bot.workspace.wire.files import FILES_PATH


@dataclass(frozen=True)
class ReadableFile:
    """A file and the conversations with it that the app can see."""

    file: File
    channels: tuple[Channel, ...]

    def places(self) -> Json:
        """Returns the fields that name the conversations."""
        named = {"channels": "channels", "groups": "groups", "im": "ims"}
        fields: dict[str, list[str]] = {name: [] for name in named.values()}
        for channel in self.channels:
            fields[named[channel.scope_family]].append(channel.id)
        return {**fields, "is_public": bool(fields["channels"])}


def readable_file(state: State, app: AppConfig, file_id: str) -> ReadableFile:
    """Returns a file that the app may read.

    Raises:
        SlackError: ``file_not_found``.
    """
    file = state.files.get(file_id)
    if file is None:
        raise SlackError("file_not_found")
    channels = tuple(c for c in state.channels_of_file(file_id) if _is_visible(c, app))
    if not channels:
        raise SlackError("file_not_found")
    return ReadableFile(file, channels)


def _is_visible(channel: Channel, app: AppConfig) -> bool:
    return app.bot_user_id in channel.members or not (channel.is_private or channel.is_im)


_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
_SIGN_IN = "<!DOCTYPE html><html><head><title>Sign in | Slack</title></head><body><h1>Sign in</h1></body></html>"
_NOT_FOUND = (
    "<!DOCTYPE html><html><head><title>File not found</title></head><body><h1>File not found</h1></body></html>"
)


class FileDownloads:
    """Serves files to the app.

    Args:
        state: The workspace.
        app: The app; it needs the scope ``files:read``.
        credentials: The valid token.
    """

    def __init__(self, state: State, app: AppConfig, credentials: Credentials) -> None:
        self._state = state
        self._app = app
        self._credentials = credentials

    def routes(self) -> list[web.AbstractRouteDef]:
        base = f"{FILES_PATH}/{{team:\\w+}}-{{file:\\w+}}"
        return [web.get(f"{base}/download/{{name}}", self._answer)]

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        """Answers as Slack does: without permission to read files, a sign-in page with status 200."""
        if not self._may_read(request):
            return web.Response(text=_SIGN_IN, content_type="text/html", headers=_HEADERS)
        try:
            file = readable_file(self._state, self._app, request.match_info["file"]).file
        except SlackError:
            return _missing()
        content = self._state.files.content(file.id)
        return _missing() if content is None else _file(file, content)

    def _may_read(self, request: web.Request) -> bool:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        try:
            self._credentials.check(token.strip() if scheme.lower() == "bearer" else "")
        except SlackError:
            return False
        return "files:read" in self._app.scopes


def _missing() -> web.Response:
    return web.Response(text=_NOT_FOUND, status=404, content_type="text/html", headers=_HEADERS)


def _file(file: File, content: bytes) -> web.Response:
    kind = file.mimetype if file.mimetype.isascii() and file.mimetype.isprintable() else "application/octet-stream"
    headers = _HEADERS | {"Content-Type": kind, "Content-Disposition": "attachment"}
    return web.Response(body=content, headers=headers)
