"""The README names the versions that the job server tells people to install, and that the tests run."""

from pathlib import Path

import pytest
from support.agents.packages import package_of

from bot.jobserver.agents.named import NAMED

README = Path(__file__).parents[2] / "bot" / "jobserver" / "README.md"


@pytest.mark.parametrize("name", sorted(NAMED))
def test_the_readme_names_the_version_of(name: str) -> None:
    package = package_of(NAMED[name])
    assert f"| `{name}` | `{package.name}` | {package.version} |" in README.read_text(encoding="utf-8")
