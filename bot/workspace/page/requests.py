"""What the page's calls have in common: a JSON object in, and an outcome in words for a person."""

import json

from aiohttp import web

from bot.workspace.delivery.interactions import InteractionResult
from bot.workspace.model.entities import Json
from bot.workspace.model.errors import SlackError
from bot.workspace.page.error_messages import error_message


def failure(error: SlackError) -> Json:
    return {"ok": False, "error": error_message(error.code)}


def outcome(result: InteractionResult) -> Json:
    """Returns what came of something that the app answers; what is wrong with inputs by their blocks' ids."""
    if result.errors:
        return {"ok": False, "error": "", "errors": dict(result.errors)}
    return {} if result.ok else {"ok": False, "error": error_message(result.error)}


async def json_body(request: web.Request) -> Json:
    """Returns the JSON object of a call.

    Raises:
        SlackError: It is none.
    """
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
