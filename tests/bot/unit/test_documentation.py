"""The documentation names existing things, its links resolve, and what Pagehand names is there."""

import re

import pytest
import yaml
from hatchling.builders.wheel import WheelBuilder
from support.promised import PROMISES, files_by_promise
from support.settings_page import PAGE, with_tables
from support.worlds.documented_commands import DOCUMENTS, ROOT

from bot.cli.main import main

PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in DOCUMENTS}
LINKS = [
    (name, link) for name, page in PAGES.items() for link in re.findall(r"\]\(([^)\s]+)\)", page) if "://" not in link
]
NAMED = re.compile(
    r"(?<![\w/])(?:bot/docs/\w+|(?:bot|tests|\.deploy|\.github)/(?:\w+/)*[A-Z]+|\.deploy/[\w.]+)\.(?:md|yml)\b"
)
"""A document or a file for deployment, as messages, help, units, alerts and comments name it: from the top."""


def headings(page: str) -> set[str]:
    """Returns the fragments of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_there_is_a_page_for_each_reader() -> None:
    of_readers = ("agents", "develop", "jobserver", "operate", "security", "settings", "slack", "start")
    beside = (".deploy/README.md", "README.md", "tests/README.md")
    of_github = (f".github/{name}.md" for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY"))
    assert set(PAGES) == {*(f"bot/docs/{name}.md" for name in of_readers), *beside, *of_github}


@pytest.mark.parametrize(("page", "link"), LINKS, ids=[f"{page}: {link}" for page, link in LINKS])
def test_every_link_resolves(page: str, link: str) -> None:
    path, _, fragment = link.partition("#")
    target = (ROOT / page).parent / path if path else ROOT / page
    assert target.exists()
    if fragment:
        assert fragment in headings(target.read_text(encoding="utf-8"))


def test_every_file_named_in_the_pages_exists() -> None:
    """By its path from the page's folder, or from the top or one of its rooms."""
    named = [
        (page, path)
        for page, text in PAGES.items()
        for path in re.findall(r"`((?:[\w.-]+/)+\w+\.(?:py|yml|js|txt|csv))`", text)
    ]
    places = ("", "bot", "bot/jobserver", "bot/workspace", "bot/workspace/page/static", "tests")
    assert len(named) > 50
    assert [each for each in named if not any((ROOT / place / each[1]).exists() for place in places)] == []


def test_every_document_that_the_repository_names_exists_and_is_in_the_wheel_if_pagehand_names_it() -> None:
    files = [path for folder in ("bot", "tests", ".deploy", ".github") for path in (ROOT / folder).rglob("*.*")]
    files += [*(ROOT / ".ci").iterdir(), *ROOT.glob("*.*"), ROOT / "Procfile"]
    endings = {"", ".css", ".html", ".js", ".json", ".md", ".py", ".service", ".timer", ".toml", ".yml"}
    named = {
        (path.relative_to(ROOT), name)
        for path in files
        if path.is_file() and path.suffix in endings
        for name in NAMED.findall(path.read_text(encoding="utf-8"))
    }
    shipped = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert len(named) > 20
    assert [each for each in named if not (ROOT / each[1]).exists()] == []
    assert [
        each for each in named if each[0].parts[0] == "bot" and each[0].suffix == ".py" and each[1] not in shipped
    ] == []


def test_the_page_of_the_settings_is_current() -> None:
    """Run `.venv/bin/python tests/support/settings_page.py`."""
    page = PAGE.read_text(encoding="utf-8")
    assert with_tables(page) == page


@pytest.mark.parametrize("name", list(main.commands))
def test_every_command_is_shown(name: str) -> None:
    assert any(f"pagehand {name}" in page for page in PAGES.values())


def test_every_scope_and_event_is_explained() -> None:
    manifest = yaml.safe_load((ROOT / "manifest.yml").read_text(encoding="utf-8"))
    scopes = manifest["oauth_config"]["scopes"]["bot"]
    events = manifest["settings"]["event_subscriptions"]["bot_events"]
    assert [name for name in (*scopes, *events) if f"`{name}`" not in PAGES["bot/docs/slack.md"]] == []


def test_every_promise_has_a_test_and_every_marker_a_promise() -> None:
    assert set(files_by_promise()) == set(PROMISES)


def test_tests_use_the_deployed_versions() -> None:
    deployed, tested = (
        set(re.findall(r"^([a-z0-9._-]+==\S+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))
        for name in ("requirements.txt", "tests/requirements.txt")
    )
    assert deployed < tested
