"""The product stays in pieces that fit in a head: short functions, small modules, tables that say each thing once."""

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

BOT = Path(__file__).parents[3] / "bot"
MODULES = sorted(BOT.rglob("*.py"))


def functions(module: Path) -> Iterator[tuple[str, int]]:
    """Each function with its length in lines, from its `def` on."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{module.relative_to(BOT)}:{node.lineno} {node.name}", (node.end_lineno or 0) - node.lineno + 1


def test_most_functions_are_short_and_none_is_long() -> None:
    lengths = dict(found for module in MODULES for found in functions(module))
    assert median(lengths.values()) <= 6
    assert quantiles(lengths.values(), n=10)[-1] <= 16
    assert {name: lines for name, lines in lengths.items() if lines > 40} == {}


def test_no_module_is_over_300_lines() -> None:
    lengths = {str(module.relative_to(BOT)): len(module.read_text(encoding="utf-8").splitlines()) for module in MODULES}
    assert {name: lines for name, lines in lengths.items() if lines > 300} == {}


def test_no_table_has_a_key_twice() -> None:
    """The first of the two would not count, without a word."""
    tables = [
        (f"{module.relative_to(BOT)}:{node.lineno}", [ast.dump(key) for key in node.keys if key is not None])
        for module in MODULES
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Dict)
    ]
    assert [place for place, keys in tables if len(keys) != len(set(keys))] == []
