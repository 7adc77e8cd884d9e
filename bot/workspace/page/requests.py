"""What the page's endpoints share: who may call them, the JSON and files they take, and outcomes in words."""

import re
from collections.abc import Awaitable, Callable
from uuid import uuid4

from aiohttp import web

from bot.workspace.delivery.deliveries import InteractionResult
from bot.workspace.model.entities import MAX_FILE_BYTES, Json, SlackError, Upload
from bot.workspace.people import Actor, WorkspacePeople
from bot.workspace.wire.arguments import json_object

LOCAL_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
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


def guarded(handler: Handler) -> Handler:
    """Returns the handler behind a guard that refuses other hosts and origins and forbids framing the page."""

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


_MESSAGES = {
    "action_not_found": "That button or choice is no longer there.",
    "cant_delete_message": "You can delete only your own messages.",
    "channel_not_found": "There is no such channel, or you cannot see it.",
    "dispatch_failed": "No app is connected, so nothing answered.",
    "dispatch_unknown_error": "The app sent an answer that Slack does not understand.",
    "file_not_found": "That file is no longer there. Attach it again.",
    "file_too_large": "That file is too large.",
    "invalid_name": "That name cannot be used.",
    "invalid_option": "That choice is no longer offered.",
    "is_archived": "This channel is archived.",
    "message_not_found": "That message is no longer there.",
    "msg_too_long": "That is too long for a message.",
    "no_text": "There is nothing to send.",
    "not_found": "That is no longer open.",
    "not_in_channel": "Join the channel first.",
    "operation_timeout": "The app did not answer in time.",
    "shortcut_not_found": "That shortcut is no longer there, or not for you.",
    "storage_limit_reached": "This workspace has no space for more files.",
    "thread_not_found": "That thread is no longer there.",
    "user_not_found": "There is nobody with that name here.",
}


def error_message(code: str) -> str:
    return _MESSAGES.get(code, f"That did not work ({code}).")


def failure(error: SlackError) -> Json:
    return {"ok": False, "error": error_message(error.code)}


def outcome(result: InteractionResult) -> Json:
    """Returns the outcome of an interaction; errors in inputs are by block id."""
    if result.errors:
        return {"ok": False, "error": "", "errors": dict(result.errors)}
    return {} if result.ok else {"ok": False, "error": error_message(result.error)}


async def json_body(request: web.Request) -> Json:
    """Returns the JSON object in a request.

    Raises:
        SlackError: The body is something else.
    """
    if request.content_type != "application/json":
        raise SlackError("invalid_post_type")
    try:
        return json_object(await request.read())
    except web.HTTPRequestEntityTooLarge:
        raise SlackError("msg_too_long") from None
    except web.RequestPayloadError:
        raise SlackError("invalid_json") from None


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
