"""The web page and what it talks to: only from this machine, only from the page itself."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol
from urllib.parse import urlencode

from aiohttp import web

from bot.workspace.app_config import AppConfig
from bot.workspace.arguments import Arguments
from bot.workspace.errors import SlackError
from bot.workspace.models import Change, Json
from bot.workspace.page_rendering import PageRendering
from bot.workspace.people import Actor
from bot.workspace.refusals import words_for
from bot.workspace.state import State

PAGE = Path(__file__).parent / "page"
LOCAL_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
WAITING_FRAMES = 1_000
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Deed = Callable[[Actor, Arguments], Awaitable[Json]]


class Workspace(Protocol):
    """What the page needs of the server."""

    state: State
    app: AppConfig

    @property
    def connected(self) -> bool: ...

    def person(self, name: str) -> Actor: ...


class Page:
    """The page's endpoints.

    Args:
        workspace: The server they are part of.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._rendering = PageRendering(workspace.state, workspace.app)
        self._streams: dict[asyncio.Queue[Json | None], Actor] = {}

    def routes(self) -> list[web.AbstractRouteDef]:
        deeds: dict[str, Deed] = {
            "send": self._send,
            "press": self._press,
            "edit": self._edit,
            "delete": self._delete,
            "react": self._react,
            "join": self._join,
        }
        return [
            web.get("/", guarded(self._index)),
            web.get(r"/archives/{channel:\w+}/{message:p\d+}", guarded(self._permalink)),
            web.get(r"/page/static/{name:[a-z][a-z0-9_-]*\.[a-z0-9]+}", guarded(self._static)),
            web.get("/page/snapshot", guarded(self._snapshot)),
            web.get("/page/stream", guarded(self._stream)),
            *(web.post(f"/page/{name}", guarded(self._doing(deed))) for name, deed in deeds.items()),
        ]

    # files

    async def _index(self, _: web.Request) -> web.StreamResponse:
        return web.FileResponse(PAGE / "index.html")

    async def _static(self, request: web.Request) -> web.StreamResponse:
        path = PAGE / request.match_info["name"]
        if not path.is_file():
            raise web.HTTPNotFound
        return web.FileResponse(path)

    async def _permalink(self, request: web.Request) -> web.StreamResponse:
        """A message's link leads to the page, with its channel and thread open."""
        packed = request.match_info["message"]
        ts = request.query.get("thread_ts") or f"{packed[1:-6]}.{packed[-6:]}"
        place = {"channel": request.match_info["channel"], "thread": ts}
        raise web.HTTPFound(f"/#{urlencode(place)}")

    # seeing

    async def _snapshot(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self._rendering.snapshot(self._viewer(request)))

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        viewer = self._viewer(request)
        socket = web.WebSocketResponse(heartbeat=30)
        await socket.prepare(request)
        frames: asyncio.Queue[Json | None] = asyncio.Queue(WAITING_FRAMES)
        self._streams[frames] = viewer
        frames.put_nowait(self._link())
        sending = asyncio.create_task(_pump(socket, frames))
        try:
            async for _ in socket:
                continue
        finally:
            del self._streams[frames]
            sending.cancel()
        return socket

    def _viewer(self, request: web.Request) -> Actor:
        """The person one acts as; the first one there is when none is named."""
        people = self._workspace.state.people.values()
        first = next(person.id for person in people if not person.is_bot)
        try:
            return self._actor(request.query.get("as") or first)
        except SlackError:
            raise web.HTTPNotFound(text="There is nobody of that id in this workspace.") from None

    def _actor(self, user: str) -> Actor:
        person = self._workspace.state.people.get(user)
        if person is None or person.is_bot:
            raise SlackError("user_not_found")
        return self._workspace.person(person.id)

    def tell(self, change: Change) -> None:
        """Send a change to every page whose person may see it."""
        for frames, viewer in tuple(self._streams.items()):
            for frame in self._rendering.frames(change, viewer):
                self._push(frames, frame)

    def tell_link(self) -> None:
        """Tell every page whether an app is connected."""
        for frames in tuple(self._streams):
            self._push(frames, self._link())

    def close(self) -> None:
        for frames in tuple(self._streams):
            self._push(frames, None)

    def _link(self) -> Json:
        return {"type": "link", "connected": self._workspace.connected}

    def _push(self, frames: asyncio.Queue[Json | None], frame: Json | None) -> None:
        """A page that does not read is let go; it fetches all anew when it comes back."""
        if frames.full():
            while not frames.empty():
                frames.get_nowait()
            frame = None
        frames.put_nowait(frame)

    # doing

    def _doing(self, deed: Deed) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                arguments = Arguments(await _json_body(request))
                return web.json_response({"ok": True} | await deed(self._actor(arguments.text("as")), arguments))
            except SlackError as error:
                return web.json_response({"ok": False, "error": words_for(error.code)})

        return handle

    async def _send(self, actor: Actor, given: Arguments) -> Json:
        text, thread_ts = given.text("text"), given.text("thread_ts") or None
        if text.startswith("/") and not thread_ts:
            return await self._command(actor, given.text("channel"), text)
        broadcast = given.flag("broadcast")
        message = await actor.say(given.text("channel"), text, thread_ts=thread_ts, broadcast=broadcast)
        return {"ts": message.ts}

    async def _command(self, actor: Actor, channel: str, text: str) -> Json:
        name, _, rest = text.strip().partition(" ")
        if name == "/invite":
            await actor.invite(channel, rest.strip())
            return {}
        if self._workspace.app.command(name) is None:
            return {"ok": False, "error": f"{name[:50]} is not a valid command."}
        await actor.command(channel, name, rest.strip())
        return {}

    async def _press(self, actor: Actor, given: Arguments) -> Json:
        block, value = given.text("block_id") or None, given.text("value") or None
        place, ts = given.text("channel"), given.text("ts")
        answer = await actor.press(place, ts, given.text("action_id"), block_id=block, value=value)
        return {} if answer.ok else {"ok": False, "error": words_for(answer.error)}

    async def _edit(self, actor: Actor, given: Arguments) -> Json:
        await actor.edit(given.text("channel"), given.text("ts"), given.text("text"))
        return {}

    async def _delete(self, actor: Actor, given: Arguments) -> Json:
        await actor.delete(given.text("channel"), given.text("ts"))
        return {}

    async def _react(self, actor: Actor, given: Arguments) -> Json:
        place, ts, name = given.text("channel"), given.text("ts"), given.text("name")
        try:
            await actor.react(place, ts, name)
        except SlackError as error:
            if error.code != "already_reacted":
                raise
            await actor.unreact(place, ts, name)
        return {}

    async def _join(self, actor: Actor, given: Arguments) -> Json:
        await actor.join(given.text("channel"))
        return {}


