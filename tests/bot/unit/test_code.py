"""The code as a whole: its size, and mistakes that Python ignores in silence."""

import ast
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[3]
MODULES = sorted(ROOT.glob("bot/**/*.py"))


def code_lines(module: Path) -> int:
    """Returns the number of lines with code: without blanks, comments and docstrings."""
    source = module.read_text(encoding="utf-8")
    lines = {number for number, line in enumerate(source.splitlines(), 1) if line.strip() and line.strip()[0] != "#"}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(lines)


def test_no_room_is_over_its_budget() -> None:
    budget = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pagehand"]["code-lines"]
    used: Counter[str] = Counter()
    for module in MODULES:
        room, *inner = module.relative_to(ROOT / "bot").parts
        used[room if inner else "bot"] += code_lines(module)
    used["tests"] = sum(map(code_lines, ROOT.glob("tests/**/*.py")))
    assert set(used) == set(budget)
    assert {room: lines for room, lines in used.items() if lines > budget[room]} == {}


def test_no_table_has_a_key_twice() -> None:
    """Python silently ignores the first of the two."""
    tables = [
        (f"{module.relative_to(ROOT)}:{node.lineno}", [ast.dump(key) for key in node.keys if key is not None])
        for module in MODULES
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Dict)
    ]
    assert [place for place, keys in tables if len(keys) != len(set(keys))] == []
