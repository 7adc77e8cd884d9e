"""Reads front matter, the block with title and settings at the start of a page."""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeVar

import yaml

from bot.jobserver.documents.delimiters import Fence, opening_fence
from bot.jobserver.documents.page import FrontMatter, Span, line_end

_Result = TypeVar("_Result")
_MAX_LENGTH = 20_000
_MAX_DEPTH = 100
_MARKS = {"---": ("---", "..."), "+++": ("+++",)}
_BRACKET = re.compile(r"[\[\]{}]")
_BOM = "\ufeff"
_LOOKED_AT = 20_000
_SHORTEST_UNDERLINE = 3


@dataclass(frozen=True)
class _Block:
    span: Span
    text: str
    mark: str


def find_front_matter(text: str) -> FrontMatter | None:
    """Returns the front matter with its delimiters and the line break after it; None if there is none."""
    block = _block(text)
    if block is None:
        return None
    values, error = _values(block)
    return FrontMatter(block.span, block.text, values, error)


def _block(text: str) -> _Block | None:
    begin = len(_BOM) if text.startswith(_BOM) else 0
    end = text.find("\n", begin)
    mark = text[begin:end].rstrip() if end >= 0 else ""
    if mark not in _MARKS:
        return None
    inner = position = end + 1
    while position < len(text):
        end = line_end(text, position)
        if text[position:end].rstrip() in _MARKS[mark]:
            return _Block(Span(begin, min(end + 1, len(text))), text[inner:position], mark)
        position = end + 1
    return None


def _values(block: _Block) -> tuple[Mapping[str, object], str]:
    if len(block.text) > _MAX_LENGTH:
        return {}, f"it is longer than {_MAX_LENGTH} characters"
    load: Callable[[str], object] = load_yaml if block.mark == "---" else tomllib.loads
    try:
        values = load(block.text)
    except (ValueError, RecursionError) as error:
        return {}, _first_line(error)
    if values is None:
        return {}, ""
    return (values, "") if isinstance(values, dict) else ({}, "it is not a list of keys with values")


def load_yaml(text: str) -> object:
    """Reads YAML without constructing Python objects; refuses aliases, since they can expand without limit.

    Raises:
        ValueError: the text is not YAML; the message says why.
    """
    return _read(text, lambda: yaml.load(text, _Loader))  # noqa: S506 (a SafeLoader)


def compose_yaml(text: str) -> yaml.Node | None:
    """Reads YAML as nodes with their positions.

    Raises:
        ValueError: the text is not YAML; the message says why.
    """
    return _read(text, lambda: yaml.compose(text, _Loader))


def _read(text: str, read: Callable[[], _Result]) -> _Result:
    try:
        _refuse_aliases_and_depth(text)
        return read()
    except yaml.MarkedYAMLError as error:
        line = f" (line {error.problem_mark.line + 1})" if error.problem_mark else ""
        raise ValueError(f"{error.problem or 'not YAML'}{line}") from error
    except yaml.YAMLError as error:
        raise ValueError(_first_line(error)) from error


def _refuse_aliases_and_depth(text: str) -> None:
    if _bracket_depth(text) > _MAX_DEPTH:  # before YAML's scanner, which is slow on these
        raise ValueError(f"it is nested deeper than {_MAX_DEPTH} levels")
    depth = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("it has an alias (`*name`)")  # noqa: TRY004 (of the text, not of an argument)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise ValueError(f"it is nested deeper than {_MAX_DEPTH} levels")


def _bracket_depth(text: str) -> int:
    deepest = depth = 0
    for match in _BRACKET.finditer(text):
        depth += 1 if match[0] in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


class _Loader(yaml.SafeLoader):
    """Reads values with tags of site generators (`!ENV`, `!!python/name:…`) as None."""


def _nothing(_loader: _Loader, _suffix: str, _node: yaml.Node) -> None:
    return None


_Loader.add_multi_constructor("!", _nothing)
_Loader.add_multi_constructor("tag:yaml.org,2002:python/", _nothing)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["it cannot be read"])[0]


def quick_title(text: str) -> str | None:
    """Returns the title in the front matter or first heading, if it is within the first 20,000 characters."""
    text = text[:_LOOKED_AT]
    front_matter = find_front_matter(text)
    if front_matter and front_matter.title:
        return front_matter.title
    return _first_heading(text[front_matter.span.end :] if front_matter else text)


def _first_heading(text: str) -> str | None:
    fence: Fence | None = None
    lines = text.splitlines()
    for line, below in zip_longest(lines, lines[1:], fillvalue=""):
        if fence is not None:
            fence = None if fence.is_closed_by(line) else fence
        elif line.startswith(("# ", "= ")):
            return line[2:].strip(" \t#") or None
        elif len(below) >= _SHORTEST_UNDERLINE and not below.strip("=") and line.strip("= \t"):
            return line.strip()
        else:
            fence = opening_fence(line)
    return None
