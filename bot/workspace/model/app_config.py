"""The installed app: its names, scopes, commands and events; and the manifests, which a configuration token manages."""

import copy
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from bot.workspace.model.entities import Json, Message, SlackError

DEFAULT_SCOPES = frozenset(
    (
        *("app_mentions:read", "channels:history", "channels:join", "channels:read", "chat:write", "commands"),
        *("files:read", "files:write", "groups:history", "groups:read", "im:history", "im:read", "im:write"),
        *("reactions:read", "reactions:write", "usergroups:read", "users:read"),
    )
)
DEFAULT_EVENTS = frozenset(
    (
        *("app_home_opened", "app_mention", "member_joined_channel", "message.channels", "message.groups"),
        *("message.im", "reaction_added", "reaction_removed"),
    )
)


@dataclass(frozen=True)
class SlashCommand:
    """A slash command. ``command`` includes the slash; ``url`` is for HTTP delivery only."""

    command: str
    description: str = ""
    usage_hint: str = ""
    should_escape: bool = False
    url: str | None = None


@dataclass(frozen=True)
class Shortcut:
    """An entry in a message's menu (``message``) or in the composer's menu (``global``)."""

    name: str
    type: Literal["message", "global"]
    callback_id: str
    description: str = ""


@dataclass(frozen=True)
class AppConfig:
    """What Slack knows about an app.

    Args:
        name: The bot's user name, as in ``@pagehand``.
        display_name: The name shown beside its messages.
        scopes: The bot scopes granted.
        commands: Its slash commands.
        shortcuts: Its shortcuts.
        events: Bot events subscribed to, as the manifest names them (``message.channels``).
        request_url: The URL for events, if they go by signed HTTP instead of Socket Mode.
        interactivity_url: The URL for interactions in that case.
        interactivity: Whether interactions are delivered at all.
        home_tab: Whether its App Home has a Home tab.
    """

    name: str = "pagehand"
    display_name: str = "Pagehand"
    scopes: frozenset[str] = DEFAULT_SCOPES
    commands: tuple[SlashCommand, ...] = (
        SlashCommand("/docs", "Hand over a documentation task", "what to do", should_escape=True),
    )
    shortcuts: tuple[Shortcut, ...] = (
        Shortcut("Hand to Pagehand", "message", "hand_to_pagehand", "Hand this message over as a task"),
        Shortcut("New task", "global", "new_task", "Hand over a documentation task"),
    )
    events: frozenset[str] = DEFAULT_EVENTS
    request_url: str | None = None
    interactivity_url: str | None = None
    interactivity: bool = True
    home_tab: bool = True
    app_id: str = "A0PAGEHND"
    bot_id: str = "B0PAGEHND"
    bot_user_id: str = "U0PAGEHND"

    @property
    def socket_mode(self) -> bool:
        return self.request_url is None

    def command(self, name: str) -> SlashCommand | None:
        return next((command for command in self.commands if command.command == name), None)

    def shortcut(self, callback_id: str) -> Shortcut | None:
        return next((shortcut for shortcut in self.shortcuts if shortcut.callback_id == callback_id), None)

    def message(self, channel: str, text: str, blocks: list[Json] | None, **fields: Any) -> Message:
        """Returns a new message by the app."""
        return Message(channel, "", self.bot_user_id, text, blocks, bot_id=self.bot_id, app_id=self.app_id, **fields)

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Self:
        """Returns the app that a parsed manifest describes.

        Raises:
            KeyError: The manifest has no display information or scopes.
            TypeError: A command or shortcut has an unknown field, or lacks its name.
        """
        features = manifest.get("features") or {}
        settings = manifest.get("settings") or {}
        subscriptions = settings.get("event_subscriptions") or {}
        interactivity = settings.get("interactivity") or {}
        title = manifest["display_information"]["name"]
        bot_name = (features.get("bot_user") or {}).get("display_name", title)
        http = not settings.get("socket_mode_enabled", False)
        return cls(
            name=bot_name.lower().replace(" ", ""),
            display_name=bot_name,
            scopes=frozenset(manifest["oauth_config"]["scopes"]["bot"]),
            commands=tuple(SlashCommand(**entry) for entry in features.get("slash_commands") or ()),
            shortcuts=tuple(Shortcut(**entry) for entry in features.get("shortcuts") or ()),
            events=frozenset(subscriptions.get("bot_events") or ()),
            request_url=subscriptions.get("request_url") if http else None,
            interactivity=bool(interactivity.get("is_enabled", False)),
            interactivity_url=interactivity.get("request_url") if http else None,
            home_tab=bool((features.get("app_home") or {}).get("home_tab_enabled", False)),
        )

    def to_manifest(self) -> dict[str, Any]:
        """Returns the manifest, as ``apps.manifest.export`` tells it."""
        return {
            "display_information": {"name": self.display_name},
            "features": {
                "app_home": {
                    "home_tab_enabled": self.home_tab,
                    "messages_tab_enabled": True,
                    "messages_tab_read_only_enabled": False,
                },
                "bot_user": {"display_name": self.display_name, "always_online": False},
                "slash_commands": [_without_none(vars(command)) for command in self.commands],
                "shortcuts": [dict(vars(shortcut)) for shortcut in self.shortcuts],
            },
            "oauth_config": {"scopes": {"bot": sorted(self.scopes)}},
            "settings": {
                "event_subscriptions": _without_none(
                    {"request_url": self.request_url, "bot_events": sorted(self.events)}
                ),
                "interactivity": _without_none(
                    {"is_enabled": self.interactivity, "request_url": self.interactivity_url}
                ),
                "org_deploy_enabled": False,
                "socket_mode_enabled": self.socket_mode,
                "token_rotation_enabled": False,
            },
        }


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


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
