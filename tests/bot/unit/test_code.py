"""The size of the code as a whole."""

import ast
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[3]


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
    for module in ROOT.glob("bot/**/*.py"):
        room, *inner = module.relative_to(ROOT / "bot").parts
        used[room if inner else "bot"] += code_lines(module)
    used["tests"] = sum(map(code_lines, ROOT.glob("tests/**/*.py")))
    assert set(used) == set(budget)
    assert {room: lines for room, lines in used.items() if lines > budget[room]} == {}
