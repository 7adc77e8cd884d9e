"""MkDocs' `mkdocs.yml`: the pages in `nav`, found by the places that YAML's own parser gives them."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import yaml

from bot.jobserver.documents.front_matter import compose_yaml
from bot.jobserver.documents.navigation_entry import Entry, NewEntry, line_end

_PLAIN = re.compile(r"[A-Za-z][\w ()./-]*+")
_PAGE_ENDINGS = (".md", ".mdx", ".markdown")
_NOT_TEXT = frozenset(("yes", "no", "on", "off", "true", "false", "null", "y", "n"))


def entries(text: str) -> tuple[str, list[Entry]]:
    """Returns the folder of the pages, and the pages in their order; none where there is no `nav`.

    Raises:
        ValueError: the text is not YAML, in words.
    """
    root = compose_yaml(text)
    if not isinstance(root, yaml.MappingNode):
        return "docs", []
    folder = _values(root).get("docs_dir")
    found = [entry for nav, locale in navigations(root) for entry in _pages(text, nav, _Place(locale))]
    return (folder.value if isinstance(folder, yaml.ScalarNode) else "docs"), found


def _values(node: yaml.Node) -> dict[str, yaml.Node]:
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return {key.value: value for key, value in pairs if isinstance(key, yaml.ScalarNode)}


def navigations(root: yaml.Node) -> Iterator[tuple[yaml.Node, str]]:
    """Yields the site's `nav`, and those of the i18n plugin with the folder of their language."""
    values = _values(root)
    if "nav" in values:
        yield values["nav"], ""
    plugins = values.get("plugins")
    for plugin in plugins.value if isinstance(plugins, yaml.SequenceNode) else []:
        languages = _values(_values(plugin).get("i18n", plugin)).get("languages")
        for language in map(_values, languages.value if isinstance(languages, yaml.SequenceNode) else []):
            is_default = "default" in language and language["default"].value == "true"
            if "nav" in language and "locale" in language:
                yield language["nav"], "" if is_default else str(language["locale"].value)


@dataclass(frozen=True)
class _Place:
    """`folder` is a language's; `has_title`: an entry is written as `Title: page`; `in_line`: its list, in brackets."""

    folder: str
    has_title: bool = False
    in_line: bool = False


def _pages(text: str, node: yaml.Node, place: _Place) -> Iterator[Entry]:
    """Yields the pages of a list, of an entry `Title: page`, or a page itself."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _pages(text, item, _Place(place.folder, in_line=place.in_line or bool(node.flow_style)))
    elif isinstance(node, yaml.MappingNode):
        for _, value in node.value:
            yield from _pages(text, value, replace(place, has_title=True))
    elif isinstance(node, yaml.ScalarNode) and node.value.lower().endswith(_PAGE_ENDINGS):
        yield _entry(text, node, place)


def _entry(text: str, node: yaml.ScalarNode, place: _Place) -> Entry:
    start, end = node.start_mark.index, node.end_mark.index
    line_start = text.rfind("\n", 0, start) + 1
    line = text[line_start:start]
    indent = line[: len(line) - len(line.lstrip())]
    if line.lstrip().startswith("-") and not place.in_line:
        return Entry(node.value, line_end(text, end), partial(_render_line, indent, place), place.folder)
    return Entry(node.value, end, _render_in_line, place.folder)


def _render_line(indent: str, place: _Place, new: NewEntry) -> str:
    title = f"{scalar(new.title)}: " if place.has_title else ""
    return f"\n{indent}- {title}{scalar(new.target)}"


def _render_in_line(new: NewEntry) -> str:
    return f", {scalar(new.target)}"


def scalar(text: str) -> str:
    """Returns a text as YAML writes it, quoted where it must be."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _NOT_TEXT and text == text.strip()
    return text if plain else json.dumps(text, ensure_ascii=False)
