"""The documentation names existing things, and its links resolve."""

import re
from pathlib import Path

import pytest
import yaml

from bot.app.settings.config import Config
from bot.cli.main import main
from bot.jobserver.settings import JobServerSettings

ROOT = Path(__file__).parents[3]
PAGES = {
    str(page.relative_to(ROOT)): page.read_text(encoding="utf-8")
    for folder in (".", ".deploy", ".github", "bot", "bot/jobserver", "bot/workspace", "tests")
    for page in sorted((ROOT / folder).glob("*.md"))
}
LINKS = [
    (name, link) for name, page in PAGES.items() for link in re.findall(r"\]\(([^)\s]+)\)", page) if "://" not in link
]


def headings(page: str) -> set[str]:
    """Returns the fragments of a page's headings, as GitHub makes them, and of its own anchors."""
    titles = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    anchors = re.findall(r'<a id="([\w-]+)"></a>', page)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles} | set(anchors)


def test_there_is_a_page_for_each_part() -> None:
    assert set(PAGES) == {
        "README.md",
        ".deploy/README.md",
        ".github/CHANGELOG.md",
        ".github/CONTRIBUTING.md",
        ".github/SECURITY.md",
        "bot/OPERATING.md",
        "bot/README.md",
        "bot/jobserver/README.md",
        "bot/workspace/README.md",
        "tests/README.md",
    }


@pytest.mark.parametrize(("page", "link"), LINKS, ids=[f"{page}: {link}" for page, link in LINKS])
def test_every_link_resolves(page: str, link: str) -> None:
    path, _, fragment = link.partition("#")
    target = (ROOT / page).parent / path if path else ROOT / page
    assert target.exists()
    if fragment:
        assert fragment in headings(target.read_text(encoding="utf-8"))


def test_every_file_named_in_the_pages_exists() -> None:
    """By its path from the page's folder, or from the top, `bot/` or `tests/`."""
    named = [
        (page, path)
        for page, text in PAGES.items()
        if "CHANGELOG" not in page
        for path in re.findall(r"`((?:[\w-]+/)+\w+\.py)`", text)
    ]
    places = ("", "bot", "tests")
    assert len(named) > 100
    assert [
        (page, path)
        for page, path in named
        if not any((ROOT / place / path).exists() for place in (*places, Path(page).parent))
    ] == []


@pytest.mark.parametrize("name", [str(field.alias) for field in Config.model_fields.values()])
def test_every_setting_is_in_the_table(name: str) -> None:
    assert re.search(rf"^\|[^|]*`{name}`", PAGES["bot/README.md"], re.MULTILINE)


@pytest.mark.parametrize("name", list(JobServerSettings.model_fields))
def test_every_setting_of_the_job_server_is_in_its_table(name: str) -> None:
    assert re.search(rf"^\|[^|]*`{name.upper()}`", PAGES["bot/jobserver/README.md"], re.MULTILINE)


@pytest.mark.parametrize("name", list(main.commands))
def test_every_command_is_shown(name: str) -> None:
    assert any(f"pagehand {name}" in page for page in PAGES.values())


def test_every_scope_and_event_is_explained() -> None:
    manifest = yaml.safe_load((ROOT / "manifest.yml").read_text(encoding="utf-8"))
    scopes = manifest["oauth_config"]["scopes"]["bot"]
    events = manifest["settings"]["event_subscriptions"]["bot_events"]
    assert [name for name in (*scopes, *events) if f"`{name}`" not in PAGES["bot/README.md"]] == []


def test_tests_use_the_deployed_versions() -> None:
    deployed, tested = (
        set(re.findall(r"^([a-z0-9._-]+==\S+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))
        for name in ("requirements.txt", "tests/requirements.txt")
    )
    assert deployed < tested
