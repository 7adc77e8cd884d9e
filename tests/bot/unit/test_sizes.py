"""A function is one thought and a module one subject: both stay readable."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

BOT = Path(__file__).parents[3] / "bot"
MODULES = sorted(BOT.rglob("*.py"))


@cache
def parsed(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))


def functions(module: Path) -> Iterator[tuple[str, int]]:
    """Returns each function with its length in lines, from its `def`."""
    for node in ast.walk(parsed(module)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{module.relative_to(BOT)}:{node.lineno} {node.name}", (node.end_lineno or 0) - node.lineno + 1


def test_no_function_is_over_50_lines() -> None:
    """Except in migrations, which are lists."""
    lengths = dict(found for module in MODULES if module.parent.name != "versions" for found in functions(module))
    assert {name: lines for name, lines in lengths.items() if lines > 50} == {}


def test_no_module_is_over_400_lines() -> None:
    lengths = {str(module.relative_to(BOT)): len(module.read_text(encoding="utf-8").splitlines()) for module in MODULES}
    assert {name: lines for name, lines in lengths.items() if lines > 400} == {}


def test_no_folder_has_over_16_modules() -> None:
    counts = Counter(
        str(module.parent.relative_to(BOT)) for module in MODULES if module.name not in {"__init__.py", "__main__.py"}
    )
    assert {folder: count for folder, count in counts.items() if count > 16} == {}


def test_few_modules_are_small_pieces_of_another() -> None:
    """A module under 60 lines that only a neighbour imports belongs there, except for
    commands and families of methods.
    """
    importers: dict[str, set[Path]] = defaultdict(set)
    names = {".".join(module.relative_to(BOT.parent).with_suffix("").parts): module for module in MODULES}
    for module in MODULES:
        for node in ast.walk(parsed(module)):
            if isinstance(node, ast.ImportFrom) and node.module:
                for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                    importers[name].add(module)
    pieces = [
        name
        for name, module in names.items()
        if len(module.read_text(encoding="utf-8").splitlines()) < 60
        and [each.parent for each in importers[name]] == [module.parent]
    ]
    assert len(pieces) <= 10, pieces


def test_no_table_has_a_key_twice() -> None:
    """Python silently ignores the first of the two."""
    tables = [
        (f"{module.relative_to(BOT)}:{node.lineno}", [ast.dump(key) for key in node.keys if key is not None])
        for module in MODULES
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.Dict)
    ]
    assert [place for place, keys in tables if len(keys) != len(set(keys))] == []
