"""What the page shows to one person, and the streams that send each change to every open page."""

import asyncio
from collections.abc import Iterator

from aiohttp import web

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import MAX_FILE_BYTES, MAX_FILES, Change, Channel, Json, Message, User
from bot.workspace.model.state import State
from bot.workspace.model.views import View, ViewChange
from bot.workspace.people import Actor


def _home(viewer: Actor, app: AppConfig) -> Json | None:
    """Returns the Home tab; None if there is none for this person."""
    if not app.home_tab or viewer.is_external:
        return None
    return {"view": _view(viewer.views.home())}


def _view(view: View | None) -> Json | None:
    """Returns a view without the app's private metadata and callback id."""
    if view is None:
        return None
    labels = {name: view.content.get(name) for name in ("title", "submit", "close")}
    body: Json = {"id": view.id, "hash": view.hash, **labels, "blocks": view.blocks}
    return body | {"values": view.values, "errors": view.errors}


class PageRenderer:
    """Builds the page's snapshots and the frames of its streams, limited to what the person may see.

    Args:
        state: The workspace.
        app: The app.
    """

    def __init__(self, state: State, app: AppConfig) -> None:
        self._state = state
        self._app = app

    def snapshot(self, viewer: Actor) -> Json:
        seen = [channel for channel in self._state.channels.values() if viewer.can_see(channel)]
        return {
            "team": {"id": self._state.team.id, "name": self._state.team.name},
            "me": self._user(viewer.user),
            "people": [self._user(user) for user in self._state.users.values()],
            "channels": [self._channel(channel, viewer) for channel in seen],
            "commands": [
                {"command": c.command, "description": c.description, "usage_hint": c.usage_hint}
                for c in self._app.commands
            ],
            "shortcuts": [vars(shortcut) for shortcut in self._app.shortcuts],
            "limits": {"files": MAX_FILES, "file_bytes": MAX_FILE_BYTES},
            "messages": {channel.id: self._messages(channel, viewer) for channel in seen},
            "modal": _view(viewer.views.top),
            "home": _home(viewer, self._app),
        }

    def view_frame(self, change: ViewChange, viewer: Actor) -> Json:
        """Returns the frame for a change of the person's views."""
        if change.kind == "modal":
            return {"type": "modal", "view": _view(viewer.views.top)}
        return {"type": "home", "home": _home(viewer, self._app)}

    def frames(self, change: Change, viewer: Actor) -> Iterator[Json]:
        """Yields the frames for one page after a change."""
        channel = self._state.channels[change.channel]
        if not viewer.can_see(channel):
            if change.kind == "member_left" and change.actor == viewer.id:
                yield {"type": "channel", "channel": self._channel(channel, viewer)}
            return
        message = change.message
        if message is None:
            yield {"type": "channel", "channel": self._channel(channel, viewer)}
            if change.kind == "member_joined" and change.actor == viewer.id:
                for each in self._messages(channel, viewer):
                    yield {"type": "message", "message": each}
        elif message.ephemeral_to not in {None, viewer.id}:
            return
        elif change.kind == "message_deleted":
            yield {"type": "deleted", "channel": channel.id, "ts": message.ts}
            yield from self._root(message, channel)
        else:
            yield {"type": "message", "message": self._message(message)}
            yield from self._root(message, channel)

    def _root(self, message: Message, channel: Channel) -> Iterator[Json]:
        """Yields the thread's first message again, since it shows the number of replies."""
        if message.is_reply and message.thread_ts and message.ephemeral_to is None:
            root = self._state.conversation(channel).get(message.thread_ts)
            if root:
                yield {"type": "message", "message": self._message(root)}

    def _messages(self, channel: Channel, viewer: Actor) -> list[Json]:
        shown = [*self._state.conversation(channel), *self._state.ephemerals(channel, viewer.id)]
        return [self._message(message) for message in sorted(shown, key=lambda m: float(m.ts))]

    def _user(self, user: User) -> Json:
        return {
            "id": user.id,
            "name": user.name,
            "real_name": user.real_name,
            "is_external": user.team_id != self._state.team.id,
            "is_admin": user.is_admin,
            "is_guest": user.is_guest,
            "is_bot": user.is_bot,
            "color": user.color,
        }

    def _channel(self, channel: Channel, viewer: Actor) -> Json:
        body: Json = {
            "id": channel.id,
            "name": channel.name,
            "is_private": channel.is_private,
            "is_im": channel.is_im,
            "is_member": viewer.id in channel.members,
            "bot_is_member": self._app.bot_user_id in channel.members,
            "is_ext_shared": channel.is_ext_shared,
            "is_archived": channel.is_archived,
            "topic": channel.topic,
        }
        if channel.is_im:
            body["user"] = next((user for user in channel.members if user != viewer.id), viewer.id)
        return body

    def _message(self, message: Message) -> Json:
        conversation = self._state.conversation(self._state.channels[message.channel])
        return {
            "channel": message.channel,
            "ts": message.ts,
            "user": message.user,
            "text": message.text,
            "blocks": message.blocks,
            "thread_ts": message.thread_ts,
            "reply_count": 0 if message.is_reply else conversation.reply_count(message.ts),
            "reactions": [{"name": name, "users": list(users)} for name, users in message.reactions.items()],
            "edited": message.edited_ts is not None,
            "ephemeral": message.ephemeral_to is not None,
            "subtype": message.subtype,
            "bot_id": message.bot_id,
            "attachments": message.attachments,
            "files": [
                {"id": file.id, "name": file.name, "mimetype": file.mimetype, "size": file.size}
                for file in message.files or ()
            ],
        }


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
        frames: Frames = asyncio.Queue(1_000)
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
