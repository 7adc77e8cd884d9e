"""JSON that every parser reads alike: whoever checks it and whoever acts on it must not see two different things."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

MOST_VALUES = 1_000_000
"""Of objects, lists and their members: each costs memory, however few bytes it has."""
_COUNTED = (b",", b"{", b"[")


def parse_object(body: bytes) -> Mapping[str, Any]:
    """Returns what a body holds.

    Raises:
        ValueError: it is no JSON object, not in UTF-8, nested too deep, has too many values, a name that stands twice
            in an object, or a number that JSON does not know. The words are for whoever sent it.
    """
    if sum(map(body.count, _COUNTED)) > MOST_VALUES:
        raise ValueError(f"it has more than {MOST_VALUES} values")
    try:
        value = json.loads(body.decode(), object_pairs_hook=_object, parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise ValueError("it is not in UTF-8") from None
    except json.JSONDecodeError:
        raise ValueError("it is no JSON") from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - one error for all that can be wrong with it
    return value


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in an object")
    return found


def _no_constant(_: str) -> None:
    raise ValueError("it holds a number that JSON does not know")
