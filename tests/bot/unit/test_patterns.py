"""No text can freeze a search: the steps of each regular expression grow linearly with the text."""

import ast
import importlib
import inspect
import pkgutil
import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from support.hypothesis_settings import examples
from support.oracles.regex_steps import Counter, TooManySteps, deep, grown, pumped

import bot
from bot.runtime.secrets.assignments import SHAPES
from bot.runtime.secrets.patterns import PATTERNS, compiled

ROOT = Path(bot.__file__).parent
SIZES = (30, 120)
TRIES, FEW_TRIES = (20, 4) if examples(20) == 20 else (2, 1)
"""Texts that are grown for a pattern; texts with repeated parts are tried, too."""
MOST = 8_000
"""Steps for the shorter text."""
WHOLE = "bot.domain.context.message_text:"
"""Its rules are compared with the whole of a reference."""
AT_KEYWORDS = "bot.secrets:"
"""The rules for secrets are tried at their keywords; test_secret_masking repeats each keyword."""
IN_RULES = {f"bot.runtime.secrets.{name}" for name in ("assignments", "patterns", "tokens")}
"""Their patterns are all in a table, or a constant."""
OPERATORS_OWN = {
    "bot.app.settings.config",
    "bot.app.settings.values",
    "bot.jobserver.settings.values",
    "bot.store.database.url",
}
"""These are used only on the operator's settings."""


def patterns() -> Iterator[tuple[str, re.Pattern[str] | re.Pattern[bytes]]]:
    """Returns every pattern in the sources: those compiled at import, and those written into calls."""
    for module in pkgutil.walk_packages(bot.__path__, "bot."):
        if module.name in OPERATORS_OWN or module.name.endswith("__main__") or ".versions" in module.name:
            continue
        if module.name == "bot.store.migrations.env":
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, re.Pattern):
                yield f"{module.name}.{name}", value
    yield from ((f"{AT_KEYWORDS}{place.name}:{number}", place.pattern) for number, place in enumerate(PATTERNS))
    yield from ((f"{AT_KEYWORDS}{shape.name}", compiled(shape.expression)) for shape in SHAPES)
    for file in ROOT.rglob("*.py"):
        module_name = ".".join(("bot", *file.relative_to(ROOT).with_suffix("").parts))
        if module_name not in OPERATORS_OWN | IN_RULES:
            yield from ((f"{module_name}:{line}", pattern) for line, pattern in written_in(file))


@cache
def every_pattern() -> dict[str, re.Pattern[str] | re.Pattern[bytes]]:
    """Returns them by name; collected on first use, since each worker collects all tests."""
    return dict(patterns())


def written_in(file: Path) -> Iterator[tuple[int, re.Pattern[str] | re.Pattern[bytes]]]:
    """Returns those in calls, inside functions or elsewhere; a constant of the module is resolved there."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    constants = {id(node.value) for node in tree.body if isinstance(node, ast.Assign)}
    for node in ast.walk(tree):
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
    module, _, constant = name.rpartition(".")
    source = inspect.getsource(importlib.import_module(module)) if constant.isidentifier() else ""
    uses = set(re.findall(rf"\b{constant}\.(\w+)", source)) if source else {""}
    return bool(uses) and uses <= {"match", "fullmatch"}


def check(pattern: re.Pattern[str] | re.Pattern[bytes], seed: str, *, anywhere: bool, least: int, tries: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same texts each time
    with deep():
        for texts in (*pumped(pattern, chance, SIZES), *(grown(pattern, chance, SIZES) for _ in range(tries))):
            allowed = MOST + least
            for text in texts:
                try:
                    allowed = 5 * Counter(pattern, text, allowed).count(anywhere=anywhere) + least
                except TooManySteps:
                    pytest.fail(f"{seed} takes more than {allowed} steps: {text!r}")


def modules_and_packages(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists())


LARGE = "jobserver"
"""Half of all patterns: tested by its own packages."""
EXPOSED = [
    "slack",
    "domain",
    "runtime",
    "secrets",
    *(f"{LARGE}.{name}" for name in ("leaks", "pages", "egress", "api")),
]
"""Where patterns meet what people, agents and strangers write."""
PLACES = list(
    dict.fromkeys(
        [
            *EXPOSED,
            *(name for name in modules_and_packages(ROOT) if name != LARGE),
            *(f"{LARGE}.{name}" for name in modules_and_packages(ROOT / LARGE)),
        ]
    )
)


def place_of(pattern: str) -> str:
    package, inner = (*re.split("[.:]", pattern), "")[1:3]
    return f"{package}.{inner}" if package == LARGE else package


def test_every_pattern_is_registered() -> None:
    assert {place_of(name) for name in every_pattern()} <= set(PLACES)


@pytest.mark.first(place=len(EXPOSED))
@pytest.mark.parametrize("place", PLACES)
def test_the_steps_grow_linearly_with_the_text(place: str) -> None:
    """For the patterns of one package of Pagehand, or of one of its modules."""
    for name, pattern in every_pattern().items():
        if place_of(name) != place:
            continue
        at_start = name.startswith((WHOLE, AT_KEYWORDS)) or (":" not in name and from_the_start(name))
        tries = FEW_TRIES if name.startswith(AT_KEYWORDS) else TRIES
        check(pattern, name, anywhere=not at_start, least=500, tries=tries)


def test_no_pattern_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "made.py").write_text('import re\nNAMED = re.compile("a")\nMORE = [re.compile("b", re.DOTALL)]\n')
    ((line, pattern),) = written_in(tmp_path / "made.py")
    assert (line, pattern) == (3, re.compile("b", re.DOTALL))
    (tmp_path / "given.py").write_text("import re\ndef search(given, text):\n    return re.search(given, text)\n")
    with pytest.raises(AssertionError, match="not written there"):
        list(written_in(tmp_path / "given.py"))
    assert not any("from re import" in file.read_text(encoding="utf-8") for file in ROOT.rglob("*.py"))


@pytest.mark.parametrize(
    "careless",
    [
        r"<\s*/?\s*(!doctype|html|head|body|script|style|title|h1)\b",
        r"<\s*/?\s*(html|body)\b",
        r"(a|a)*b",
        r"\s+$",
        r"`+[^`\n]+`+",
        r"(\w+,?)+;",
    ],
)
def test_a_quadratic_pattern_is_detected(careless: str) -> None:
    with pytest.raises(pytest.fail.Exception, match="steps"):
        check(re.compile(careless, re.IGNORECASE), careless, anywhere=True, least=500, tries=20)
