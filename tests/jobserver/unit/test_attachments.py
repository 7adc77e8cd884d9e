"""Names of attached files, and what the built-in editor does with them."""

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.jobserver.editors.builtin.edits import AddAttachment, FixSpelling
from bot.jobserver.editors.builtin.page_edits import GivenFile, find_given, link_at_end
from bot.jobserver.editors.builtin.prompt_parser import parse
from bot.jobserver.editors.builtin.worker import work
from bot.jobserver.executor.job_folders import safe_names

LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
PNG = b"\x89PNG\r\n\x1a\n"


@given(st.lists(st.text(max_size=200) | st.sampled_from(["a.png", "A.PNG", "a-2.png", "../a.png", ".."]), max_size=30))
def test_names_are_plain_unlike_each_other_and_short(names: list[str]) -> None:
    """Whatever people call their files."""
    safe = safe_names(names)
    assert len({name.lower() for name in safe}) == len(names)
    for name in safe:
        assert set(name) <= LETTERS
        assert name[0] not in "-."
        assert len(name) <= 120
        assert name == PurePosixPath(name).name


def test_the_same_files_have_the_same_names_when_more_come() -> None:
    """An agent's session remembers the paths of before."""
    names = ["a.png", "a.png", "b", "A.png"]
    assert safe_names(names) == ["a.png", "a-2.png", "b", "A-3.png"]
    assert safe_names(names[:2]) == safe_names(names)[:2]


@pytest.mark.parametrize(
    ("prompt", "edit"),
    [
        ("Add the attached diagram.png to the page Quick start", AddAttachment("diagram.png", "Quick start")),
        ("Please add the attached image diagram.png to docs/start.md.", AddAttachment("diagram.png", "docs/start.md")),
        ('Insert attached picture "My diagram.png" in the start page', AddAttachment("My diagram.png", "start")),
        ("Put the attached screenshot on the FAQ", AddAttachment("screenshot", "FAQ")),
    ],
)
def test_what_is_understood(prompt: str, edit: AddAttachment) -> None:
    """With and without the file's own name."""
    assert parse(prompt) == (edit,)
    assert parse(f"{prompt} Then fix the spelling") == (edit, FixSpelling())


@pytest.mark.parametrize("prompt", ["Add diagram.png to the start page", "Add the attached", "Add the attached x to"])
def test_what_is_not_understood(prompt: str) -> None:
    """Half of a wish is none."""
    assert parse(prompt) == ()


def test_which_file_is_meant() -> None:
    """By either of its names, with or without the ending; any word will do for the only one."""
    first, second = GivenFile(Path("/x/My-a.png"), "My a.png"), GivenFile(Path("/x/b.txt"), "b.txt")
    for words in ("my a.png", "My-a.png", "my-a", "MY A"):
        assert find_given([first, second], words) is first
    assert find_given([first], "picture") is first
    assert find_given([first, second], "picture") is None
    assert find_given([first], "other") is None


@pytest.mark.parametrize(
    ("suffix", "picture", "text"),
    [
        (".md", "![my a](img/my-a.png)", "[n](img/n.txt)"),
        (".mdx", "![my a](img/my-a.png)", "[n](img/n.txt)"),
        (".rst", ".. image:: img/my-a.png\n   :alt: my a", "`n <img/n.txt>`__"),
        (".adoc", "image::img/my-a.png[my a]", "link:img/n.txt[n]"),
        (".html", '<p><img src="img/my-a.png" alt="my a"></p>', '<p><a href="img/n.txt">n</a></p>'),
        (".txt", "my a: img/my-a.png", "n: img/n.txt"),
    ],
)
def test_links_in_each_format(suffix: str, picture: str, text: str) -> None:
    """A picture is shown, anything else linked to."""
    page = PurePosixPath(f"docs/a{suffix}")
    assert link_at_end("x\n", page, PurePosixPath("docs/img/my-a.png")) == f"x\n\n{picture}\n"
    assert link_at_end("x", page, PurePosixPath("docs/img/n.txt")) == f"x\n\n{text}\n"
    windows = link_at_end("x\r\n", page, PurePosixPath("docs/img/my-a.png"))
    assert windows == f"x\r\n\r\n{picture}\r\n".replace("a.png\n ", "a.png\r\n ")


def test_a_link_leads_from_the_page_to_the_file() -> None:
    """Also up, and through folders whose names have spaces."""
    text = link_at_end("", PurePosixPath("docs/guides/a.md"), PurePosixPath("static/my img/b.png"))
    assert text.strip() == "![b](../../static/my%20img/b.png)"


def made(root: Path, *pages: str) -> GivenFile:
    """A repository of pages, and a picture beside it."""
    for page in pages:
        (root / page).parent.mkdir(parents=True, exist_ok=True)
        (root / page).write_text("# Start\n")
    path = root.parent / "diagram.png"
    path.write_bytes(PNG)
    return GivenFile(path, "diagram.png")


def test_a_folder_for_pictures_is_made_where_there_is_none(tmp_path: Path) -> None:
    """Beside the pages; a hidden folder's pictures are not the documentation's."""
    file = made(tmp_path / "r", "docs/start.md", ".github/shot.png")
    answer = work("Add the attached diagram.png to start", tmp_path / "r", [file])
    assert answer == {"summary": "Added docs/images/diagram.png, and a link to it at the end of docs/start.md."}
    assert (tmp_path / "r" / "docs/images/diagram.png").read_bytes() == PNG


def test_a_file_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    """Nor is the page touched."""
    file = made(tmp_path / "r", "docs/start.md", "docs/images/diagram.png")
    answer = work("Add the attached diagram.png to start", tmp_path / "r", [file])
    assert answer["reason"].startswith("diagram.png was not added: there already is docs/images/diagram.png.")
    assert (tmp_path / "r" / "docs/start.md").read_text() == "# Start\n"


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("Add the attached diagram.png to the page Nowhere", 'no page is called "Nowhere"'),
        ("Add the attached other.png to start", 'no file called "other.png" came with this'),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path: Path, prompt: str, words: str) -> None:
    """With the file that was left alone."""
    answer = work(prompt, tmp_path / "r", [made(tmp_path / "r", "docs/start.md")])
    assert words in answer["reason"]
    assert answer["reason"].endswith("Attached, and left alone: diagram.png.")
    assert not (tmp_path / "r" / "docs/images").exists()


def test_a_linked_folder_is_not_followed(tmp_path: Path) -> None:
    """A repository may have a link where pictures would go."""
    file = made(tmp_path / "r", "docs/start.md")
    (tmp_path / "outside").mkdir()
    (tmp_path / "r" / "docs/images").symlink_to(tmp_path / "outside")
    assert "error" in work("Add the attached diagram.png to start", tmp_path / "r", [file])
    assert list((tmp_path / "outside").iterdir()) == []
