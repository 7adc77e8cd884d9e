"""The words that people read in Slack: short, plain, escaped, and beside what they say."""

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

pytestmark = pytest.mark.promise("words")

BOT = Path(__file__).parents[3] / "bot"
NOTICES = sorted((BOT / "notices").glob("*.py"))
RENDERING = sorted((BOT / "slack/rendering").glob("*.py"))
CALLERS = [path for path in sorted((BOT / "slack").rglob("*.py")) if path not in RENDERING]
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
        "_which_project",
        "_preference",
        "_part",
        "_prompt",
        "wrong_option",
        "help_text",
        "_ask",
        "_capital",
        "_lines",
        "_facts",
        "joined",
        "word_meant",
        "tell",
        "__call__",
    }
)
"""Functions that build `Markup` from `Markup`, from their own marks, from numbers, and from our words."""
SHOWN = frozenset({"Markup", "button", "link_button", "plain_text", "paragraph", "section", "option", "confirmation"})
"""Functions that turn a text into something visible."""


@pytest.fixture(scope="module")
def table() -> Sequence[tuple[str, str]]:
    return [each for path in [*NOTICES, *RENDERING] for each in texts(path)]


def test_words_are_short_and_plain(table: Sequence[tuple[str, str]]) -> None:
    for place, words in table:
        assert len(SENTENCE.findall(words)) <= 2, (place, words)
        assert len(words) <= LONGEST, (place, words)
        assert JARGON.search(words) is None, (place, words)
        assert "  " not in words.strip(), (place, words)


def test_sentences_are_unique(table: Sequence[tuple[str, str]]) -> None:
    said = [words for _, words in table if SENTENCE.search(words)]
    assert {words for words in said if said.count(words) > 1} == set()


def test_no_words_are_written_elsewhere() -> None:
    """Only what is rendered is escaped, and found by whoever changes a text; not even a single word on a button."""
    outside = [
        f"{path.name}:{node.lineno} {ast.unparse(node)}"
        for path in CALLERS
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SHOWN
        if node.args and isinstance(node.args[0], ast.Constant | ast.JoinedStr) and ast.unparse(node) != "Markup('')"
    ]
    assert outside == []


@pytest.mark.full
def test_texts_of_others_are_escaped_in_one_module() -> None:
    """A placeholder takes only `Markup`: outside `text.py` it is only combined, in the functions here."""
    made = {
        function.name
        for path in [*CALLERS, *RENDERING, *NOTICES]
        if path.name != "text.py"
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Markup" and ast.unparse(node) != "Markup('')"
    }
    assert made <= PUT_TOGETHER


def texts(path: Path) -> Iterator[tuple[str, str]]:
    """Returns the texts of a module, without docstrings, patterns and exceptions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    silent = {id(each) for node in ast.walk(tree) if is_silent(node) for each in ast.walk(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in silent:
            continue
        if PROSE.search(node.value):
            yield f"{path.parent.name}/{path.name}:{node.lineno}", node.value


def is_silent(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Raise():
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr="compile")):
            return True
        case _:
            return False
