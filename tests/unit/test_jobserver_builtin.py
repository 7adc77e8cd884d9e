"""What the built-in editor does to files, and what it never touches."""

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.fake_progress import FakeProgress

from bot.jobserver.editors.builtin.documents import Documents, default_folder, matching, most_common_suffix, slug
from bot.jobserver.editors.builtin.editor import BuiltinEditor
from bot.jobserver.editors.builtin.replacement import replace_words
from bot.jobserver.editors.builtin.spelling import Correction, apply_corrections, parse_report
from bot.jobserver.editors.interface import EditTask
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
    for name, text in FILES.items():
        path = tmp_path / "repository" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    (tmp_path / "repository/docs/latin.md").write_bytes("colour é".encode("latin-1"))
    return tmp_path / "repository"


async def edit(root: Path, prompt: str) -> str:
    task = EditTask(prompt, Workspace(root, root.parent / "home"), root.parent / "log")
    return (await BuiltinEditor().edit(task, FakeProgress())).summary


def changed(root: Path) -> dict[str, str]:
    found = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    return {
        name: data.decode()
        for name, data in found.items()
        if name != "docs/latin.md" and FILES.get(name, "") != data.decode()
    }


async def test_replace_changes_documents_only_and_keeps_links(root: Path) -> None:
    summary = await edit(root, 'Replace "colour" with "color"')
    assert changed(root) == {
        "README.md": "# Lamp\n\nA color. See [colors](docs/colour.md).\n",
        "docs/start.md": "# Getting started\r\n\r\nThe color is teh best.\r\n",
        "docs/guides/one.md": "# One\n\nIts color.\n\n```\nteh code\n```\n\nUse `teh` and recieve it.\n",
    }
    assert summary == 'Replaced "colour" with "color": 4 places in 3 files.'
    assert (root / "docs/latin.md").read_bytes() == "colour é".encode("latin-1")


@pytest.mark.parametrize(
    ("place", "names"),
    [("guides", ["docs/guides/one.md"]), ("the guide", ["docs/guides/one.md"]), ("README", ["README.md"]),
     ("docs/start.md", ["docs/start.md"]), ("./docs/guides/", ["docs/guides/one.md"]),
     ("docs", ["docs/guides/one.md", "docs/start.md"]), ("handbook", []), ("../repository/README.md", []),
     ("/etc", []), ("docs/../README.md", []), (".git", []), ("src", [])],
)  # fmt: skip
async def test_a_place_is_a_path_or_a_name_inside(root: Path, place: str, names: list[str]) -> None:
    await edit(root, f'Replace "colour" with "color" in {place}')
    assert sorted(changed(root)) == names


async def test_spelling_is_fixed_in_prose_not_in_code(root: Path) -> None:
    await edit(root, "Fix the spelling")
    assert changed(root) == {
        "docs/start.md": "# Getting started\r\n\r\nThe colour is the best.\r\n",
        "docs/guides/one.md": FILES["docs/guides/one.md"].replace("recieve", "receive"),
    }


async def test_a_page_goes_where_pages_live_and_never_over_another(root: Path) -> None:
    prompt = "Add a page called FAQ & more! with the text: Ask us.\n\nAnything."
    assert await edit(root, prompt) == "Added the page docs/faq-more.md."
    assert await edit(root, prompt) == "No page added: there already is docs/faq-more.md."
    assert changed(root) == {"docs/faq-more.md": "# FAQ & more!\n\nAsk us.\n\nAnything.\n"}
    assert (
        await edit(root, 'Add a page called "Two" in guides with the text: x') == "Added the page docs/guides/two.md."
    )
    assert "no folder" in await edit(root, 'Add a page called "Two" in ../.. with the text: x')


async def test_a_section_is_added_once_with_the_lines_ends_of_the_page(root: Path) -> None:
    prompt = "Add a section called Limits to Getting started with the text: At most 5."
    assert await edit(root, prompt) == 'Added the section "Limits" to docs/start.md.'
    assert "already has" in await edit(root, prompt)
    assert "no page" in await edit(root, "Add a section called Limits to ../README.md with the text: x")
    assert changed(root) == {"docs/start.md": FILES["docs/start.md"] + "\r\n## Limits\r\n\r\nAt most 5.\r\n"}


