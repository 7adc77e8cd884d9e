"""Files as the page shows and hands them out: only those in a conversation that the person sees."""

from urllib.parse import quote

from aiohttp import web

from bot.workspace.model.entities import File, Message
from bot.workspace.model.state import State
from bot.workspace.people import Actor

PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What the browser may show; all else is for keeping, and is never run as a page of ours."""


class Downloads:
    """The files.

    Args:
        state: The workspace.
    """

    def __init__(self, state: State) -> None:
        self._state = state

    def answer(self, file_id: str, viewer: Actor) -> web.StreamResponse:
        """Returns a file's content.

        Raises:
            HTTPNotFound: There is no such file, or it is in no conversation that this person sees.
        """
        file, content = self._state.files.get(file_id), self._state.files.content(file_id)
        if file is None or content is None or not self._is_seen(file, viewer):
            raise web.HTTPNotFound
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(file.name, safe='')}"}
        content_type = file.mimetype if file.mimetype in PICTURES else "application/octet-stream"
        return web.Response(body=content, content_type=content_type, headers=headers)

    def _is_seen(self, file: File, viewer: Actor) -> bool:
        seen = (channel for channel in self._state.channels.values() if viewer.can_see(channel))
        return any(file.id in _file_ids(m) for channel in seen for m in self._state.conversation(channel))


def _file_ids(message: Message) -> set[str]:
    """Returns the ids of a message's files, with those of the messages that were shared in it."""
    shared = (file for attachment in message.attachments or () for file in attachment.get("files") or ())
    return {file.id for file in message.files or ()} | {str(file.get("id")) for file in shared}
