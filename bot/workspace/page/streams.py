"""The page's WebSocket streams: every open page gets the changes that its person may see."""

import asyncio

from aiohttp import web

from bot.workspace.model.entities import Change, Json
from bot.workspace.model.views import ViewChange
from bot.workspace.page.rendering import PageRenderer
from bot.workspace.people import Actor

MAX_QUEUED_FRAMES = 1_000
HEARTBEAT_SECONDS = 30
Frames = asyncio.Queue[Json | None]
"""The queued frames for one page; None ends its stream."""


class Streams:
    """The open pages.

    Args:
        renderer: Builds the frames.
    """

    def __init__(self, renderer: PageRenderer) -> None:
        self._renderer = renderer
        self._viewers: dict[Frames, Actor] = {}
        self._tip = ""

    async def serve(self, request: web.Request, viewer: Actor, *, connected: bool) -> web.StreamResponse:
        """Serves one page's stream until the page closes it."""
        socket = web.WebSocketResponse(heartbeat=HEARTBEAT_SECONDS)
        await socket.prepare(request)
        frames: Frames = asyncio.Queue(MAX_QUEUED_FRAMES)
        self._viewers[frames] = viewer
        frames.put_nowait({"type": "link", "connected": connected})
        if self._tip:
            frames.put_nowait({"type": "tip", "text": self._tip})
        sending = asyncio.create_task(_send_all(socket, frames))
        try:
            async for _ in socket:
                continue
        finally:
            del self._viewers[frames]
            sending.cancel()
        return socket

    def show_change(self, change: Change) -> None:
        """Sends a change to the page of everyone who may see it."""
        for frames, viewer in tuple(self._viewers.items()):
            for frame in self._renderer.frames(change, viewer):
                _push(frames, frame)

    def show_view_change(self, change: ViewChange) -> None:
        """Sends a person's modals or Home tab to all their pages."""
        for frames, viewer in tuple(self._viewers.items()):
            if viewer.id == change.user:
                _push(frames, self._renderer.view_frame(change, viewer))

    def show_link(self, *, connected: bool) -> None:
        """Tells every page whether an app is connected."""
        self._push_to_all({"type": "link", "connected": connected})

    def show_tip(self, text: str) -> None:
        """Shows a line above every page, in Slack's format; none if it is empty."""
        self._tip = text
        self._push_to_all({"type": "tip", "text": text})

    def close(self) -> None:
        self._push_to_all(None)

    def _push_to_all(self, frame: Json | None) -> None:
        for frames in tuple(self._viewers):
            _push(frames, frame)


def _push(frames: Frames, frame: Json | None) -> None:
    """Queues a frame. A page that does not read is disconnected; it gets a new snapshot when it reconnects."""
    if frames.full():
        while not frames.empty():
            frames.get_nowait()
        frame = None
    frames.put_nowait(frame)


async def _send_all(socket: web.WebSocketResponse, frames: Frames) -> None:
    try:
        while (frame := await frames.get()) is not None:
            await socket.send_json(frame)
    except ConnectionError:
        return
    await socket.close()
