"""The repository's rules: its lanes of tests and its size, an oracle that detects each broken promise, and no pattern
that is slow on hostile text.
"""

import ast
import importlib
import inspect
import itertools
import os
import pkgutil
import random
import re
import signal
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.hypothesis_settings import examples
from support.oracles.promises import AskedFor, History, Poll, Promise, Said, Shown, Turn, broken

import bot
from bot.domain.requests.request import RequestState
from bot.jobserver.egress.providers import APIS
from bot.jobserver.egress.request_rules import Kinds
from bot.runtime.secrets.assignments import SHAPES
from bot.runtime.secrets.patterns import PATTERNS, compiled

KEPT = AskedFor("a", acknowledged=True, taken=1, state=RequestState.ACCEPTED)
FIRST, SECOND = (
    replace(KEPT, name=name, turn=Turn("t1", name, taken)) for name, taken in (("first", 0), ("second", 1))
)
TOLD = Said("t1", seen=["started", "finished"], meant=["started", "finished"], delivered=["started", "finished"])


def overtaken(*, recorded: float = 0.0, sent_again: int = 0) -> list[AskedFor]:
    """The second was sent at 5 and taken first."""
    early, late = Turn("t1", "first", 2, recorded), Turn("t1", "second", 1, sent=5.0)
    return [replace(FIRST, taken=1 + sent_again, sent_again=sent_again, turn=early), replace(SECOND, turn=late)]


@pytest.mark.promise("oracles")
@pytest.mark.parametrize(
    "history",
    [
        History(),
        History(requests=[KEPT]),
        History(requests=[replace(KEPT, taken=2, sent_again=1)]),
        History(requests=[AskedFor("a", acknowledged=False, taken=0)]),
        History(requests=[AskedFor("a", acknowledged=True, taken=0, explained=True, state=RequestState.REJECTED)]),
        History(requests=[AskedFor("a", acknowledged=True, taken=1, explained=True, state=RequestState.UNCERTAIN)]),
        History(requests=[AskedFor("a", acknowledged=True, taken=0, state=RequestState.WITHDRAWN)]),
        History(requests=[FIRST, SECOND]),
        History(requests=overtaken(recorded=6.0)),
        History(requests=overtaken(sent_again=1)),
        History(posts=["a", "b"]),
        History(threads=[TOLD]),
        History(threads=[replace(TOLD, seen=["started"], delivered=["started"])]),
        History(shown=[Shown("card", "finished", {"finished"})]),
        History(polls=[Poll("j", 0.0, 1.0), Poll("j", 1.0, 2.0), Poll("k", 1.5)]),
    ],
)
def test_kept_promises_pass(history: History) -> None:
    assert broken(history) == []


@pytest.mark.promise("oracles")
@pytest.mark.parametrize(
    ("promise", "histories"),
    [
        (
            Promise.NOTHING_LOST,
            [
                History(requests=[AskedFor("a", acknowledged=True, taken=0)]),
                History(requests=[replace(KEPT, acknowledged=False, taken=0)]),
                History(requests=[replace(KEPT, state=RequestState.UNCERTAIN)]),
                History(requests=[AskedFor("a", acknowledged=False, taken=0, state=RequestState.WAITING)]),
                History(threads=[replace(TOLD, seen=["started"])]),
            ],
        ),
        (
            Promise.DONE_ONCE,
            [
                History(requests=[replace(KEPT, taken=2)]),
                History(requests=[replace(KEPT, state=RequestState.REJECTED, explained=True)]),
                History(requests=[replace(KEPT, state=RequestState.WITHDRAWN)]),
            ],
        ),
        (
            Promise.SAID_ONCE,
            [
                History(posts=["a", "a"]),
                History(threads=[replace(TOLD, meant=["started"], delivered=())]),
            ],
        ),
        (
            Promise.IN_ORDER,
            [History(threads=[replace(TOLD, seen=["finished", "started"])]), History(requests=overtaken())],
        ),
        (Promise.UP_TO_DATE, [History(shown=[Shown("card", "started", {"finished"})])]),
        (
            Promise.ONE_OWNER,
            [
                History(polls=[Poll("j", 0.0, 2.0), Poll("j", 1.0, 1.5)]),
                History(polls=[Poll("j", 0.0), Poll("j", 9.0)]),
            ],
        ),
    ],
)
def test_a_broken_promise_is_detected(promise: Promise, histories: Sequence[History]) -> None:
    for history in histories:
        assert [found.promise for found in broken(history)] == [promise], history


