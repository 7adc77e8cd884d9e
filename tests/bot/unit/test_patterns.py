"""No text can freeze a search: on a long text that its pattern almost matches, each regular expression soon ends."""

import ast
import importlib
import inspect
import itertools
import pkgutil
import random
import re
import signal
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.hypothesis_settings import examples

import bot
from bot.jobserver.egress.providers import APIS
from bot.jobserver.egress.request_rules import Kinds
from bot.runtime.secrets.assignments import SHAPES
from bot.runtime.secrets.patterns import PATTERNS, compiled

ROOT = Path(bot.__file__).parent
LENGTH, CPU_SECONDS = 100_000, 1
"""What is linear takes some milliseconds, what is quadratic many seconds."""
TRIES = max(examples(8) // 4, 1)
AT_KEYWORDS = "bot.secrets:"
"""The rules for secrets are tried at their keywords; test_secret_masking repeats each keyword."""
IN_RULES = {
    "bot.jobserver.egress.model_api",
    "bot.jobserver.egress.request_rules",
    *(f"bot.runtime.secrets.{name}" for name in ("assignments", "patterns", "tokens")),
}
"""Their patterns are all in a table, or a constant."""
NOT_FOR_STRANGERS = {
    "bot.app.settings.config",
    "bot.app.settings.projects.file",
    "bot.app.settings.values",
    "bot.jobserver.settings.values",
    "bot.store.database.engine",
    "bot.store.migrations.env",
}
"""These read the operator's settings only."""
EXPOSED = (
    "slack",
    "domain",
    "runtime",
    "secrets",
    *(f"jobserver.{name}" for name in ("leaks", "pages", "egress", "api")),
)
"""Where patterns meet what people, agents and strangers write."""
SIGNS = " \t\n\0aZz09_-.,;:/|@<>#&!?=+*`~'\"()[]{}\\^$%\xa0\xe9\u2028\u202e"
parser, compiler, names = (importlib.import_module(f"re._{name}") for name in ("parser", "compiler", "constants"))
REPEATS = (names.MAX_REPEAT, names.MIN_REPEAT, names.POSSESSIVE_REPEAT)
Node = tuple[Any, Any]
AnyPattern = re.Pattern[str] | re.Pattern[bytes]


def patterns() -> Iterator[tuple[str, AnyPattern]]:
    """Returns every pattern in the sources: those compiled at import, and those written into calls."""
    for module in pkgutil.walk_packages(bot.__path__, "bot."):
        if module.name in NOT_FOR_STRANGERS or module.name.endswith("__main__") or ".versions" in module.name:
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, re.Pattern):
                yield f"{module.name}.{name}", value
    yield from ((f"{AT_KEYWORDS}{place.name}:{number}", place.pattern) for number, place in enumerate(PATTERNS))
    yield from ((f"{AT_KEYWORDS}{shape.name}", compiled(shape.expression)) for shape in SHAPES)
    shapes = itertools.chain(*(api.shapes.values() for api in APIS.values()))
    kinds = itertools.chain(*(shape.kinds for shape in shapes if isinstance(shape, Kinds)))
    paths = itertools.chain(*(api.requests for api in APIS.values()))
    yield from ((f"bot.jobserver.egress:{each}", re.compile(each)) for each in itertools.chain(kinds, paths))
    for file in ROOT.rglob("*.py"):
        module_name = ".".join(("bot", *file.relative_to(ROOT).with_suffix("").parts))
        if module_name not in NOT_FOR_STRANGERS | IN_RULES:
            yield from ((f"{module_name}:{line}", pattern) for line, pattern in written_in(file))


@cache
def every_pattern() -> dict[str, AnyPattern]:
    """Returns them by name; collected on first use, since each worker collects all tests."""
    return dict(patterns())


