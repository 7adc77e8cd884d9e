"""The web page's endpoints: static files, the data that it shows, what people do on it, and downloads."""

from pathlib import Path
from urllib.parse import quote, urlencode

from aiohttp import web

from bot.workspace.delivery.deliveries import Transport
from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import Message, SlackError
from bot.workspace.model.state import State
from bot.workspace.page.operations import Operations
from bot.workspace.page.rendering import PageRenderer, Streams
from bot.workspace.page.requests import Uploads, guarded
from bot.workspace.people import Actor, WorkspacePeople

PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Types that the browser may show. Everything else is downloaded, so that it cannot run as a page of this origin."""


def _file_ids(message: Message) -> set[str]:
    """Returns the ids of a message's files, including those that its blocks show, and of messages shared in it."""
    shared = (file for attachment in message.attachments or () for file in attachment.get("files") or ())
    images = (block["slack_file"]["id"] for block in message.blocks or () if block["type"] == "image")
    return {file.id for file in message.files or ()} | {str(file.get("id")) for file in shared} | {*images}


STATIC = Path(__file__).parent / "static"
_STATIC_NAME = r"{name:(?:[a-z]+/)?[a-z][a-z0-9_-]*\.[a-z0-9]+}"


class Page:
    """The page.

    Args:
        state: The workspace.
        app: The app.
        people: The people who use the page.
        transport: The transport to the app; the page shows whether it is connected.
    """

    def __init__(self, state: State, app: AppConfig, people: WorkspacePeople, transport: Transport) -> None:
        self._people = people
        self._transport = transport
        self._state = state
        self._renderer = PageRenderer(state, app)
        self.streams = Streams(self._renderer)
        self._uploads = Uploads(people)
        self._operations = Operations(people, app, self._uploads)

    def routes(self) -> list[web.AbstractRouteDef]:
        return [
            web.get("/", guarded(self._index)),
            web.get(r"/archives/{channel:\w+}/{message:p\d+}", guarded(self._permalink)),
            web.get(f"/page/static/{_STATIC_NAME}", guarded(self._static)),
            web.get("/page/snapshot", guarded(self._snapshot)),
            web.get("/page/stream", guarded(self._stream)),
            web.get(r"/page/files/{file:\w+}", guarded(self._file)),
            web.post("/page/upload", guarded(self._uploads.receive)),
            *(web.post(f"/page/{name}", guarded(handler)) for name, handler in self._operations.handlers().items()),
        ]

    async def _index(self, _: web.Request) -> web.StreamResponse:
        return web.FileResponse(STATIC / "index.html")

    async def _static(self, request: web.Request) -> web.StreamResponse:
        path = STATIC / request.match_info["name"]
        if not path.is_file():
            raise web.HTTPNotFound
        return web.FileResponse(path)

    async def _permalink(self, request: web.Request) -> web.StreamResponse:
        """Redirects a message's permalink to the page with its channel and thread open."""
        packed = request.match_info["message"]
        ts = request.query.get("thread_ts") or f"{packed[1:-6]}.{packed[-6:]}"
        place = {"channel": request.match_info["channel"], "thread": ts}
        raise web.HTTPFound(f"/#{urlencode(place)}")

    async def _snapshot(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self._renderer.snapshot(self._viewer(request)))

    async def _file(self, request: web.Request) -> web.StreamResponse:
        """Returns the content of a file in a conversation that the person can see, also if it was shared there."""
        file, viewer = self._state.files.get(request.match_info["file"]), self._viewer(request)
        seen = (channel for channel in self._state.channels.values() if viewer.can_see(channel))
        if file is None or not any(file.id in _file_ids(m) for c in seen for m in self._state.conversation(c)):
            raise web.HTTPNotFound
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(file.name, safe='')}"}
        content_type = file.mimetype if file.mimetype in PICTURES else "application/octet-stream"
        return web.Response(body=self._state.files.content(file.id), content_type=content_type, headers=headers)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        return await self.streams.serve(request, self._viewer(request), connected=self._transport.connected)

    def _viewer(self, request: web.Request) -> Actor:
        """Returns the person that the page acts as; by default the first one."""
        try:
            return self._people.human(request.query.get("as") or self._people.first_human().id)
        except SlackError:
            raise web.HTTPNotFound(text="There is nobody with that id in this workspace.") from None
