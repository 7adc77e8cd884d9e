"""Reads YAML that others wrote: no Python objects, no aliases, and no depth that takes long. Pure."""

import re
from dataclasses import dataclass

import yaml

_MAX_LENGTH = 300_000
_MAX_DEPTH = 100
_BRACKET = re.compile(r"[\[\]{}]")


@dataclass(frozen=True)
class Tagged:
    """A value with a tag of a program's own, such as `!!python/name:…`, as it is written."""

    written: str


def load_yaml(text: str) -> object:
    """Reads YAML; values with unknown tags become `Tagged`. Refuses aliases, since they can expand without limit.

    Raises:
        ValueError: the text is not YAML, or too long or deep; the message says why.
    """
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"it is longer than {_MAX_LENGTH:,} characters")
    try:
        _refuse_aliases_and_depth(text)
        return yaml.load(text, _Loader)  # noqa: S506 (a SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = f" (line {error.problem_mark.line + 1})" if error.problem_mark else ""
        raise ValueError(f"{error.problem or 'not YAML'}{line}") from error
    except yaml.YAMLError as error:
        raise ValueError((str(error).splitlines() or ["it cannot be read"])[0]) from error


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
    """Reads values with tags of site generators (`!ENV`, `!!python/name:…`) as they are written."""


def _tagged(_loader: _Loader, _suffix: str, node: yaml.Node) -> Tagged:
    return Tagged(yaml.serialize(node))


_Loader.add_multi_constructor("!", _tagged)
_Loader.add_multi_constructor("tag:yaml.org,2002:python/", _tagged)