def written_in(file: Path) -> Iterator[tuple[int, AnyPattern]]:
    """Returns those in calls, inside functions or elsewhere; a constant of the module is resolved there."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    constants = {id(node.value) for node in tree.body if isinstance(node, ast.Assign)}
    for node in ast.walk(tree):
        assert not (isinstance(node, ast.ImportFrom) and node.module == "re"), file
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and id(node) not in constants):
            continue
        if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "re") or node.func.attr == "escape":
            continue
        named = [getattr(re, part.attr, None) for part in ast.walk(node) if isinstance(part, ast.Attribute)]
        flags = sum(flag for flag in named if isinstance(flag, re.RegexFlag))
        match node.args[0]:
            case ast.Constant(value=str() | bytes() as text):
                yield node.lineno, re.compile(text, flags)
            case ast.JoinedStr(values=parts):
                texts = [str(part.value) if isinstance(part, ast.Constant) else "U0BOT" for part in parts]
                yield node.lineno, re.compile("".join(texts), flags)
            case _:
                raise AssertionError(f"{file}:{node.lineno} has a pattern that is not written there")


def from_the_start(name: str) -> bool:
    """Returns whether a pattern is only used with `match` or `fullmatch`."""
    if name.startswith(AT_KEYWORDS) or ":" in name:
        return name.startswith(AT_KEYWORDS)
    module, _, constant = name.rpartition(".")
    uses = set(re.findall(rf"\b{constant}\.(\w+)", inspect.getsource(importlib.import_module(module))))
    return bool(uses) and uses <= {"match", "fullmatch"}


def pumped(pattern: AnyPattern, chance: random.Random) -> Iterator[str | bytes]:
    """Yields long texts for each repetition in a pattern: a text that leads there, then what is repeated, or all of
    that again and again; with an end that fits and one that does not.
    """
    tree = parser.parse(pattern.pattern, pattern.flags)
    for before, inner in repetitions(list(tree), []):
        head, piece = example(tree, before, chance), example(tree, inner, chance) or " "
        for again, tail in itertools.product((piece, head + piece), ("", "\0")):
            text = head + again * (LENGTH // len(again)) + tail
            yield text if isinstance(pattern.pattern, str) else text.encode("latin-1", "replace")


def repetitions(nodes: list[Node], before: list[Node]) -> Iterator[tuple[list[Node], list[Node]]]:
    """Yields each repeated part of a pattern with the part before it, nested ones included."""
    for index, (kind, value) in enumerate(nodes):
        so_far = before + nodes[:index]
        if kind in REPEATS:
            yield so_far, list(value[2])
        for inner in within(kind, value):
            yield from repetitions(list(inner), so_far)


def within(kind: Any, value: Any) -> list[Any]:
    if kind is names.BRANCH:
        return list(value[1])
    if kind is names.ATOMIC_GROUP:
        return [value]
    return [value[-1]] if kind in REPEATS or kind is names.SUBPATTERN else []


def example(tree: Any, nodes: Iterable[Node], chance: random.Random) -> str:
    """Returns a text that they probably match, or nearly: lookarounds and references to groups are left out."""
    text = ""
    for kind, value in nodes:
        if kind is names.LITERAL:
            text += chr(value)
        elif kind in {names.IN, names.ANY, names.NOT_LITERAL}:
            matches = compiler.compile(parser.SubPattern(tree.state, [(kind, value)])).fullmatch
            text += chance.choice([sign for sign in SIGNS if matches(sign)] or ["\u0391"])
        elif inner := within(kind, value):
            times = min(int(value[1]), max(int(value[0]), chance.choice((0, 1, 2)))) if kind in REPEATS else 1
            text += "".join(example(tree, chance.choice(inner), chance) for _ in range(times))
    return text


def ends_soon(name: str, pattern: AnyPattern) -> None:
    """Fails after a second of processor time, however busy the machine is."""

    def give_up(*_: object) -> None:
        pytest.fail(f"{name} searches for too long")

    chance = random.Random(name)  # noqa: S311 - the same texts each time
    before = signal.signal(signal.SIGVTALRM, give_up)
    try:
        for text in itertools.chain.from_iterable(pumped(pattern, chance) for _ in range(TRIES)):
            signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS)
            if from_the_start(name):
                pattern.match(text)  # type: ignore[arg-type]
            else:
                pattern.sub(text[:0], text)  # type: ignore[arg-type]
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def place_of(name: str) -> str:
    return next((place for place in EXPOSED if re.split("[.:]", f"{name}.", maxsplit=1)[1].startswith(place)), "others")


@pytest.mark.first(place=len(EXPOSED))
@pytest.mark.parametrize("place", [*EXPOSED, "others"])
def test_a_search_ends_on_any_long_text(place: str) -> None:
    for name, pattern in every_pattern().items():
        if place_of(name) == place:
            ends_soon(name, pattern)


def test_a_quadratic_pattern_is_detected() -> None:
    with pytest.raises(pytest.fail.Exception, match="for too long"):
        ends_soon("made:careless", re.compile(r"\s+$"))
