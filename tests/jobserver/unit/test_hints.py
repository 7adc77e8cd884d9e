"""How the built-in editor answers people who do not know its commands yet."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builtin_editor import work

from bot.jobserver.editors.builtin.files import WorkingFiles
from bot.jobserver.editors.builtin.hints import answer
from bot.jobserver.repository.sample import make_sample_repository

SITE = {
    "README.md": "# Lamp\n\nIts colour, in version 2.0. [Getting started](docs/getting-started.md)\n",
    "CHANGELOG.md": "# Changes\n\n## 1.0\n\nVersion 1.0 was the first.\n",
    "docs/getting-started.md": "# Getting started\n\nYou need version 2.0 of the app. Version 2.0 is out.\n",
    "docs/faq.md": "# FAQ\n\nAsk us. We recieve questions.\n",
}


def site(root: Path, files: Mapping[str, str] = SITE) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def reason(root: Path, prompt: str) -> str:
    """Asserts that nothing was changed, and returns the reason."""
    said = work(prompt, root)["reason"]
    assert {name: (root / name).read_text() for name in SITE} == SITE
    return said


def test_each_example_changes_something_here(tmp_path: Path) -> None:
    """The answer to "What can you do?" is made from the pages, and can be sent as it is."""
    told = work("What can you do?", site(tmp_path / "asked"))["summary"]
    prompts = re.findall(r"^- `(.+)`$", told, re.MULTILINE)
    assert len(prompts) >= 4
    for number, prompt in enumerate(prompts):
        assert "summary" in work(prompt, site(tmp_path / str(number))), prompt


@pytest.mark.parametrize(
    "prompt",
    [
        "What can you do?",
        "help",
        "Hi",
        "Hello!",
        "what can I ask you?",
        "Please help me",
        "show me examples",
        "How does this work?",
    ],
)
def test_questions_for_help_are_understood(tmp_path: Path, prompt: str) -> None:
    assert "These work on your pages:" in work(prompt, site(tmp_path))["summary"]


def test_without_pages_the_help_says_how_to_begin(tmp_path: Path) -> None:
    told = work("What can you do?", tmp_path)["summary"]
    assert re.findall(r"`(.+)`", told) == ['Add a page called "FAQ" with the text: Ask us anything.']


@pytest.mark.parametrize(
    ("prompt", "way"),
    [
        ("Make the intro shorter", "takes a coding agent"),
        ("Rewrite the FAQ for beginners", "takes a coding agent"),
        ("Translate the FAQ to German", "Translating takes a coding agent"),
        ("Merge the FAQ into the README", "takes a coding agent"),
        ("Delete the FAQ", "pages and sections take a coding agent"),
        ("Improve the grammar in the FAQ", "grammar takes a coding agent"),
        ("Add a note about dark mode to the FAQ", 'Add a section called "Dark mode" to "FAQ" with the text: …'),
        ("Add a note about dark mode to the manual", 'Add a page called "manual" with the text: …'),
        ("Write a page about dark mode", 'Add a page called "Dark mode" with the text: …'),
        ("Change colour to color in the guides", '`Replace "colour" with "color" in the guides`'),
        ("Rename the FAQ to Questions and answers and link it", 'Rename the "Old title" page to "New title"'),
        ("Update the docs", 'such as `Replace "colour" with "color" in README.md`'),
        ('Replace "colour" with "color" and make the intro shorter', '"make the intro shorter" was not understood'),
    ],
)
def test_prompts_that_need_judgement_are_explained_with_a_way_to_an_agent(
    tmp_path: Path, prompt: str, way: str
) -> None:
    said = reason(site(tmp_path), prompt)
    assert way in said
    assert "\n" not in said
    assert len(said) < 300


@pytest.mark.parametrize(
    ("prompt", "way"),
    [
        ("Add a note about dark mode to the FAQ", "Add a section called"),
        ("Add a note about dark mode to the manual", "Add a page called"),
        ("Change colour to color in the README", "Replace"),
    ],
)
def test_the_suggested_prompt_works(tmp_path: Path, prompt: str, way: str) -> None:
    (shown,) = re.findall(r"`(.+)`", reason(site(tmp_path), prompt))
    assert shown.startswith(way)
    assert "summary" in work(shown.replace("…", "It is dark."), tmp_path)


@given(st.text() | st.text(alphabet=" \"'“”`.,:\nadefghilmnoprtwx", max_size=500))
def test_any_prompt_gets_a_short_answer(tmp_path_factory: pytest.TempPathFactory, prompt: str) -> None:
    files = WorkingFiles(tmp_path_factory.getbasetemp() / "empty")
    assert 0 < len(answer(prompt, prompt, files).text) < 900


@pytest.fixture(scope="module")
def handbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the demo's initial pages."""
    made = tmp_path_factory.mktemp("handbook")
    copy = made / "copy"
    subprocess.run(["git", "clone", "--quiet", make_sample_repository(made), copy], check=True)
    shutil.rmtree(copy / ".git")
    return copy


def said_in_the_demo(handbook: Path, copy: Path, prompt: str) -> tuple[str, str, set[str]]:
    """Returns the answer to a prompt, its kind, and the changed files."""
    shutil.copytree(handbook, copy)
    ((kind, said),) = work(prompt, copy).items()
    before, after = (
        {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (handbook, copy)
    )
    return kind, said, {name for name in {*before, *after} if before.get(name) != after.get(name)}


RENAMED = {"README.md", "docs/getting-started.md", "docs/quickstart.md"}
WAY = 'No page is called "FAQ"; write the text, and it is made: `Add a page called "FAQ" with the text: …`.'
FIRST_PROMPTS: Mapping[str, tuple[str, str, set[str]]] = {
    "What can you do?": ("summary", "These work on your pages:", set()),
    "Rename the getting started page to Quickstart": ("summary", "Renamed docs/getting-started.md", RENAMED),
    "Update the version to 2.1 everywhere": ("reason", '`Replace "version 1.0" with "version 2.1"`', set()),
    "Add a note about dark mode to the FAQ": ("reason", WAY, set()),
    "Make the intro shorter": ("reason", "takes a coding agent (in the demo `--agent`", set()),
    "Fix the typos in the README": ("reason", "Misspellings may be in docs/getting-started.md", set()),
}


@pytest.mark.parametrize("prompt", FIRST_PROMPTS)
def test_typical_first_prompts_in_the_demo_are_done_or_explained(handbook: Path, tmp_path: Path, prompt: str) -> None:
    expected, words, changed = FIRST_PROMPTS[prompt]
    kind, said, files = said_in_the_demo(handbook, tmp_path / "copy", prompt)
    assert (kind, files) == (expected, changed)
    assert words in said


def test_all_initial_suggestions_of_the_demo_work(handbook: Path, tmp_path: Path) -> None:
    _, told, _ = said_in_the_demo(handbook, tmp_path / "asked", "What can you do?")
    prompts = re.findall(r"^- `(.+)`$", told, re.MULTILINE)
    assert len(prompts) == 5
    for number, prompt in enumerate(prompts):
        kind, said, changed = said_in_the_demo(handbook, tmp_path / str(number), prompt)
        assert kind == "summary", said
        assert changed, prompt
