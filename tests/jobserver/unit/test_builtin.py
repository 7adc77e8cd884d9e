"""What the built-in editor does to files, and what it never changes."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builtin_editor import work
from support.fakes.fake_progress import FakeProgress

from bot.jobserver.documents.parsing import parse_page
from bot.jobserver.editors.builtin.editor import BuiltinEditor
from bot.jobserver.editors.builtin.files import WorkingFiles
from bot.jobserver.editors.builtin.places import find_page, find_place, most_common_suffix
from bot.jobserver.editors.builtin.replacement import OTHER_WORDS, LinkedAnchors, Replacement, replace_in_page
from bot.jobserver.editors.builtin.typos import parse_report
from bot.jobserver.editors.interface import EditResult, EditTask
from bot.jobserver.errors import EditError
from bot.jobserver.sandbox.interface import Workspace

FILES = {
    "README.md": "# Lamp\n\nA colour. See [colours](docs/colour.md).\n",
    "docs/start.md": "# Getting started\r\n\r\nThe colour is teh best.\r\n",
    "docs/guides/one.md": "# One\n\nIts colour.\n\n```\nteh code\n```\n\nUse `teh` and recieve it.\n",
    "src/main.py": "colour = 'teh'\n",
    "requirements.txt": "colour==1\n",
    ".git/description.md": "colour",
    "docs/.git/config.txt": "colour",
    "docs/latin.md": "",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "repository", FILES)
    (tmp_path / "repository/docs/latin.md").write_bytes("colour é".encode("latin-1"))
    return tmp_path / "repository"


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode())
    return root


def edit(root: Path, prompt: str) -> str:
    """Does what the editor's process does, without the process."""
    answer = work(prompt, root)
    assert "error" not in answer
    return answer.get("summary", answer.get("reason", ""))


def changed(root: Path, files: Mapping[str, str] = FILES) -> dict[str, str]:
    found = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    return {
        name: data.decode()
        for name, data in found.items()
        if name != "docs/latin.md" and files.get(name, "") != data.decode()
    }


def test_replace_changes_only_pages_and_keeps_links(root: Path) -> None:
    summary = edit(root, 'Replace "colour" with "color"')
    assert changed(root) == {
        "README.md": "# Lamp\n\nA color. See [colours](docs/colour.md).\n",
        "docs/start.md": "# Getting started\r\n\r\nThe color is teh best.\r\n",
        "docs/guides/one.md": "# One\n\nIts color.\n\n```\nteh code\n```\n\nUse `teh` and recieve it.\n",
    }
    assert summary == (
        'Replaced "colour" with "color": 3 places in 3 files. '
        '1 place in other words ("colours") and 1 in links were left as they were (README.md).'
    )
    assert (root / "docs/latin.md").read_bytes() == "colour é".encode("latin-1")


@pytest.mark.parametrize(
    ("place", "names"),
    [("guides", ["docs/guides/one.md"]), ("the guide", ["docs/guides/one.md"]), ("README", ["README.md"]),
     ("docs/start.md", ["docs/start.md"]), ("./docs/guides/", ["docs/guides/one.md"]),
     ("docs", ["docs/guides/one.md", "docs/start.md"]), ("handbook", []), ("../repository/README.md", []),
     ("/etc", []), ("docs/../README.md", []), (".git", []), ("src", []), ("getting started", ["docs/start.md"]),
     ("guides/one", ["docs/guides/one.md"])],
)  # fmt: skip
def test_a_place_is_a_path_name_or_title_in_the_repository(root: Path, place: str, names: list[str]) -> None:
    edit(root, f'Replace "colour" with "color" in {place}')
    assert sorted(changed(root)) == names


QUICKSTARTS = {
    "es/quickstart.mdx": "# Inicio\n\ncolour\n",
    "guides/deep/quickstart.mdx": "# Deep\n\ncolour\n",
    "quickstart.mdx": "# Start\n\ncolour\n",
}


def test_the_nearest_quickstart_is_chosen_and_named(tmp_path: Path) -> None:
    root = write(tmp_path, QUICKSTARTS)
    summary = edit(root, 'Replace "colour" with "color" in the quickstart')
    assert list(changed(root, QUICKSTARTS)) == ["quickstart.mdx"]
    assert summary.endswith(
        '"quickstart" was taken to be quickstart.mdx; '
        "guides/deep/quickstart.mdx, es/quickstart.mdx have that name, too."
    )
    edit(root, "Add a section called New to the quickstart with the text: x")
    assert list(changed(root, QUICKSTARTS)) == ["quickstart.mdx"]
    edit(root, 'Replace "colour" with "color" in es/quickstart')
    assert sorted(changed(root, QUICKSTARTS)) == ["es/quickstart.mdx", "quickstart.mdx"]


