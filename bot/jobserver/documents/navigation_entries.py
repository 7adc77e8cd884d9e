"""The entries of navigation files in each supported format, and where to insert new ones."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import yaml

from bot.jobserver.documents.front_matter import compose_yaml
from bot.jobserver.documents.markdown import parse_markdown
from bot.jobserver.documents.page import LinkKind, line_end, line_starts

_PLAIN = re.compile(r"[A-Za-z][\w ()./-]*+")
_PAGE_ENDINGS = (".md", ".mdx", ".markdown")
_NOT_TEXT = frozenset(("yes", "no", "on", "off", "true", "false", "null", "y", "n"))
_PART = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]:]', re.DOTALL)
_MAX_DEPTH = 100
_ITEM = re.compile(r"(?P<before>[ \t]*+(?:[-*+]|\d{1,9}[.)])[ \t]*+)\[")
_TITLE_SIGNS = re.compile(r"([\\\[\]])")


@dataclass(frozen=True)
class NewEntry:
    """An entry to add; `target` is written in the neighbour's style."""

    title: str
    target: str


@dataclass(frozen=True)
class Entry:
    """An entry. `end` is the position to insert the next one, which `render` returns as text.

    `target` is relative to `folder`, that of a language.
    """

    target: str
    end: int
    render: Callable[[NewEntry], str]
    folder: str = ""


def insert(text: str, neighbour: Entry, new: NewEntry) -> str:
    """Returns the text with a new entry after a neighbour; keeps the kind of line ends."""
    rendered = neighbour.render(new)
    if "\r\n" in text:
        rendered = rendered.replace("\n", "\r\n")
    return text[: neighbour.end] + rendered + text[neighbour.end :]


def _text_end(text: str, position: int) -> int:
    """Returns the position before the line break, of either kind, that ends a line."""
    end = line_end(text, position)
    return end - 1 if text[max(0, end - 1) : end] == "\r" else end


def mkdocs_entries(text: str) -> tuple[str, list[Entry]]:
    """Returns the pages' folder in MkDocs' `mkdocs.yml`, and the pages in `nav`, in order.

    Raises:
        ValueError: the text is not YAML; the message says why.
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
    """`folder` is that of a language. `has_title`: written as `Title: page`. `in_line`: in a list in brackets."""

    folder: str
    has_title: bool = False
    in_line: bool = False


def _pages(text: str, node: yaml.Node, place: _Place) -> Iterator[Entry]:
    """Yields the pages in a list, an entry `Title: page`, or a page."""
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
        return Entry(node.value, _text_end(text, end), partial(_render_line, indent, place), place.folder)
    return Entry(node.value, end, _render_in_line, place.folder)


def _render_line(indent: str, place: _Place, new: NewEntry) -> str:
    title = f"{scalar(new.title)}: " if place.has_title else ""
    return f"\n{indent}- {title}{scalar(new.target)}"


def _render_in_line(new: NewEntry) -> str:
    return f", {scalar(new.target)}"


def scalar(text: str) -> str:
    """Returns a text as a YAML scalar, quoted if necessary."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _NOT_TEXT and text == text.strip()
    return text if plain else json.dumps(text, ensure_ascii=False)


def json_entries(text: str) -> list[Entry]:
    """Returns the pages in Mintlify's `docs.json` or `mint.json`: strings in lists called `pages`, at any depth.

    Raises:
        ValueError: the text is not JSON.
    """
    try:
        json.loads(text.removeprefix("\ufeff"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return list(_json_entries(text))


def _json_entries(text: str) -> Iterator[Entry]:
    lists: list[bool] = []
    key, last = "", ""
    for match in _PART.finditer(text):
        sign = match[0]
        if sign == ":":
            key = last
        elif sign in "{[":
            lists.append(sign == "[" and (key == "pages" or (bool(lists) and lists[-1])))
            key = ""
        elif sign in "}]":
            lists.pop()
        else:
            last = json.loads(sign)
            if lists and lists[-1]:
                yield Entry(last, match.end(), partial(_render_json, _before(text, match.start())))
            key = ""


def _before(text: str, start: int) -> str:
    """Returns the separator of two entries: a line break with its indent, or a space."""
    line_start = text.rfind("\n", 0, start) + 1
    indent = text[line_start:start]
    return f"\n{indent}" if line_start and not indent.strip() else " "


def _render_json(before: str, new: NewEntry) -> str:
    return f",{before}{json.dumps(new.target, ensure_ascii=False)}"


def list_entries(text: str) -> list[Entry]:
    """Returns the pages in a list of links: docsify's `_sidebar.md`, or GitBook's and mdBook's `SUMMARY.md`."""
    lines, starts = text.split("\n"), line_starts(text)
    found = []
    for link in parse_markdown(text, mdx=False).links:
        item = _ITEM.match(lines[link.line - 1])
        if item and link.kind is LinkKind.RELATIVE and not link.is_image:
            last = _last_line_of_item(lines, link.line - 1)
            found.append(Entry(link.target, _text_end(text, starts[last]), partial(_render_list_item, item["before"])))
    return found


def _last_line_of_item(lines: list[str], index: int) -> int:
    """Returns the last line of an item, including items nested in it."""
    indent = _indent(lines[index])
    last = index
    for number in range(index + 1, len(lines)):
        if not lines[number].strip():
            continue
        if _indent(lines[number]) <= indent:
            break
        last = number
    return last


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _render_list_item(before: str, new: NewEntry) -> str:
    target = f"<{new.target}>" if " " in new.target else new.target
    title = _TITLE_SIGNS.sub(r"\\\1", new.title)
    return f"\n{before}[{title}]({target})"
