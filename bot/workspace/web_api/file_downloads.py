"""Files that the app uploads, and downloads: its own, and those in conversations that its bot is in and in public
channels.
"""

from aiohttp import web

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import Channel, File, SlackError
from bot.workspace.model.state import State
from bot.workspace.web_api.method import Credentials
from bot.workspace.wire.rendering import FILES_PATH


def readable_file(state: State, app: AppConfig, file_id: str) -> tuple[File, list[Channel]]:
    """Returns a file that the app may read, and the conversations with it that the app can see.

    Raises:
        SlackError: ``file_not_found``.
    """
    file = state.files.get(file_id)
    channels = [
        c for c in state.channels_of_file(file_id) if app.bot_user_id in c.members or c.scope_family == "channels"
    ]
    if file is None or not (channels or file.uploader == app.bot_user_id):
        raise SlackError("file_not_found")
    return file, channels


UPLOAD_PATH = "/upload/v1"
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


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
        base = rf"{FILES_PATH}/{{team:\w+}}-{{file:\w+}}"
        return [
            web.get(f"{base}/download/{{name}}", self._answer),
            web.post(rf"{UPLOAD_PATH}/{{file:\w+}}", self._receive),
        ]

    async def _receive(self, request: web.Request) -> web.StreamResponse:
        """Takes what the app uploads, at an address that nobody else knows."""
        content = await request.read()
        try:
            self._state.files.receive(request.match_info["file"], content)
        except SlackError as error:
            return web.Response(text=error.code, status=400)
        return web.Response(text=f"OK - {len(content)}")

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        """Answers as Slack does: without permission to read files, a sign-in page with status 200."""
        if not self._may_read(request):
            return _page("Sign in")
        try:
            file, _ = readable_file(self._state, self._app, request.match_info["file"])
        except SlackError:
            return _page("File not found", status=404)
        kind = file.mimetype if file.mimetype.isascii() and file.mimetype.isprintable() else "application/octet-stream"
        headers = _HEADERS | {"Content-Type": kind, "Content-Disposition": "attachment"}
        return web.Response(body=self._state.files.content(file.id), headers=headers)

    def _may_read(self, request: web.Request) -> bool:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        try:
            self._credentials.check(token.strip() if scheme.lower() == "bearer" else "")
        except SlackError:
            return False
        return "files:read" in self._app.scopes


def _page(title: str, status: int = 200) -> web.Response:
    text = f"<!DOCTYPE html><html><head><title>{title}</title></head><body><h1>{title}</h1></body></html>"
    return web.Response(text=text, status=status, content_type="text/html", headers=_HEADERS)
