"""The imports of a command line before any command is called: as few as possible."""

import asyncio
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from bot.cli.main import main
from bot.cli.starting import MODULES, Extra
from bot.store.schema.migration import migrate

ROOT = Path(__file__).parents[3]
LIGHT = {"bot", "bot.cli", "bot.cli.main", "bot.cli.starting", "bot.errors"}
IMPORTED = """
import atexit, json, sys
before = set(sys.modules)  # what the environment itself starts with
from bot.cli.main import main
new = lambda: set(sys.modules) - before
others = lambda: [name for name in new() if name.partition(".")[0] not in sys.stdlib_module_names]
atexit.register(lambda: print(json.dumps(others()), file=sys.stderr))
sys.argv[0] = "pagehand"
main()
"""
MISSING = """
import sys
sys.modules[sys.argv.pop(1)] = None
from bot.cli.main import main
main()
"""


def python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs it in a new process, where nothing is imported yet."""
    return subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{program}", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.first(arguments=2)
@pytest.mark.parametrize(
    "arguments", [("--version",), ("--help",), *((name, "--help") for name in main.commands)], ids=" ".join
)
def test_help_imports_only_click(arguments: tuple[str, ...]) -> None:
    """Not slack_bolt, SQLAlchemy, aiohttp or pydantic: these make a start slow."""
    ended = python(IMPORTED, *arguments)
    assert ended.returncode == 0
    imported = set(json.loads(ended.stderr))
    assert {name for name in imported if name.partition(".")[0] == "bot"} == LIGHT
    assert {name.partition(".")[0] for name in imported} - {"__main__"} == {"bot", "click"}


OPENED = """
import asyncio
import bot.cli.backup, bot.cli.database, bot.cli.personal_data, bot.cli.run
from bot.store.store import open_store
async def opened(url):
    await (await open_store(url)).close()
asyncio.run(opened(sys.argv[1]))
print(sorted({"alembic", "asyncpg", "mako"} & set(sys.modules)))
"""


def test_every_command_has_a_one_line_summary() -> None:
    assert [name for name, command in main.commands.items() if not command.get_short_help_str()] == []


@pytest.mark.first(module=2)
@pytest.mark.parametrize(("command", "module"), [(name, module) for name in get_args(Extra) for module in MODULES])
def test_a_command_with_a_missing_extra_says_what_to_install(command: Extra, module: str) -> None:
    ended = python(MISSING, module, command)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"`pagehand {command}` needs packages that are not installed. Install them:")
    for what in ("-r requirements.txt", f"'PATH[{command}]'"):
        assert f"{sys.executable} -m pip install {what}" in ended.stderr
    assert (ROOT / "requirements.txt").is_file(), "no package of this name is published"


def test_the_extras_match_the_package() -> None:
    """`typos` is a program, and some packages have another import name."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    imported = {"agent-client-protocol": "acp", "pyjwt": "jwt"}
    named = [re.split(r"[\[<>=]", requirement)[0] for requirement in extras["jobserver"]]
    modules = [imported.get(name, name.replace("-", "_")) for name in named if name != "typos"]
    assert sorted(modules) == sorted(MODULES)
    assert extras["demo"] == ["pagehand[jobserver]"]


@pytest.mark.full
def test_the_bot_needs_no_extra_and_starts_without_what_it_does_not_use(tmp_path: Path) -> None:
    """Migrations and PostgreSQL's driver are only imported when they are used."""
    url = f"sqlite:///{tmp_path}/pagehand.sqlite3"
    asyncio.run(migrate(url))
    absent = f"sys.modules |= dict.fromkeys({MODULES!r})"
    ended = python(f"{absent}\n{OPENED}", url)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[]\n", "")
