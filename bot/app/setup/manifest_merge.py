"""Updates an existing app's manifest: Pagehand gets what it needs, and what people changed stays."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bot.runtime.json_fields import object_at, objects_at, text_at
from bot.runtime.text import printable_line

Manifest = dict[str, Any]
_LONGEST = 120


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
