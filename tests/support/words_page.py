"""The table of all texts that people read in Slack, from its modules, and as a page."""

import ast
import html
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from types import ModuleType
from typing import Any

from bot.slack.rendering.words.template import PlainTemplate, Template

WORDS = Path(__file__).parents[2] / "bot/slack/rendering/words"
PAGES = ("names", "at_once", "help", "forms", "questions", "answers", "requests", "card", "job_news", "home")
"""The table's modules, in reading order."""


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


def modules() -> dict[str, ModuleType]:
    return {page: importlib.import_module(f"bot.slack.rendering.words.{page}") for page in PAGES}


def entries() -> list[Entry]:
    return [entry for page, module in modules().items() for entry in _of_page(page, module)]


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


def _of_page(page: str, module: ModuleType) -> Iterator[Entry]:
    for name in names(page):
        for key, words in _lines(getattr(module, name)):
            yield Entry(page, name, key, words)


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


def as_text() -> str:
    """The page as text."""
    made = []
    for page, module in modules().items():
        made.append(f"\n== {page.replace('_', ' ').capitalize()} ==\n{module.__doc__}\n")
        for entry in _of_page(page, module):
            label = f"{entry.name.lower().replace('_', ' ')}{f' / {entry.key}' if entry.key else ''}"
            made.append(f"{label:<50} | {entry.words.replace(chr(10), chr(10) + ' ' * 50 + ' | ')}")
    return "\n".join(made)


def as_html() -> str:
    """The page for a browser."""
    rows = []
    for page, module in modules().items():
        rows.append(f"<tr><th colspan=2><h2>{page.replace('_', ' ')}</h2>{html.escape(module.__doc__ or '')}</th></tr>")
        for entry in _of_page(page, module):
            label = html.escape(f"{entry.name.lower().replace('_', ' ')} {entry.key}")
            rows.append(f"<tr><td>{label}</td><td><pre>{html.escape(entry.words)}</pre></td></tr>")
    style = "body{font:14px sans-serif;max-width:60em}th{text-align:left}pre{white-space:pre-wrap;font:inherit}"
    head = f"<!doctype html><meta charset=utf-8><title>Words</title><style>{style}</style>"
    return f"{head}<table>{''.join(rows)}</table>"
