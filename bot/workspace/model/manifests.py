"""The manifests of apps, as a configuration token manages them, and the scopes that an installation granted."""

import copy
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import Json
from bot.workspace.model.errors import SlackError


@dataclass(frozen=True)
class NewApp:
    """An app that was just created."""

    app_id: str
    signing_secret: str = field(repr=False)


class AppManifests:
    """The apps' manifests. One app is the server's own: its scopes are those of its last installation. Other changes
    of its manifest have no effect on what it is sent.

    Args:
        app: The server's own app.
        signing_secret: Its signing secret.
        exists: Whether the app exists already. If not, the first app to be created is it.
    """

    def __init__(self, app: AppConfig, signing_secret: str, *, exists: bool) -> None:
        self._own = NewApp(app.app_id, signing_secret)
        self._manifests: dict[str, Json] = {app.app_id: app.to_manifest()} if exists else {}
        self.granted_scopes = app.scopes if exists else frozenset[str]()

    def export(self, app_id: str) -> Json:
        """Returns a manifest. Raises SlackError ``invalid_app_id``."""
        if app_id not in self._manifests:
            raise SlackError("invalid_app_id")
        return copy.deepcopy(self._manifests[app_id])

    def create(self, manifest: Json) -> NewApp:
        """Creates an app. Raises SlackError ``invalid_manifest``."""
        validate(manifest)
        is_own = self._own.app_id not in self._manifests
        app = self._own if is_own else NewApp(f"A{secrets.token_hex(5).upper()}", secrets.token_hex(16))
        self._manifests[app.app_id] = manifest
        return app

    def update(self, app_id: str, manifest: Json) -> bool:
        """Replaces a manifest, and returns whether its scopes changed. Raises SlackError."""
        before = self.export(app_id)
        validate(manifest)
        self._manifests[app_id] = manifest
        return _scopes(before) != _scopes(manifest)

    def install(self) -> None:
        """Grants all scopes that the manifest of the server's own app requests."""
        self.granted_scopes = _scopes(self.export(self._own.app_id))


def validate(manifest: Json) -> None:
    """Checks the rules of Slack's that a manifest breaks most often. Raises SlackError ``invalid_manifest``."""
    if errors := list(_errors(manifest)):
        raise SlackError("invalid_manifest", detail={"errors": errors})


def _errors(manifest: Mapping[str, Any]) -> Iterator[Json]:
    settings = manifest.get("settings") or {}
    if not (manifest.get("display_information") or {}).get("name"):
        yield {"message": "Missing required field: name", "pointer": "/display_information"}
    if settings.get("socket_mode_enabled"):
        return
    subscriptions, interactivity = (settings.get(name) or {} for name in ("event_subscriptions", "interactivity"))
    if subscriptions.get("bot_events") and not subscriptions.get("request_url"):
        message = "Event Subscription requires either Request URL or Socket Mode Enabled"
        yield {"message": message, "pointer": "/settings/event_subscriptions"}
    if interactivity.get("is_enabled") and not interactivity.get("request_url"):
        yield {"message": "Interactivity requires a Request URL", "pointer": "/settings/interactivity"}


def _scopes(manifest: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(((manifest.get("oauth_config") or {}).get("scopes") or {}).get("bot") or ())
