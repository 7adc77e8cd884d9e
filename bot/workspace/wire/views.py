"""Validates an app's views, and renders views as Slack's payloads do."""

import json
from typing import Annotated, Any, cast

from pydantic import Field, TypeAdapter, ValidationError

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.block_kit import MAX_BYTES, HomeView, ModalView
from bot.workspace.model.entities import Json, Team
from bot.workspace.model.errors import SlackError
from bot.workspace.model.views import View, ViewKind
from bot.workspace.wire.blocks import repeated_ids, sentences

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
    if faults := _faults(value, kind):
        raise SlackError("invalid_arguments", messages=faults)
    return cast("Json", value)


def _faults(view: Json, kind: ViewKind) -> list[str]:
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
