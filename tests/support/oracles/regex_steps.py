"""Counts the steps that a regular expression takes on a text, by walking the tree that `re` itself parsed.

Python's own engine cannot be asked, and time says more about the machine than about the pattern. This walks the same
tree in the same order, backtracks where the engine would, and counts; the engine's shortcuts only save some steps.
Texts to try are made from the pattern itself: something that it matches, with a part of it repeated.
"""

import importlib
import random
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_parser = importlib.import_module("re._parser")
_names = importlib.import_module("re._constants")
_SIGNS = " \t\n\0aZz09_-.,;:/|@<>#&!?=+*`~'\"()[]{}\\^$%\xa0\xe9\u2028\u202e"
Node = tuple[Any, Any]
Go = Callable[[int], bool]


class TooManySteps(Exception):
    """The search was given up."""


class Counter:
    """Searches like `finditer`; `count` is the cost, and more than `most` steps raise an error."""

    def __init__(self, pattern: re.Pattern[Any], text: str, most: int) -> None:
        self.steps = 0
        self._most = most
        self._text = text
        self._flags = pattern.flags
        self._tree = tree_of(pattern)
        self._groups: dict[int, str] = {}

    def count(self, *, anywhere: bool) -> int:
        """Looks for all matches from each position; or only from the first, as `match` and `fullmatch` do."""
        at = 0 if anywhere else len(self._text)
        if not anywhere:
            self._match(list(self._tree), 0, 0, lambda _: True)
        while at <= len(self._text):
            ends: list[int] = []
            if self._match(list(self._tree), 0, at, _noting(ends)):
                at = max(ends[-1], at + 1)
            else:
                at += 1
        return self.steps

    def _match(self, nodes: list[Node], index: int, at: int, then: Go) -> bool:
        if index == len(nodes):
            return then(at)
        self._step()
        kind, value = nodes[index]

        def go_on(end: int) -> bool:
            return self._match(nodes, index + 1, end, then)

        if kind in _ONE_CHARACTER:
            return at < len(self._text) and one_matches(kind, value, self._text[at], self._flags) and go_on(at + 1)
        return bool(getattr(self, f"_{str(kind).lower()}")(value, at, go_on))

    def _step(self, count: int = 1) -> None:
        self.steps += count
        if self.steps > self._most:
            raise TooManySteps

    def _branch(self, value: Any, at: int, then: Go) -> bool:
        return any(self._match(list(branch), 0, at, then) for branch in value[1])

    def _subpattern(self, value: Any, at: int, then: Go) -> bool:
        group, _, _, inner = value

        def ended(end: int) -> bool:
            if group is not None:
                self._groups[group] = self._text[at:end]
            return then(end)

        return self._match(list(inner), 0, at, ended)

    def _atomic_group(self, value: Any, at: int, then: Go) -> bool:
        ends: list[int] = []
        found = self._match(list(value), 0, at, _noting(ends))
        return found and then(ends[-1])

    def _max_repeat(self, value: Any, at: int, then: Go, *, gives_back: bool = True) -> bool:
        least, most, inner = value
        nodes = list(inner)
        if len(nodes) == 1 and nodes[0][0] in _ONE_CHARACTER:
            return self._run(nodes[0], least, most, at, then, gives_back=gives_back)

        def again(times: int, at: int) -> bool:
            more = times < most and self._match(nodes, 0, at, lambda end: end > at and again(times + 1, end))
            return more or (times >= least and then(at))

        return again(0, at)

    def _run(self, node: Node, least: int, most: int, at: int, then: Go, *, gives_back: bool) -> bool:
        length, longest = 0, min(int(most), len(self._text) - at)
        while length < longest and one_matches(*node, self._text[at + length], self._flags):
            length += 1
        self._step(length)
        for taken in range(length, least - 1, -1):
            self._step()
            if then(at + taken):
                return True
            if not gives_back:
                break
        return False

    def _possessive_repeat(self, value: Any, at: int, then: Go) -> bool:
        return self._max_repeat(value, at, then, gives_back=False)

    def _min_repeat(self, value: Any, at: int, then: Go) -> bool:
        least, most, inner = value

        def again(times: int, at: int) -> bool:
            if times >= least and then(at):
                return True
            return times < most and self._match(list(inner), 0, at, lambda end: end > at and again(times + 1, end))

        return again(0, at)

    def _at(self, value: Any, at: int, then: Go) -> bool:
        return _stands(str(value), self._text, at, self._flags) and then(at)

    def _assert(self, value: Any, at: int, then: Go) -> bool:
        return self._looks(value, at) and then(at)

    def _assert_not(self, value: Any, at: int, then: Go) -> bool:
        return not self._looks(value, at) and then(at)

    def _looks(self, value: Any, at: int) -> bool:
        direction, inner = value
        if direction > 0:
            return self._match(list(inner), 0, at, lambda _: True)
        start = at - inner.getwidth()[0]
        return start >= 0 and self._match(list(inner), 0, start, lambda end: end == at)

    def _groupref(self, value: Any, at: int, then: Go) -> bool:
        text = self._groups.get(value)
        return text is not None and self._text.startswith(text, at) and then(at + len(text))