def guarded(handler: Handler) -> Handler:
    """Let only this machine's own page in: a foreign Host or Origin is refused, and nothing may frame it."""

    async def handle(request: web.Request) -> web.StreamResponse:
        if not _is_own(request):
            return web.Response(status=403, text="This page answers only at its own address.", headers=HEADERS)
        try:
            response = await handler(request)
        except web.HTTPException as error:
            error.headers.update(HEADERS)
            raise
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    return handle


def _is_own(request: web.Request) -> bool:
    host = request.host
    name, _, port = host.rpartition(":")
    own_port = request.transport and request.transport.get_extra_info("sockname")[1]
    if name not in LOCAL_HOSTS or port != str(own_port):
        return False
    origin = request.headers.get("Origin")
    followed_link = request.method == "GET" and request.headers.get("Sec-Fetch-Mode") == "navigate"
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in {"same-origin", "none"} and not followed_link:
        return False
    return origin is None or origin == f"http://{host}"


async def _json_body(request: web.Request) -> Json:
    if request.content_type != "application/json":
        raise SlackError("invalid_post_type")
    try:
        body = json.loads(await request.read())
    except web.HTTPRequestEntityTooLarge:
        raise SlackError("msg_too_long") from None
    except (ValueError, RecursionError, web.RequestPayloadError):
        raise SlackError("invalid_json") from None
    if not isinstance(body, dict):
        raise SlackError("json_not_object")
    return body


async def _pump(socket: web.WebSocketResponse, frames: asyncio.Queue[Json | None]) -> None:
    """Send what comes; None ends the connection."""
    try:
        while (frame := await frames.get()) is not None:
            await socket.send_json(frame)
    except ConnectionError:
        return
    await socket.close()
