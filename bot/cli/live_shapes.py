"""Shapes of what services say: keys, types and the services' own codes, and never texts, names or ids. Pure."""

import re
from collections.abc import Collection, Iterator

Shape = dict[str, str]
"""What is at each path: a type, or a code such as `message_changed`. A fact is a sentence with `yes` or `no`."""
_CODE = re.compile("[a-z][a-z0-9_.-]{0,39}")
_CODED = frozenset({"channel_type", "error", "subtype", "type"})
"""Keys whose values only Slack chooses."""
_TYPES = {type(None): "null", bool: "yes or no", int: "number", float: "number", list: "list", dict: "object"}
_OR = " | "


def code(word: object) -> str:
    """Returns a word that a program has chosen; a star in the place of anything else, such as an id."""
    return word if isinstance(word, str) and _CODE.fullmatch(word) else "*"


def add_shape(shape: Shape, path: str, value: object) -> None:
    """Adds what is in a JSON value. The elements of a list are one, unless they say their types."""
    for where, what in _walk(path, value):
        shape[where] = _OR.join(sorted({*shape.get(where, what).split(_OR), what}))


def add_fact(shape: Shape, sentence: str, *, holds: bool) -> None:
    """Adds a fact. The sentence says what is expected."""
    shape[sentence] = "yes" if holds else "no"


def differences(expected: Shape, seen: Shape) -> list[str]:
    """Returns what is new, missing or other, a line each; of a new object only the object."""
    new, missing = seen.keys() - expected.keys(), expected.keys() - seen.keys()
    other = [path for path in sorted(seen.keys() & expected.keys()) if seen[path] != expected[path]]
    return [
        *(f"{path}: {seen[path]}, not {expected[path]}" for path in other),
        *(f"{path} is missing ({expected[path]})" for path in _outermost(missing)),
        *(f"{path} is new ({seen[path]})" for path in _outermost(new)),
    ]


def keeps(back: object, sent: object) -> bool:
    """Returns whether all that was sent came back, perhaps among other keys."""
    match sent:
        case dict():
            return isinstance(back, dict) and all(keeps(back.get(key), value) for key, value in sent.items())
        case list():
            return isinstance(back, list) and len(back) == len(sent) and all(map(keeps, back, sent))
        case _:
            return back == sent


def _walk(path: str, value: object) -> Iterator[tuple[str, str]]:
    yield path, _TYPES.get(type(value), "text")
    match value:
        case dict():
            for key, inner in value.items():
                if key in _CODED and isinstance(inner, str):
                    yield f"{path}.{key}", code(inner)
                else:
                    yield from _walk(f"{path}.{code(key)}", inner)
        case list():
            for inner in value:
                kind = inner.get("type") if isinstance(inner, dict) else None
                yield from _walk(f"{path}[{code(kind)}]", inner)


def _outermost(paths: Collection[str]) -> list[str]:
    return sorted(path for path in paths if path[: max(path.rfind("."), path.rfind("["), 0)] not in paths)