_REPEATS = (_names.MAX_REPEAT, _names.MIN_REPEAT, _names.POSSESSIVE_REPEAT)
_ONE_CHARACTER = (_names.LITERAL, _names.NOT_LITERAL, _names.ANY, _names.IN)
_CATEGORIES: dict[str, Callable[[str], bool]] = {
    "DIGIT": str.isdigit,
    "SPACE": str.isspace,
    "WORD": lambda sign: sign.isalnum() or sign == "_",
}


def _noting(ends: list[int]) -> Go:
    def note(end: int) -> bool:
        ends.append(end)
        return True

    return note


def tree_of(pattern: re.Pattern[Any]) -> Any:
    """Returns the pattern as parsed by `re`."""
    return _parser.parse(pattern.pattern, pattern.flags)


def one_matches(kind: Any, value: Any, sign: str, flags: int) -> bool:
    """Returns whether a node for one character matches this one."""
    signs = {sign, sign.lower(), sign.upper()} if flags & re.IGNORECASE else {sign}
    if kind is _names.ANY:
        return sign != "\n" or bool(flags & re.DOTALL)
    if kind is _names.LITERAL:
        return chr(value) in signs
    if kind is _names.NOT_LITERAL:
        return chr(value) not in signs
    items = [item for item in value if item[0] is not _names.NEGATE]
    return any(_is_in(item, one) for item in items for one in signs) is (len(items) == len(value))


def _is_in(item: Node, sign: str) -> bool:
    kind, value = item
    if kind is _names.LITERAL:
        return bool(ord(sign) == value)
    if kind is _names.RANGE:
        return bool(value[0] <= ord(sign) <= value[1])
    name = str(value).removeprefix("CATEGORY_")
    return _CATEGORIES[name.removeprefix("NOT_")](sign) is not name.startswith("NOT_")


def _stands(where: str, text: str, at: int, flags: int) -> bool:
    lines = bool(flags & re.MULTILINE)
    word = [0 <= place < len(text) and _CATEGORIES["WORD"](text[place]) for place in (at - 1, at)]
    return {
        "AT_BEGINNING": at == 0 or (lines and text[at - 1] == "\n"),
        "AT_BEGINNING_STRING": at == 0,
        "AT_END": at == len(text) or text[at:] == "\n" or (lines and text[at] == "\n"),
        "AT_END_STRING": at == len(text),
        "AT_BOUNDARY": word[0] is not word[1],
        "AT_NON_BOUNDARY": word[0] is word[1],
    }[where]


