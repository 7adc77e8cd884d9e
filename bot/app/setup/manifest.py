"""The Slack app's manifest: manifest.yml, changed for a mode, a command and fewer features, or merged with an app's."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from bot.app.settings.features import Feature, scopes_and_events
from bot.errors import ConfigError
from bot.runtime.http.proxies import is_this_machine
from bot.runtime.json_fields import object_at, objects_at, text_at
from bot.runtime.text import printable_line

Manifest = dict[str, Any]
_LONGEST = 120
EVENTS_PATH = "/slack/events"
_COMMAND = re.compile(r"/[\w.-]{1,31}")
_URL = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+[A-Za-z0-9/._~-]*")


@dataclass(frozen=True)
class ManifestChoices:
    """What a manifest is for.

    Attributes:
        command: The slash command.
        address: Where Slack sends signed HTTP requests: `https://host`, or the whole request URL. Empty: Socket Mode.
        without: The features to leave out.
    """

    command: str = "/docs"
    address: str = ""
    without: frozenset[Feature] = frozenset()

    def __post_init__(self) -> None:
        faults = [*_command_faults(self.command), *_address_faults(self.address)]
        if faults:
            raise ConfigError(faults)

    @property
    def request_url(self) -> str:
        """The URL for all that Slack sends; empty with Socket Mode."""
        address = self.address.rstrip("/")
        return address if not address or address.endswith(EVENTS_PATH) else f"{address}{EVENTS_PATH}"


def manifest_text(choices: ManifestChoices) -> str:
    """Returns the manifest in YAML; by default manifest.yml to the letter."""
    if choices == ManifestChoices():
        return template()
    return yaml.safe_dump(manifest_for(choices), sort_keys=False, allow_unicode=True, width=1000)


def manifest_for(choices: ManifestChoices) -> dict[str, Any]:
    """Returns the manifest."""
    manifest: dict[str, Any] = yaml.safe_load(template())
    scopes, settings, features = manifest["oauth_config"]["scopes"], manifest["settings"], manifest["features"]
    events, (command,), url = settings["event_subscriptions"], features["slash_commands"], choices.request_url
    left_out = scopes_and_events(choices.without)
    for names in (*scopes.values(), events["bot_events"]):
        names[:] = [name for name in names if name not in left_out]
    if not scopes["bot_optional"]:
        del scopes["bot_optional"]
    if Feature.DIRECT_MESSAGES in choices.without:
        features["app_home"]["messages_tab_read_only_enabled"] = True
    command["command"] = choices.command
    if url:
        command["url"] = events["request_url"] = settings["interactivity"]["request_url"] = url
        settings["socket_mode_enabled"] = False
    return manifest


def template() -> str:
    """Returns manifest.yml: the package's own or, in a checkout, the one at the top level."""
    packaged = files("bot") / "manifest.yml"
    path = packaged if packaged.is_file() else Path(__file__).parents[3] / "manifest.yml"
    return path.read_text(encoding="utf-8")


def _command_faults(command: str) -> list[str]:
    if _COMMAND.fullmatch(command):
        return []
    return ["the command must be a slash and one word of at most 31 letters, digits, dots, hyphens and underscores"]


def _address_faults(address: str) -> list[str]:
    if not address:
        return []
    if not _URL.fullmatch(address) or not urlsplit(address).hostname:
        return ["the address must be a URL like https://pagehand.example.org, without ? and #"]
    if urlsplit(address).scheme != "https" and not is_this_machine(urlsplit(address).hostname or ""):
        return ["the address must begin with https://: Slack sends to no other"]
    return []