def test_spelling_is_fixed_in_prose_not_in_code(root: Path) -> None:
    edit(root, "Fix the spelling")
    assert changed(root) == {
        "docs/start.md": "# Getting started\r\n\r\nThe colour is the best.\r\n",
        "docs/guides/one.md": FILES["docs/guides/one.md"].replace("recieve", "receive"),
    }


UNTOUCHED = """---
title: How to recieve
slug: recieve
---
import { Recieve } from '/snippets/recieve.mdx'

# The pages that you recieve

See [this](/recieve) and [that](#recieve), `recieve`, <code>recieve</code>, https://a.example/recieve, --recieve,
RECIEVE, $RECIEVE, recieve_all, recieveAll, recieve.md, a/recieve and <Card title="recieve" href="recieve" />.

<Steps>
    <Step>
        ```bash
        recieve
        ```
    </Step>
</Steps>

It is what "recieve" means, and the Recieve is not it.
"""
SPANISH = "# Inicio\n\nEs posible que el comando necesite mas tiempo para los projectos, por ejemplo en las paginas.\n"
FRENCH = "# Début\n\nLe projet est dans le dossier des examples, et vous pouvez le modifier avec les adresses.\n"


def test_names_links_code_and_other_languages_are_not_corrected(tmp_path: Path) -> None:
    files = {
        "a.mdx": UNTOUCHED,
        "b.md": SPANISH,
        "fr/c.md": FRENCH,
        "d.md": "The [x](a.mdx#the-pages-that-you-recieve).\n",
    }
    root = write(tmp_path, files)
    answer = work("Fix the spelling", root)
    assert changed(root, files) == {}
    assert "summary" not in answer
    assert "2 pages not surely in English were left alone." in answer["reason"]
    assert '- "recieve" in a.mdx, line 7 (receive?)' in answer["reason"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("You can recieve it.\n", "You can receive it.\n"),
        ("\ufeffYou can recieve it.\r\n\r\n- and _recieve_ (recieve)",
         "\ufeffYou can receive it.\r\n\r\n- and _receive_ (receive)"),
        ("It is done. Recieve it with this.\n", "It is done. Receive it with this.\n"),
        ("# Recieve it with this\n", "# Receive it with this\n"),
        ("It is for Recieve and the others.\n", None),
        ("It is for thes and the others.\n", None),
        ("It is for recieve-mode and the others.\n", None),
        ("It is to constructo\u2026 the others.\n", None),
        ("It is what they are tryin' to do.\n", None),
        ("It is the recieve that we recieve and recieve, recieve, recieve and recieve with.\n", None),
        ("It is to recieve. Use `recieve` for that.\n", None),
        ("We corrected recieved to received in the page.\n", None),
        ("Renamed the event: recieved \u2192 Received.\n", None),
        ("We changed teh \u2192 the in the page.\n", None),
        ("We fixed a typo in the page: recieve.\n", None),
        ("It is discernable, invokable and writeable for us.\n", None),
        ("It is the title. As for this: \u00abEl comando necesita mas tiempo para los projectos recieve\u00bb\n", None),
    ],
)  # fmt: skip
def test_only_certain_words_are_corrected_byte_for_byte(tmp_path: Path, text: str, expected: str | None) -> None:
    root = write(tmp_path, {"a.md": text})
    edit(root, "Fix the spelling")
    assert (root / "a.md").read_bytes().decode() == (text if expected is None else expected)