def example(tree: Any, flags: int, chance: random.Random, groups: dict[int, str]) -> str:
    """Returns a text that a pattern probably matches, or nearly: lookarounds are left out."""
    return "".join(_example(kind, value, flags, chance, groups) for kind, value in tree)


def _example(kind: Any, value: Any, flags: int, chance: random.Random, groups: dict[int, str]) -> str:
    if kind in _ONE_CHARACTER:
        fitting = [sign for sign in _SIGNS if one_matches(kind, value, sign, flags)]
        return chr(value) if kind is _names.LITERAL else chance.choice(fitting or ["\u0391"])
    if kind is _names.BRANCH:
        return example(chance.choice(value[1]), flags, chance, groups)
    if kind is _names.SUBPATTERN:
        text = example(value[3], flags, chance, groups)
        groups[value[0] or 0] = text
        return text
    if kind in _REPEATS:
        times = min(int(value[1]), max(int(value[0]), chance.choice((0, 1, 2))))
        return "".join(example(value[2], flags, chance, groups) for _ in range(times))
    if kind is _names.GROUPREF:
        return groups.get(value, "")
    return example(value, flags, chance, groups) if kind is _names.ATOMIC_GROUP else ""


def grown(pattern: re.Pattern[Any], chance: random.Random, sizes: tuple[int, ...]) -> list[str]:
    """Returns the same text in several sizes: an example with a part of it, or a character of the pattern, repeated."""
    text = example(tree_of(pattern), pattern.flags, chance, {}) or " "
    start = chance.randrange(len(text) + 1)
    end = chance.randrange(start, len(text) + 1)
    signs = [chance.choice(fitting) for fitting in _alphabets(tree_of(pattern), pattern.flags) if fitting]
    beside = text[max(end - 1, 0) : end + 1]
    piece = chance.choice([text[start:end], *beside, *beside, *signs]) or " "
    tail = text[end:] if chance.random() < 0.3 else chance.choice(["", "\0", "!"])
    return [text[:end] + piece * (size // len(piece)) + tail for size in sizes]


def pumped(pattern: re.Pattern[Any], chance: random.Random, sizes: tuple[int, ...]) -> Iterator[list[str]]:
    """Returns for each repetition in the pattern the text that leads there and the repeated text, with an end that fits
    and one that does not; in several sizes.
    """
    for before, inner in _repetitions(list(tree_of(pattern)), []):
        head = example(before, pattern.flags, chance, {})
        piece = example(inner, pattern.flags, chance, {}) or " "
        for tail in ("", "\0"):
            yield [head + piece * (size // len(piece)) + tail for size in sizes]


def _repetitions(nodes: list[Node], before: list[Node]) -> Iterator[tuple[list[Node], Any]]:
    """Yields each repeated part of a pattern with the part before it, nested ones included."""
    for index, (kind, value) in enumerate(nodes):
        so_far = before + nodes[:index]
        if kind in _REPEATS:
            yield so_far, value[2]
        for inner in _within(kind, value):
            yield from _repetitions(list(inner), so_far)


def _within(kind: Any, value: Any) -> list[Any]:
    if kind is _names.BRANCH:
        return list(value[1])
    if kind is _names.ATOMIC_GROUP:
        return [value]
    return [value[-1]] if kind in _REPEATS or kind is _names.SUBPATTERN else []


def _alphabets(tree: Any, flags: int) -> Iterator[list[str]]:
    """Yields some characters of each class that a pattern repeats."""
    for kind, value in tree:
        if kind in _ONE_CHARACTER:
            yield [sign for sign in _SIGNS if one_matches(kind, value, sign, flags)]
        elif kind is _names.BRANCH:
            for branch in value[1]:
                yield from list(_alphabets(branch, flags))[:2]
        elif isinstance(value, tuple) and hasattr(value[-1], "getwidth"):
            yield from _alphabets(value[-1], flags)


@contextmanager
def deep() -> Iterator[None]:
    """Provides stack space for deeply nested steps."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)  # C code that recurses would overflow a small stack