@pytest.mark.parametrize(
    ("suffix", "page"),
    [(".rst", "FAQ\n===\n\n<b>\n"), (".adoc", "= FAQ\n\n<b>\n"), (".txt", "FAQ\n\n<b>\n"),
     (".html", "<h1>FAQ</h1>\n\n<p>&lt;b&gt;</p>\n"), (".mdx", "# FAQ\n\n<b>\n")],
)  # fmt: skip
async def test_a_page_speaks_the_repositorys_format(tmp_path: Path, suffix: str, page: str) -> None:
    root = tmp_path / "repository"
    root.mkdir()
    (root / f"start{suffix}").write_text("x")
    await edit(root, "Add a page called FAQ with the text: <b>")
    assert (root / f"faq{suffix}").read_text() == page


async def test_links_are_never_followed(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("colour teh")
    (root / "docs/link.md").symlink_to(outside / "secret.md")
    (root / "linked").symlink_to(outside)
    (root / "docs/faq.md").symlink_to(outside / "new.md")
    summary = await edit(
        root, 'Replace "colour" with "color" and fix the spelling and add a page called FAQ with the text: x'
    )
    assert "there already is docs/faq.md" in summary
    await edit(root, 'Replace "colour" with "color" in linked/secret.md')
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("secret.md", "colour teh")]


@pytest.mark.parametrize("path", ["../out.md", "/etc/out.md", "a/../../out.md", "linked/out.md"])
def test_files_open_only_inside(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "linked").symlink_to(tmp_path)
    with pytest.raises(OSError):
        Documents(root).create(PurePosixPath(path), b"x")
    assert not (tmp_path / "out.md").exists()


async def test_a_prompt_that_is_not_understood_says_what_is(root: Path) -> None:
    assert "Not understood" in await edit(root, 'Replace "colour" with "color" and be nice')
    assert changed(root) == {}


ADDRESSES = [
    "[a](colour.md)",
    "![a](i/colour.png)",
    "[x]: /colour",
    '<a href="colour.html">',
    "https://a.b/colour",
    "`x <colour>`_",
    "xref:colour.adoc[x]",
    "[a](b_(colour).md)",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_words_in_addresses_stay_and_addresses_can_be_replaced(address: str) -> None:
    assert replace_words(f"a colour\n{address}\ncolour", "colour", "color") == (f"a color\n{address}\ncolor", 2)
    whole = replace_words("[a](http://old.example/x)", "http://old.example", "https://new.example")
    assert whole == ("[a](https://new.example/x)", 1)


@given(text=st.text(), old=st.text(min_size=1), new=st.text())
def test_replacing_counts_what_it_does(text: str, old: str, new: str) -> None:
    result, count = replace_words(text, old, new)
    assert len(result) == len(text) + count * (len(new) - len(old))
    assert (result == text) == (count == 0 or old == new)


@given(st.text(max_size=200))
def test_a_slug_is_one_file_name(title: str) -> None:
    name = slug(title)
    assert len(name) <= 60
    assert PurePosixPath(f"{name or 'page'}.md").parts == (f"{name or 'page'}.md",)
    assert not name.startswith((".", "-"))


def test_new_pages_follow_the_many() -> None:
    paths = [PurePosixPath(name) for name in ("a.rst", "b.rst", "c.md", "d.txt", "e.txt", "f.txt")]
    assert most_common_suffix(paths) == ".rst"
    assert most_common_suffix(paths[3:]) == ".txt"
    assert most_common_suffix([]) == ".md"
    assert default_folder({PurePosixPath("doc"), PurePosixPath("src")}) == PurePosixPath("doc")


@given(st.text())
def test_any_place_matches_only_what_is_there(place: str) -> None:
    paths = [PurePosixPath("docs/a.md"), PurePosixPath("b.md")]
    assert set(matching(paths, place)) <= set(paths)


@given(
    st.binary(max_size=200),
    st.lists(st.builds(Correction, st.integers(1, 9), st.integers(0, 50), st.just("teh"), st.just("the"))),
)
def test_a_correction_that_does_not_fit_changes_nothing(text: bytes, found: list[Correction]) -> None:
    result, count = apply_corrections(text, found)
    assert (result == text) == (count == 0)


@given(st.binary())
def test_any_report_is_read(report: bytes) -> None:
    assert parse_report(report) == {} or b"typo" in report