def test_a_linked_heading_keeps_its_text(tmp_path: Path) -> None:
    files = {
        "a.md": "# One colour\n\n## Two colour {#two}\n\n## Three colour\n",
        "b.md": "[x](a.md#one-colour) [y](a.md#two)\n",
    }
    root = write(tmp_path, files)
    summary = edit(root, 'Replace "colour" with "color"')
    assert changed(root, files) == {"a.md": "# One colour\n\n## Two color {#two}\n\n## Three color\n"}
    assert "1 place in headings that links point to and 1 in links were left as they were" in summary


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("Be nice", "Nothing was changed. I make exact changes only, such as `Replace"),
        ('Replace "colour" with "color" and be nice', '"be nice" was not understood, so nothing was changed.'),
        ('Replace "nowhere" with "x"', 'Replaced "nowhere" with "x": nothing to change.'),
        ('Replace "code" with "x"', "1 place in code was left as it was (docs/guides/one.md)."),
        ('Replace "a" with "b" in the attic', 'nothing, as no page or folder is called "attic".'),
        ('Add a page called "Start" in docs with the text: x', "No page added: there already is docs/start.md."),
    ],
)
def test_an_empty_result_has_a_reason(root: Path, prompt: str, reason: str) -> None:
    answer = work(prompt, root)
    assert "summary" not in answer
    assert reason in answer["reason"]
    assert changed(root) == {}


def test_a_new_page_goes_among_pages_and_overwrites_none(root: Path) -> None:
    prompt = "Add a page called FAQ & more! with the text: Ask us.\n\nAnything."
    way = '`Add a page called "FAQ & more!" in docs/guides with the text: …`'
    assert edit(root, prompt) == f"Added the page docs/faq-more.md. It could be in `docs/guides` as well: {way}."
    assert edit(root, prompt) == "No page added: there already is docs/faq-more.md."
    assert changed(root) == {"docs/faq-more.md": "# FAQ & more!\n\nAsk us.\n\nAnything.\n"}
    assert edit(root, 'Add a page called "Two" in guides with the text: x') == "Added the page docs/guides/two.md."
    assert "no folder" in edit(root, 'Add a page called "Two" in ../.. with the text: x')


MINTLIFY = """{
  "navigation": { "tabs": [ {"tab": "Guides", "groups": [
    { "group": "Start", "pages": ["index", "guides/one"] },
    { "group": "More", "pages": [
        "guides/two",
        { "group": "Deep", "pages": ["guides/deep/x"] }
    ] }
  ] } ] }
}"""


def test_a_new_page_resembles_its_neighbours_and_is_in_the_navigation(tmp_path: Path) -> None:
    page = '---\ntitle: "{}"\ndescription: "About it"\nicon: "{}"\nmode: "wide"\nsidebar_position: {}\n---\n\nText.\n'
    files = {
        "docs.json": MINTLIFY,
        "guides/one.mdx": page.format("One", "a", 4),
        "guides/two.mdx": page.format("Two", "b", 7),
    }
    root = write(tmp_path, files)
    summary = edit(root, 'Add a page called "How to: go" in guides with the text: Just go.\n\nNow.')
    assert summary == "Added the page guides/how-to-go.mdx, with an entry in docs.json."
    assert changed(root, files) == {
        "docs.json": MINTLIFY.replace('"guides/two",', '"guides/two",\n        "guides/how-to-go",'),
        "guides/how-to-go.mdx": '---\ntitle: "How to: go"\ndescription: "Just go."\nmode: "wide"\n'
        "sidebar_position: 8\n---\n\nJust go.\n\nNow.\n",
    }


def test_a_section_is_added_once_with_the_pages_line_endings(root: Path) -> None:
    prompt = "Add a section called Limits to Getting started with the text: At most 5."
    assert edit(root, prompt) == 'Added the section "Limits" to docs/start.md.'
    assert "already has" in edit(root, prompt)
    assert "no page" in edit(root, "Add a section called Limits to ../README.md with the text: x")
    assert changed(root) == {"docs/start.md": FILES["docs/start.md"] + "\r\n## Limits\r\n\r\nAt most 5.\r\n"}


def test_other_formats_are_unchanged(tmp_path: Path) -> None:
    files = {"a.rst": "Teh colour\n==========\n", "b.adoc": "= Teh colour\n", "c.html": "<p>teh colour</p>\n"}
    root = write(tmp_path, files)
    prompt = 'Replace "colour" with "color" and fix the spelling and add a section called X to b with the text: x'
    assert "summary" not in work(prompt, root)
    assert changed(root, files) == {}


def test_symlinks_are_never_followed(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("colour teh")
    (root / "docs/link.md").symlink_to(outside / "secret.md")
    (root / "linked").symlink_to(outside)
    (root / "docs/faq.md").symlink_to(outside / "new.md")
    prompt = 'Replace "colour" with "color" and fix the spelling and add a page called FAQ with the text: x'
    assert "there already is docs/faq.md" in edit(root, prompt)
    edit(root, 'Replace "colour" with "color" in linked/secret.md')
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("secret.md", "colour teh")]


