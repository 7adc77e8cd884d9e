"""Validates an app's blocks and views, and renders views as Slack's payloads do."""

import json
from typing import Annotated, Any, cast

from pydantic import Field, TypeAdapter, ValidationError

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.block_kit import MAX_BYTES, HomeView, MessageBlock, ModalView
from bot.workspace.model.entities import Json, SlackError, Team
from bot.workspace.model.views import View, ViewKind

MAX_BLOCKS = 50
MAX_MARKDOWN_CHARACTERS = 12_000
MAX_CHARACTERS = 13_000
"""In all blocks together. Slack's limit is undocumented; it was observed near 13,200."""
_blocks: TypeAdapter[list[Any]] = TypeAdapter(list[MessageBlock])


def checked_blocks(value: object) -> list[Json]:
    """Returns the blocks of a message after validating them.

    Raises:
        SlackError: ``invalid_blocks_format``, ``invalid_blocks`` with a sentence for each error, or
            ``msg_blocks_too_long``.
    """
    if not isinstance(value, list) or not all(isinstance(block, dict) for block in value):
        raise SlackError("invalid_blocks_format")
    blocks = cast("list[Json]", value)
    if faults := _faults_of_blocks(blocks):
        raise SlackError("invalid_blocks", detail={"errors": faults}, messages=faults)
    if sum(_text_length(block) for block in blocks) > MAX_CHARACTERS:
        raise SlackError("msg_blocks_too_long")
    return blocks


def _faults_of_blocks(blocks: list[Json]) -> list[str]:
    if len(blocks) > MAX_BLOCKS:
        return [f"no more than {MAX_BLOCKS} items allowed [json-pointer:/blocks]"]
    try:
        _blocks.validate_python(blocks)
    except ValidationError as error:
        return sentences(error, "/blocks")
    return repeated_ids(blocks, "/blocks") + _long_markdown(blocks)


def repeated_ids(blocks: list[Json], place: str) -> list[str]:
    """Returns the sentence for a repeated ``block_id``, if there is one. ``place`` is the blocks' JSON pointer."""
    given = [block["block_id"] for block in blocks if block.get("block_id")]
    if len(given) == len(set(given)):
        return []
    repeated = next(name for name in given if given.count(name) > 1)
    return [f"`block_id` is not unique: {repeated} [json-pointer:{place}]"]


def _long_markdown(blocks: list[Json]) -> list[str]:
    total = sum(len(block["text"]) for block in blocks if block["type"] == "markdown")
    return [f"must be less than {MAX_MARKDOWN_CHARACTERS + 1} characters [json-pointer:/blocks]"] * (
        total > MAX_MARKDOWN_CHARACTERS
    )


def sentences(error: ValidationError, place: str) -> list[str]:
    """Returns a sentence for each error; ``place`` is the JSON pointer of what was validated."""
    return [f"{fault['msg']} [json-pointer:{place}/{'/'.join(map(str, fault['loc']))}]" for fault in error.errors()]


def _text_length(value: object) -> int:
    """Returns the number of characters of all texts in a block."""
    if isinstance(value, dict):
        own = (value.get("text"), value.get("title"))
        inner = sum(_text_length(item) for item in value.values() if isinstance(item, dict | list))
        return inner + sum(len(text) for text in own if isinstance(text, str))
    if isinstance(value, list):
        return sum(_text_length(item) for item in value)
    return 0


_views: TypeAdapter[Any] = TypeAdapter(Annotated[ModalView | HomeView, Field(discriminator="type")])


def checked_view(value: object, kind: ViewKind) -> Json:
    """Returns a view after validating it.

    Raises:
        SlackError: ``invalid_arguments`` with a sentence for each error, or ``view_too_large``.
    """
    if not isinstance(value, dict):
        raise SlackError("invalid_arguments", messages=["must be an object [json-pointer:/view]"])
    if len(json.dumps(value)) > MAX_BYTES:
        raise SlackError("view_too_large")
    if faults := _faults_of_view(value, kind):
        raise SlackError("invalid_arguments", messages=faults)
    return cast("Json", value)


def _faults_of_view(view: Json, kind: ViewKind) -> list[str]:
    try:
        _views.validate_python(view)
    except ValidationError as error:
        return sentences(error, "/view")
    if view["type"] != kind:
        return [f"must be a valid value, such as '{kind}' [json-pointer:/view/type]"]
    return repeated_ids(view["blocks"], "/view/blocks")


def rendered_view(view: View, team: Team, app: AppConfig, *, with_values: bool = True) -> Json:
    """Returns a view as in answers and payloads. ``view_closed`` leaves out what was entered."""
    content = view.content
    return {
        "id": view.id,
        "team_id": team.id,
        "type": view.kind,
        "blocks": content["blocks"],
        "private_metadata": content.get("private_metadata") or "",
        "callback_id": view.callback_id,
        "state": {"values": view.values if with_values else {}},
        "hash": view.hash,
        "notify_on_close": view.notifies_on_close,
        "app_id": app.app_id,
        "app_installed_team_id": team.id,
        "bot_id": app.bot_id,
    }
