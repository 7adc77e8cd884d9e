"""Which agents' programs the tests run, and what happens to those that are unavailable."""

from pathlib import Path

import pytest
from support.agents.packages import NotInstalled, Package, package_of, program_folder

from bot.jobserver.agents.named import NAMED

PAGE = Path(__file__).parents[3] / "bot" / "docs" / "agents.md"
PACKAGE = Package("@some/agent", "1.2.3", "agent")
INSTALLS = """#!/bin/sh
eval folder=\\${$(($# - 1))}
mkdir -p "$folder/node_modules/.bin"
echo agent > "$folder/node_modules/.bin/agent"
echo once >> "$XDG_CACHE_HOME/calls"
"""
FAILS = """#!/bin/sh
echo once >> "$XDG_CACHE_HOME/calls"
exit 1
"""


@pytest.mark.parametrize("name", sorted(NAMED))
def test_the_documentation_names_the_version_of(name: str) -> None:
    package = package_of(NAMED[name])
    assert f"| `{name}` | `{package.name}` | {package.version} |" in PAGE.read_text(encoding="utf-8")


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns where a program called npm would be found, with an empty cache."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "bin" / "npm"


def put(npm: Path, text: str) -> None:
    npm.write_text(text)
    npm.chmod(0o755)


def calls(npm: Path) -> int:
    return (npm.parents[1] / "calls").read_text().count("once")


def test_a_package_is_installed_once(npm: Path) -> None:
    put(npm, INSTALLS)
    assert program_folder(PACKAGE) == program_folder(PACKAGE)
    assert (program_folder(PACKAGE) / "agent").exists()
    assert calls(npm) == 1


def test_a_package_that_cannot_be_installed_is_reported_and_not_retried(npm: Path) -> None:
    put(npm, FAILS)
    for _ in range(2):
        with pytest.raises(NotInstalled, match=r"npm could not install @some/agent 1\.2\.3"):
            program_folder(PACKAGE)
    assert calls(npm) == 1
