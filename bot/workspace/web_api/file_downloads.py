"""The addresses of files: what is in a file for the bot's token, and for anybody else a page to sign in."""

from aiohttp import web

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import File
from bot.workspace.model.errors import SlackError
from bot.workspace.model.state import State
from bot.workspace.web_api.credentials import Credentials
from bot.workspace.web_api.file_access import readable_file
from bot.workspace.wire.files import FILES_PATH

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
        app: The app, whose scopes count.
        credentials: The token that is good.
    """

    def __init__(self, state: State, app: AppConfig, credentials: Credentials) -> None:
        self._state = state
        self._app = app
        self._credentials = credentials

    def routes(self) -> list[web.AbstractRouteDef]:
        base = f"{FILES_PATH}/{{team:\\w+}}-{{file:\\w+}}"
        return [
            web.get(f"{base}/download/{{name}}", self._download),
            web.get(f"{base}/{{name}}", self._show),
        ]

    async def _show(self, request: web.Request) -> web.StreamResponse:
        return self._answer(request, "inline")

    async def _download(self, request: web.Request) -> web.StreamResponse:
        return self._answer(request, "attachment")

    def _answer(self, request: web.Request, disposition: str) -> web.StreamResponse:
        """Answers as Slack does: who may not read files is shown where to sign in, with a 200."""
        if not self._may_read(request):
            return web.Response(text=_SIGN_IN, content_type="text/html", headers=_HEADERS)
        try:
            file = readable_file(self._state, self._app, request.match_info["file"]).file
        except SlackError:
            return _missing()
        content = self._state.files.content(file.id)
        return _missing() if content is None else _file(file, content, disposition)

    def _may_read(self, request: web.Request) -> bool:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        try:
            self._credentials.check(token.strip() if scheme.lower() == "bearer" else "", app_token=False)
        except SlackError:
            return False
        return "files:read" in self._app.scopes


def _missing() -> web.Response:
    return web.Response(text=_NOT_FOUND, status=404, content_type="text/html", headers=_HEADERS)


def _file(file: File, content: bytes, disposition: str) -> web.Response:
    kind = file.mimetype if file.mimetype.isascii() and file.mimetype.isprintable() else "application/octet-stream"
    headers = _HEADERS | {"Content-Type": kind, "Content-Disposition": disposition}
    return web.Response(body=content, headers=headers)
