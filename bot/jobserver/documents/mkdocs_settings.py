"""Tells the navigation in MkDocs' settings, which is content, from the rest, which names programs. Pure."""

from collections.abc import Iterator
from itertools import chain

from bot.jobserver.documents.yaml_text import Tagged, load_yaml


def only_navigation(before: bytes, after: bytes) -> bool:
    """Tells whether two versions differ only in their menus, and the new menus contain nothing that MkDocs would run.

    Returns False for files that cannot be read or that have aliases.
    """
    try:
        old, new = load_yaml(before.decode()), load_yaml(after.decode())
    except (ValueError, RecursionError):
        return False
    if not isinstance(old, dict) or not isinstance(new, dict):
        return False
    menus = [[holder.pop("nav", None) for holder in _holders(settings)] for settings in (old, new)]
    return old == new and not any(map(_has_tags, menus[1]))


def _holders(settings: dict[str, object]) -> Iterator[dict[str, object]]:
    """Yields the mappings that have a `nav`: the site's, and the i18n plugin's for each language."""
    yield settings
    for plugin in _list(settings.get("plugins")):
        options = plugin.get("i18n") if isinstance(plugin, dict) else None
        languages = options.get("languages") if isinstance(options, dict) else None
        yield from (language for language in _list(languages) if isinstance(language, dict))


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _has_tags(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_tags, chain(value, value.values())))
    return isinstance(value, Tagged) or any(map(_has_tags, _list(value)))