@pytest.mark.parametrize("path", ["../out.md", "/etc/out.md", "a/../../out.md", "linked/out.md"])
def test_files_are_opened_only_inside_the_copy(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "linked").symlink_to(tmp_path)
    with pytest.raises(OSError):
        WorkingFiles(root).create(PurePosixPath(path), "x")
    assert not (tmp_path / "out.md").exists()


def replaced(text: str, old: str, new: str) -> Replacement:
    page = parse_page(PurePosixPath("a.md"), text)
    return replace_in_page(page, old, new, LinkedAnchors(WorkingFiles(Path("/nowhere"))))


ADDRESSES = [
    "[a](colour.md)", "![a](i/colour.png)", "[x]: /colour", '<a href="colour.html">', "https://a.b/colour",
    "[a](b_(colour).md)", "`colour`", "--colour COLOUR_colour theColour $colour",
]  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
def test_words_in_addresses_and_names_are_unchanged(address: str) -> None:
    result = replaced(f"a colour\n\n{address}\n\ncolour", "colour", "color")
    assert (result.text, result.count) == (f"a color\n\n{address}\n\ncolor", 2)
    assert sum(result.left.values()) == address.count("colour")


def test_an_address_given_in_full_is_replaced_outside_code() -> None:
    text = "[a](http://old.example/x) http://old.example, http://old.example.org `http://old.example` [r]\n\n[r]: http://old.example\n"
    result = replaced(text, "http://old.example", "https://new.example")
    assert result.text == (
        "[a](https://new.example/x) https://new.example, http://old.example.org `http://old.example` [r]\n\n"
        "[r]: https://new.example\n"
    )
    assert result.left == Counter({"links": 1, "code": 1})


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("The GitHub API.", "GitHub", "GitLab", "The GitLab API."),
        ("The GitHub API.", "Git", "Hg", "The GitHub API."),
        ("Version 1.2 of Node.js 18.", "Node.js 18", "Node.js 20", "Version 1.2 of Node.js 20."),
        ("A **colour** and *colours*.", "colour", "color", "A **color** and *colours*."),
        ("Use **Note** here.", "**Note**", "**Tip**", "Use **Tip** here."),
        ("colour-blind, colour-tool, `colour-tool`", "colour", "color", "colour-blind, colour-tool, `colour-tool`"),
        ("\ufeffone colour\r\ntwo colour", "colour", "color", "\ufeffone color\r\ntwo color"),
    ],
)  # fmt: skip
def test_whole_names_can_be_replaced_but_not_parts(text: str, old: str, new: str, expected: str) -> None:
    assert replaced(text, old, new).text == expected


@given(text=st.text(max_size=200), old=st.text(min_size=1, max_size=5), new=st.text(max_size=5))
def test_replacements_are_counted(text: str, old: str, new: str) -> None:
    result = replaced(text, old, new)
    assert len(result.text) == len(text) + result.count * (len(new) - len(old))
    assert (result.text == text) == (result.count == 0 or old == new)
    assert result.count + sum(result.left.values()) == text.count(old)
    assert bool(result.other_words) <= (OTHER_WORDS in result.left)


@pytest.mark.parametrize(
    ("text", "expected", "left"),
    [
        ("Install: install it, installed, installation, reinstall.",
         "Install: set up it, installed, installation, reinstall.",
         ["installed", "installation", "reinstall"]),
        ("**install**, _install_ (install) \u2014 install\u2026 install--install",
         "**set up**, _set up_ (set up) \u2014 set up\u2026 set up--set up", []),
        ("re-install, install-time, in**install**ed, install\u00ader, install'll, install\u0301",
         None, ["re-install", "install-time", "in**install**ed", "install\u00ader", "install'll", "install\u0301"]),
        ("The install's end. An install\u2019s.", "The set up's end. An set up\u2019s.", []),
        ("\u8bf7install\u8f6f\u4ef6", "\u8bf7set up\u8f6f\u4ef6", []),
    ],
)  # fmt: skip
def test_only_whole_words_are_replaced_and_others_mentioned(text: str, expected: str | None, left: list[str]) -> None:
    result = replaced(text, "install", "set up")
    assert (result.text, list(result.other_words)) == (text if expected is None else expected, left)


