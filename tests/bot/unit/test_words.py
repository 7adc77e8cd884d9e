"""The table of texts: short, plain, complete, and the only place of texts that people read in Slack."""

import ast
import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from bot.slack.rendering.words.template import PlainTemplate, Template

pytestmark = pytest.mark.promise("words")

WORDS = Path(__file__).parents[3] / "bot/slack/rendering/words"
NOTICES = WORDS.parents[2] / "notices"
PAGES = sorted({path.stem for path in WORDS.glob("*.py")} - {"__init__", "template"})


@dataclass(frozen=True)
class Entry:
    """A row of the table. `name` is its constant, `key` its key if that is a table itself."""

    page: str
    name: str
    key: str
    words: str

    @property
    def gaps(self) -> frozenset[str]:
        return frozenset(gap for _, gap, _, _ in Formatter().parse(self.words) if gap is not None)


def names(page: str) -> list[str]:
    """The constants of one module, from top to bottom."""
    tree = ast.parse((WORDS / f"{page}.py").read_text(encoding="utf-8"))
    targets = [
        target
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def entries() -> Iterator[Entry]:
    for page in PAGES:
        module = importlib.import_module(f"bot.slack.rendering.words.{page}")
        for name in names(page):
            for key, words in _lines(getattr(module, name)):
                yield Entry(page, name, key, words)


def notice_entries() -> Iterator[Entry]:
    """The texts of the notices, each beside its data."""
    for path in sorted(NOTICES.glob("*.py")):
        for line, words in texts(path):
            if PROSE.search(words):
                yield Entry(f"notices/{path.stem}", str(line), "", words)


def _lines(value: Any) -> Iterator[tuple[str, str]]:
    match value:
        case Template() | PlainTemplate():
            yield "", value.words
        case str():
            yield "", value
        case Mapping():
            for key, each in value.items():
                for _, words in _lines(each):
                    yield str(key), words
        case tuple():
            for each in value:
                yield from _lines(each)
        case _:
            raise TypeError(f"no words: {value!r}")


RENDERING = WORDS.parent
USERS = [path for path in sorted((WORDS.parents[2] / "slack").rglob("*.py")) if path.parent != WORDS]
LONGEST = 230
JARGON = re.compile(
    r"\bjob api\b|idempoten|\blease|\boutbox\b|\bephemeral|\bpayload|\bendpoint|\bwebhook|\bof that very\b"
    r"|\bit is not known\b|\bnobody knows\b|\btoken\b|\bpolls?\b|\btimeout\b|\bworkers?\b|\bAPI\b",
    re.IGNORECASE,
)
SENTENCE = re.compile(r"[.!?](?=\s|\*|\Z)")
PROSE = re.compile(r"[A-Za-z]{2,}[,:;]? [a-z]{2,}")
PUT_TOGETHER = frozenset(
    {
        "checklist",
        "_first_lines",
        "_link",
        "_capital",
        "_lines",
        "joined",
        "word_meant",
        "tell",
        "__call__",
        "known_refusal",
    }
)
"""Functions that build `Markup` from `Markup`, from their own marks, from numbers, and from our words."""
SHOWN = frozenset({"button", "link_button", "plain_text", "paragraph", "section", "option", "confirmation"})
"""Functions that turn a text into something visible."""
FILLED_IN_A_LOOP = frozenset({"HELP"})
"""Lines of one message, covered by the tests of the help."""


def test_entries_are_short_and_plain() -> None:
    for entry in [*TABLE, *NOTICE_TABLE]:
        assert len(SENTENCE.findall(entry.words)) <= 2, entry
        assert len(entry.words) <= LONGEST, entry
        assert JARGON.search(entry.words) is None, entry
        assert "  " not in entry.words.strip(), entry


def test_entries_are_unique() -> None:
    """A repeated text has one entry; a label may be used for several things."""
    said = [entry.words for entry in [*TABLE, *NOTICE_TABLE] if SENTENCE.search(entry.words)]
    assert {words for words in said if said.count(words) > 1} == set()


def test_every_entry_is_used() -> None:
    used = {(page, name) for page, name, _ in uses()}
    assert {(page, name) for page in PAGES for name in names(page)} - used == set()


def test_every_placeholder_is_filled() -> None:
    """A call fills the entry's placeholders; for a table of entries, those of any of them."""
    gaps: dict[tuple[str, str], set[str]] = {}
    for entry in TABLE:
        gaps.setdefault((entry.page, entry.name), set()).update(entry.gaps)
    wrong = [
        (page, name, given) for page, name, given in uses() if given is not None and set(given) != gaps[page, name]
    ]
    assert wrong == []


def test_entries_with_placeholders_are_called_where_chosen() -> None:
    """So that the test above sees the arguments of each call."""
    called = {(page, name) for page, name, given in uses() if given is not None}
    with_gaps = {(entry.page, entry.name) for entry in TABLE if entry.gaps and entry.name not in FILLED_IN_A_LOOP}
    assert with_gaps - called == set()


def test_no_messages_are_written_elsewhere() -> None:
    """In `bot.slack.rendering`, a text of several words is an entry of the table, or not for people."""
    outside = [
        f"{path.name}:{line} {text!r}"
        for path in sorted(RENDERING.glob("*.py"))
        for line, text in texts(path)
        if PROSE.search(text)
    ]
    assert outside == []


def test_no_labels_are_written_elsewhere() -> None:
    """Not even a single word on a button."""
    outside = [
        f"{path.name}:{node.lineno} {ast.unparse(node)}"
        for path in sorted(RENDERING.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SHOWN
        if node.args and isinstance(node.args[0], ast.Constant)
    ]
    assert outside == []


def test_texts_of_others_are_escaped_in_one_module() -> None:
    """A placeholder takes only `Markup`: outside `text.py` and the table it is only combined, in the functions here."""
    made = {
        function.name
        for path in [*USERS, *NOTICES.glob("*.py")]
        if path.name != "text.py"
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Markup" and ast.unparse(node) != "Markup('')"
    }
    assert made <= PUT_TOGETHER


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Returns the texts of a module, without docstrings, patterns and exceptions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    silent = {id(each) for node in ast.walk(tree) if is_silent(node) for each in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node.lineno, node.value


def is_silent(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Raise():
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr="compile")):
            return True
        case _:
            return False


def uses() -> Iterator[tuple[str, str, tuple[str, ...] | None]]:
    """Returns each use of an entry in `bot/slack`: its page, its name, and the placeholders filled by the call."""
    for path in USERS:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = dict(imports(tree))
        calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
        calls |= {
            id(node.func.value): node
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)
        }
        for node in ast.walk(tree):
            found = entry_named(node, imported)
            if found is not None:
                call = calls.get(id(node))
                yield *found, None if call is None else tuple(each.arg or "" for each in call.keywords)


def imports(tree: ast.Module) -> Iterator[tuple[str, tuple[str, str]]]:
    """Returns what a module imports from the table: a page, or an entry."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bot.slack.rendering.words"):
            page = (node.module or "").removeprefix("bot.slack.rendering.words").removeprefix(".")
            for alias in node.names:
                yield alias.asname or alias.name, (page, alias.name) if page else (alias.name, "")


def entry_named(node: ast.AST, imported: dict[str, tuple[str, str]]) -> tuple[str, str] | None:
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=attr) if imported.get(name, ("", "x"))[1] == "":
            return imported[name][0], attr
        case ast.Name(id=name, ctx=ast.Load()) if imported.get(name, ("", ""))[1]:
            return imported[name]
        case _:
            return None


TABLE = list(entries())
NOTICE_TABLE = list(notice_entries())