def merge_manifest(existing: Mapping[str, Any], wanted: Mapping[str, Any]) -> Manifest:
    """Returns the existing manifest with all that is wanted.

    Names, descriptions, colors, further scopes, events, commands and redirect URLs stay as they are. What Pagehand
    cannot do without (Socket Mode or request URLs, interactivity, the Home and Messages tabs) is set.
    """
    merged: Manifest = _filled(existing, wanted)
    features = merged["features"]
    features["app_home"] |= object_at(wanted["features"], "app_home")
    for name, key, ours in (("slash_commands", "command", ("url", "should_escape")), ("shortcuts", "callback_id", ())):
        features[name] = _entries(objects_at(existing.get("features"), name), wanted["features"][name], key, ours)
    merged["oauth_config"]["scopes"] |= _scopes(existing, wanted)
    settings, wanted_settings = merged["settings"], wanted["settings"]
    settings["socket_mode_enabled"] = wanted_settings["socket_mode_enabled"]
    settings["interactivity"] |= wanted_settings["interactivity"]
    subscriptions = wanted_settings["event_subscriptions"]
    events = _united(object_at(settings, "event_subscriptions").get("bot_events"), subscriptions["bot_events"])
    settings["event_subscriptions"] |= subscriptions | {"bot_events": events}
    return merged


def manifest_changes(before: Mapping[str, Any], after: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yields a line for each difference: what is added, removed or changed, and where."""
    for key in dict.fromkeys((*before, *after)):
        old, new, place = before.get(key), after.get(key), f"{path}{key}"
        if isinstance(new, dict):
            yield from manifest_changes(old if isinstance(old, dict) else {}, new, f"{place}.")
        elif isinstance(new, list):
            yield from _list_changes(old if isinstance(old, list) else [], new, place)
        elif old != new:
            yield f"{place}: {_shown(new)}" if old is None else f"{place}: {_shown(old)} -> {_shown(new)}"


def scopes_of(manifest: Mapping[str, Any]) -> frozenset[str]:
    """Returns the bot scopes that a manifest requests."""
    return frozenset(_texts(object_at(object_at(manifest, "oauth_config"), "scopes").get("bot")))


def _filled(existing: Mapping[str, Any], wanted: Mapping[str, Any]) -> Manifest:
    """Returns the existing object with missing values added."""
    filled = dict(existing)
    for key, value in wanted.items():
        if isinstance(value, dict):
            filled[key] = _filled(object_at(existing, key), value)
        else:
            filled.setdefault(key, value)
    return filled


def _entries(existing: Sequence[Manifest], wanted: Sequence[Manifest], key: str, ours: Sequence[str]) -> list[Manifest]:
    """Returns the commands or shortcuts. Of those that exist, only the fields in `ours` are set."""
    by_name = {text_at(entry, key): entry for entry in existing}
    for entry in wanted:
        fields = {field: entry[field] for field in ours if field in entry}
        by_name[entry[key]] = by_name[entry[key]] | fields if entry[key] in by_name else entry
    return list(by_name.values())


def _scopes(existing: Mapping[str, Any], wanted: Mapping[str, Any]) -> Manifest:
    """Returns the bot scopes. One that is required stays required."""
    old, new = (object_at(object_at(manifest, "oauth_config"), "scopes") for manifest in (existing, wanted))
    bot, requested = _united(old.get("bot"), new["bot"]), _texts(old.get("bot"))
    added = [scope for scope in _texts(new.get("bot_optional")) if scope not in requested]
    optional = _united(old.get("bot_optional"), added)
    return {"bot": bot, **({"bot_optional": optional} if optional else {})}


def _united(old: object, new: Sequence[str]) -> list[str]:
    return list(dict.fromkeys((*_texts(old), *new)))


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _list_changes(old: list[Any], new: list[Any], place: str) -> Iterator[str]:
    before, after = ({_shown(item): item for item in items} for items in (old, new))
    yield from (f"{place}: + {name}" for name in after if name not in before)
    yield from (f"{place}: - {name}" for name in before if name not in after)
    for name in after:
        if name in before and isinstance(after[name], dict):
            yield from manifest_changes(before[name], after[name], f"{place}.{name}.")


def _shown(value: object) -> str:
    if isinstance(value, dict):
        value = value.get("command") or value.get("name") or value
    return printable_line(str(value).lower() if isinstance(value, bool) else str(value), _LONGEST)