@pytest.mark.parametrize(
    ("text", "old", "expected"),
    [
        ("Let's see whether it's for let.", "let", "Let's see whether it's for X."),
        ("It's what it is, isn't it.", "it", "It's what X is, isn't X."),
        ("Version 2.0, v2.0, 12.0, 2.0.1 and 2.0-rc.", "2.0", "Version X, v2.0, 12.0, 2.0.1 and 2.0-rc."),
        ("\u8bf7\u5b89\u88c5\u8f6f\u4ef6", "\u5b89\u88c5", "\u8bf7X\u8f6f\u4ef6"),
    ],
)
def test_word_boundaries_are_those_a_reader_sees(text: str, old: str, expected: str) -> None:
    assert replaced(text, old, "X").text == expected


WORDS = ("install", "Install", "ed", "re", "a", "\u0301")
SIGNS = ("-", "'", "'s", "*", "_", ".", ",", "`", "```\n", " ", "\n\n")


@given(st.lists(st.sampled_from(WORDS + SIGNS), max_size=40).map("".join))
def test_only_whole_words_outside_code_are_replaced(text: str) -> None:
    """Checked by another rule than the editor's: letters beside a match, skipping marks and hyphens."""
    result = replaced(text, "install", "\0")
    before = result.text.replace("\0", "install")
    assert before == text
    for match in re.finditer("\0", result.text):
        left, right = result.text[: match.start()], result.text[match.end() :]
        assert not re.search(r"[^\W_](?:_+|[-'*](?!-))?\Z", left.replace("\0", "install")), result.text
        assert not re.match(r"(?!'s\b)[-'*_]?[^\W_]", right.replace("\0", "install")), result.text
    paragraphs = [paragraph for paragraph in result.text.split("\n\n") if "``" not in paragraph]
    assert not any("\0" in code for paragraph in paragraphs for code in re.findall(r"`[^`\n]+`", paragraph))


def test_the_worst_text_is_edited_in_time(tmp_path: Path) -> None:
    """A line of half a megabyte once took quadratic time."""
    line = "recieve we install-" * 25_000
    root = write(tmp_path, {"a.md": f"We are with the {line}\n"})
    started = time.monotonic()
    edit(root, 'Replace "install" with "set up" and fix the spelling')
    assert time.monotonic() - started < 20


def test_new_pages_follow_the_majority() -> None:
    paths = [PurePosixPath(name) for name in ("a.mdx", "b.mdx", "c.md")]
    assert most_common_suffix(paths) == ".mdx"
    assert most_common_suffix([]) == ".md"


@given(st.text())
def test_a_place_matches_only_existing_files(place: str) -> None:
    paths = [PurePosixPath("docs/a.md"), PurePosixPath("b.md")]
    found = {*find_place(paths, place, lambda _: None).pages, *find_page(paths, place, lambda _: None).pages}
    assert found <= set(paths)


@given(st.binary())
def test_any_report_is_parsed(report: bytes) -> None:
    assert parse_report(report) == {} or b"typo" in report


async def by_process(root: Path, prompt: str, time_limit: float = 60.0) -> EditResult:
    task = EditTask(prompt, Workspace(root, root.parent / "home"), root.parent / "log")
    return await BuiltinEditor(time_limit).edit(task, FakeProgress())


async def test_the_editor_runs_in_a_process_and_logs_its_work(root: Path) -> None:
    done = await by_process(root, 'Replace "colour" with "color" in README')
    assert done.summary.startswith('Replaced "colour" with "color": 1 place in 1 file.')
    assert list(changed(root)) == ["README.md"]
    nothing = await by_process(root, "x" * 50_000)
    assert (nothing.summary, nothing.reason[:20]) == ("", "Nothing was changed.")
    assert (root.parent / "log").read_text() == f"{done.summary}\n{nothing.reason}\n"


async def test_the_editor_gives_up_with_a_reason(root: Path) -> None:
    with pytest.raises(EditError, match=r"gave up after 0\.01 s; try a part of the pages"):
        await by_process(root, "Fix the spelling", time_limit=0.01)
    with pytest.raises(EditError, match="could not do it"):
        await by_process(root / "missing", "Add a page called X with the text: y")


async def test_the_server_keeps_responding_while_the_editor_works(root: Path) -> None:
    (root / "big.md").write_text("[a](b) word `c` " * 30_000)
    editing = asyncio.create_task(by_process(root, 'Replace "word" with "colour"'))
    turns = 0
    while not editing.done():
        await asyncio.sleep(0.01)
        turns += 1
    assert "not surely" not in (await editing).reason
    assert turns > 3
