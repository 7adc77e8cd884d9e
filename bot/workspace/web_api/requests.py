"""Parses Web API requests into their token and arguments."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web

from bot.workspace.model.entities import Json
from bot.workspace.model.errors import SlackError
from bot.workspace.wire.arguments import Arguments

_FORM_FIELDS = 1000


async def read_arguments(request: web.Request) -> tuple[str, Arguments]:
    """Returns the token (empty if there is none) and the other arguments.

    Raises:
        SlackError: ``invalid_json``, ``json_not_object``, ``invalid_form_data``, ``invalid_post_type``.
    """
    values: Json = dict(request.query)
    if request.method == "POST":
        values |= await _body(request)
    argument = values.pop("token", "")
    header = request.headers.get("Authorization", "")
    scheme, _, bearer = header.partition(" ")
    token = bearer.strip() if scheme.lower() == "bearer" else ""
    return token or (argument if isinstance(argument, str) else ""), Arguments(values)


async def _body(request: web.Request) -> Mapping[str, Any]:
    kind = request.content_type
    if not request.body_exists:
        return {}
    try:
        raw = await request.read()
    except web.RequestPayloadError:
        raise SlackError("invalid_post_type") from None
    if kind == "application/json":
        return _json_object(raw)
    if kind in {"application/x-www-form-urlencoded", "application/octet-stream"}:
        return _form(raw)
    raise SlackError("invalid_post_type")


def _json_object(raw: bytes) -> Json:
    try:
        body = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        raise SlackError("invalid_json") from None
    if not isinstance(body, dict):
        raise SlackError("json_not_object")
    return body


def _form(raw: bytes) -> Json:
    try:
        return dict(parse_qsl(raw.decode("utf-8"), keep_blank_values=False, max_num_fields=_FORM_FIELDS))
    except ValueError:
        raise SlackError("invalid_form_data") from None


@dataclass
class CallRecord:
    """The record of one call.

    Args:
        method: Such as ``chat.postMessage``.
        args: Its arguments, without the token.
        at: When it arrived, in seconds.
        applied: Whether it was carried out, even if the answer then failed.
        error: Slack's error code if it was refused, else None.
        response: The answer, even if it did not get through.
    """

    method: str
    args: Json
    at: float
    applied: bool = False
    error: str | None = None
    response: Json = field(default_factory=dict)