PACKAGE = Path(bot.__file__).parent
LENGTH, CPU_SECONDS = 100_000, 1
"""What is linear takes some milliseconds, what is quadratic many seconds."""
TRIES = max(examples(8) // 4, 1)
AT_KEYWORDS = "bot.secrets:"
"""The rules for secrets are tried at their keywords; test_secrets repeats each keyword."""
IN_RULES = {
    "bot.jobserver.egress.model_api",
    "bot.jobserver.egress.request_rules",
    *(f"bot.runtime.secrets.{name}" for name in ("assignments", "patterns", "tokens")),
}
"""Their patterns are all in a table, or a constant."""
NOT_FOR_STRANGERS = {
    "bot.app.settings.config",
    "bot.app.settings.projects",
    "bot.app.settings.values",
    "bot.jobserver.settings.values",
    "bot.queue.engine",
    "bot.jobserver.store.migrations.env",
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
    for file in PACKAGE.rglob("*.py"):
        module_name = ".".join(("bot", *file.relative_to(PACKAGE).with_suffix("").parts))
        if module_name not in NOT_FOR_STRANGERS | IN_RULES:
            yield from ((f"{module_name}:{line}", pattern) for line, pattern in written_in(file))


@cache
def every_pattern() -> dict[str, AnyPattern]:
    """Returns them by name; collected on first use, since each worker collects all tests."""
    return dict(patterns())


def written_in(file: Path) -> Iterator[tuple[int, AnyPattern]]:
    """Returns those in calls, inside functions or elsewhere; a constant of the module is resolved there."""
    source = file.read_text(encoding="utf-8")
    tree = ast.parse(source if re.search(r"\bre\b", source) else "")
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
    is_from_the_start = from_the_start(name)
    before = signal.signal(signal.SIGVTALRM, give_up)
    try:
        for text in itertools.chain.from_iterable(pumped(pattern, chance) for _ in range(TRIES)):
            signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS)
            if is_from_the_start:
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


@pytest.mark.full
def test_a_quadratic_pattern_is_detected() -> None:
    with pytest.raises(pytest.fail.Exception, match="for too long"):
        ends_soon("made:careless", re.compile(r"\s+$"))


TESTS = Path(__file__).parents[2]
ROOT = TESTS.parent
CI = ROOT / ".ci"
OPTIONS: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"][
    "ini_options"
]["addopts"]


def test_a_test_is_in_the_default_lane_or_in_the_full_one() -> None:
    """The default lane leaves out marked tests only; the full command leaves out none."""
    assert OPTIONS[OPTIONS.index("-m") + 1] == "not full"
    assert re.search(r'pytest -n 4 -m ""', (CI / "full").read_text(encoding="utf-8"))
    assert "'.venv/bin/pytest -n 4 -m full'" in (CI / "run").read_text(encoding="utf-8")


def test_test_names_are_unique() -> None:
    """If several levels test the same story, each name says what that level adds."""
    sources = [file.read_text(encoding="utf-8") for file in TESTS.rglob("test_*.py")]
    names = Counter(
        name for source in sources for name in re.findall(r"^(?:async )?def (test_\w+)", source, re.MULTILINE)
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Python before 3.11.5, such as Debian 12's, goes on in the wrong place after it (gh-106052): `(?>(?:...)*)`."""
    sources = [file.read_text(encoding="utf-8") for file in (ROOT / "bot").rglob("*.py")]
    assert [found for source in sources for found in re.findall(r"(?<!\\)\)(?:[*+?]|\{+\d*,?\d*\}+)\+.*", source)] == []


def test_watched_paths_exist() -> None:
    lines = (CI / "watched").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#") and not (ROOT / line).exists()] == []


def test_what_has_changed_since_the_last_full_run_is_due(tmp_path: Path) -> None:
    """A rebase drops the commit that was recorded, and a shallow clone has none but the newest: neither matters."""
    repository, shallow = tmp_path / "repository", tmp_path / "shallow"
    (repository / ".ci").mkdir(parents=True)
    for name in ("due", "watched"):
        (repository / ".ci" / name).symlink_to(CI / name)
    git(repository, "init", "-q")
    commit(repository, "requirements.txt")
    assert due(repository) == "requirements.txt\n"
    commit(repository, "tests/support/chaos/kills.py")
    (repository / ".ci" / "full-run").write_text(due(repository, "record"))
    git(repository, "add", ".ci")
    git(repository, "commit", "-q", "--amend", "-m", "rebased")
    for _ in range(3):
        commit(repository, "notes")
    assert due(repository) == ""
    git(repository, "clone", "-q", "--depth=1", f"file://{repository}", str(shallow))
    assert due(shallow) == ""
    commit(repository, "tests/support/chaos/kills.py")
    commit(repository, "tests/support/machine/new.py")
    assert due(repository) == "tests/support/chaos\ntests/support/machine\n"


def git(repository: Path, *arguments: str) -> None:
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {"PATH": os.environ["PATH"], "HOME": str(repository), **who}
    subprocess.run(("git", *arguments), cwd=repository, env=environment, capture_output=True, check=True)


def commit(repository: Path, path: str) -> None:
    file = repository / path
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as opened:
        opened.write("more\n")
    git(repository, "add", path)
    git(repository, "commit", "-q", "-m", path)


def due(repository: Path, *arguments: str) -> str:
    return subprocess.run((repository / ".ci" / "due", *arguments), capture_output=True, text=True, check=True).stdout


def code_lines(module: Path) -> int:
    """Returns the number of lines with code: without blanks, comments and docstrings."""
    source = module.read_text(encoding="utf-8")
    lines = {number for number, line in enumerate(source.splitlines(), 1) if line.strip() and line.strip()[0] != "#"}
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(lines)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yields those within a node; looking into expressions, too, would take five times as long."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield child
            yield from statements(child)


def test_images_that_others_made_are_named_by_digest() -> None:
    """A tag can lead to something else tomorrow."""
    deployed = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / ".deploy").rglob("*") if path.is_file())
    images = re.findall(r"docker\.io/[^\s\"']{1,200}", deployed)
    assert images
    assert [image for image in images if not re.search(r"@sha256:[0-9a-f]{64}$", image)] == []


def test_no_room_is_over_its_budget() -> None:
    budget = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pagehand"]["code-lines"]
    used: Counter[str] = Counter()
    for module in ROOT.glob("bot/**/*.py"):
        room, *inner = module.relative_to(ROOT / "bot").parts
        used[room if inner else "bot"] += code_lines(module)
    used["tests"] = sum(map(code_lines, ROOT.glob("tests/**/*.py")))
    assert set(used) == set(budget)
    assert {room: lines for room, lines in used.items() if lines > budget[room]} == {}
