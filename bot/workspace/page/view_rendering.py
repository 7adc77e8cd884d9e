"""The app's modals and its Home tab as the page shows them."""

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import Json
from bot.workspace.model.views import View, ViewKind
from bot.workspace.people import Actor


def view_fields(viewer: Actor, app: AppConfig) -> Json:
    """Returns what a snapshot has of the views."""
    return {"modals": _modals(viewer), "home": _home(viewer, app)}


def view_frame(kind: ViewKind, viewer: Actor, app: AppConfig) -> Json:
    """Returns what a page is told when one of its person's views has changed."""
    if kind == "modal":
        return {"type": "modals", "views": _modals(viewer)}
    return {"type": "home", "home": _home(viewer, app)}


def _modals(viewer: Actor) -> list[Json]:
    return [_view(view) for view in viewer.views.stack()]


def _home(viewer: Actor, app: AppConfig) -> Json | None:
    """Returns the Home tab; None where there is none for this person."""
    if not app.home_tab or viewer.is_external:
        return None
    view = viewer.views.home()
    return {"view": _view(view) if view else None}


def _view(view: View) -> Json:
    """Returns a view without what is the app's own: its private metadata and its callback's id."""
    labels = {name: view.content.get(name) for name in ("title", "submit", "close")}
    body: Json = {"id": view.id, "hash": view.hash, **labels, "blocks": view.blocks}
    return body | {"values": view.values, "errors": view.errors}
