"""Uploads: the browser sends each file on its own and then a message with the ids of the uploads."""

import re
from uuid import uuid4

from aiohttp import web

from bot.workspace.model.errors import SlackError
from bot.workspace.model.files import MAX_FILE_BYTES, Upload
from bot.workspace.page.requests import failure
from bot.workspace.people import Actor, WorkspacePeople

MAX_WAITING = 40
"""Files without a message yet; when there are more, the oldest is dropped."""
_MIMETYPE = re.compile(r"[a-z]{1,20}/[a-z0-9.+-]{1,80}", re.ASCII)


class Uploads:
    """Uploaded files that have no message yet.

    Args:
        people: The people who upload.
    """

    def __init__(self, people: WorkspacePeople) -> None:
        self._people = people
        self._waiting: dict[str, tuple[str, Upload]] = {}
        """Who uploaded what, by id."""

    async def receive(self, request: web.Request) -> web.StreamResponse:
        """Receives a file: the content as the body, the name and type in the query."""
        try:
            actor = self._people.human(request.query.get("as", ""))
            upload = Upload(request.query.get("name", ""), await _content(request), _mimetype(request))
        except SlackError as error:
            return web.json_response(failure(error))
        while len(self._waiting) >= MAX_WAITING:
            del self._waiting[next(iter(self._waiting))]
        upload_id = uuid4().hex
        self._waiting[upload_id] = actor.id, upload
        return web.json_response({"ok": True, "upload": upload_id})

    def take(self, actor: Actor, upload_ids: list[str]) -> list[Upload]:
        """Removes and returns files that this person uploaded.

        Raises:
            SlackError: ``file_not_found`` if one of them is missing.
        """
        if any(self._waiting.get(upload_id, ("",))[0] != actor.id for upload_id in upload_ids):
            raise SlackError("file_not_found")
        return [self._waiting.pop(upload_id)[1] for upload_id in dict.fromkeys(upload_ids)]


async def _content(request: web.Request) -> bytes:
    if request.content_type != "application/octet-stream":
        raise SlackError("invalid_post_type")
    try:
        content = await request.read()
    except (web.HTTPRequestEntityTooLarge, web.RequestPayloadError):
        raise SlackError("file_too_large") from None
    if len(content) > MAX_FILE_BYTES:
        raise SlackError("file_too_large")
    return content


def _mimetype(request: web.Request) -> str | None:
    """Returns the type that the browser gave; None if it gave none."""
    given = request.query.get("type", "")
    return given if _MIMETYPE.fullmatch(given) else None
