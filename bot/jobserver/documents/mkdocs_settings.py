"""MkDocs' `mkdocs.yml` names plugins, hooks and objects of Python, which run at a build; its `nav` is content. Pure."""

from collections.abc import Collection

import yaml

from bot.jobserver.documents.front_matter import compose_yaml
from bot.jobserver.documents.navigation_entries import navigations

_MAX_BYTES = 300_000
_PLAIN = frozenset(
    f"tag:yaml.org,2002:{kind}" for kind in ("bool", "float", "int", "map", "null", "seq", "str", "timestamp")
)
_Shape = tuple[object, ...]


def only_navigation(before: bytes, after: bytes) -> bool:
    """Whether two versions differ in their menus alone, and the new menus hold nothing that MkDocs would run.

    What cannot be read, or has aliases, is taken for something else.
    """
    if max(len(before), len(after)) > _MAX_BYTES:
        return False
    try:
        old, new = compose_yaml(before.decode()), compose_yaml(after.decode())
    except (ValueError, RecursionError):
        return False
    if old is None or new is None:
        return False
    menus = [menu for menu, _ in navigations(new)]
    return all(map(_is_plain, menus)) and _without_menus(old) == _without_menus(new)


def _without_menus(root: yaml.Node) -> _Shape:
    return _shape(root, {id(menu) for menu, _ in navigations(root)})


def _shape(node: yaml.Node, skipped: Collection[int]) -> _Shape:
    """Returns a node with all it holds as values that can be compared; each key as often as it stands there."""
    if isinstance(node, yaml.MappingNode):
        pairs = [(_shape(key, ()), _shape(value, skipped)) for key, value in node.value if id(value) not in skipped]
        return node.tag, tuple(pairs)
    if isinstance(node, yaml.SequenceNode):
        return node.tag, tuple(_shape(item, skipped) for item in node.value)
    return node.tag, node.value


def _is_plain(node: yaml.Node) -> bool:
    """Whether it is made of lists and texts: with `!!python/object` in it, MkDocs would run what it names."""
    if node.tag not in _PLAIN:
        return False
    if isinstance(node, yaml.MappingNode):
        return all(_is_plain(part) for pair in node.value for part in pair)
    return not isinstance(node, yaml.SequenceNode) or all(map(_is_plain, node.value))
