"""Which pictures of a change its pages show, and what they say of them."""

from hashlib import sha256

import pytest
from support.fakes.job_ports import FakeSnapshot

from bot.jobapi.models import MAX_PICTURES, ChangeKind, Changes, FileChange, Picture
from bot.jobserver.pipeline.pictures import shown_pictures

PNG, GIF, JPEG = b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8\xff"


def told(files: dict[str, str | bytes], deleted: str = "") -> tuple[Picture, ...]:
    changed = [FileChange(path=path, kind=ChangeKind.ADDED) for path in files]
    gone = [FileChange(path=deleted, kind=ChangeKind.DELETED)] if deleted else []
    return shown_pictures(
        Changes(files=(*changed, *gone)), FakeSnapshot(files), lambda text: text.replace("key", "***")
    )


@pytest.mark.parametrize(
    ("page", "text", "alt"),
    [
        ("docs/a.md", "![The form](img/x.png)", "The form"),
        ("docs/a.md", 'See ![](<img/x.png> "Its title").', None),
        ("docs/a.md", "![One](img/x.png) and ![other](img/x.png)", "One"),
        ("docs/a.md", "![](img/x.png) and ![other](img/x.png)", "other"),
        ("docs/b/a.md", "![x](../img/x.png?raw=1#top)", "x"),
        ("docs/a.mdx", "<img\n  alt='A &amp; B' src='img/x.png' />", "A & B"),
        ("docs/a.html", '<IMG SRC="img/x.png" ALT="">', None),
        ("a.md", "![x](/docs/img/x.png)", "x"),
        ("content/a.md", "![x](/img/x.png)", "x"),
        ("docs/a.md", "![a\n\tb \u202e key](img/x.png)", "a b ***"),
        ("docs/a.md", f"![{'x' * 400}](img/x.png)", "x" * 199 + "…"),
    ],
)
def test_a_picture_that_a_page_shows_is_told_with_its_words(page: str, text: str, alt: str | None) -> None:
    data = PNG + b"1"
    (picture,) = told({page: text, "docs/img/x.png": data})
    assert picture == Picture(
        id=sha256(data).hexdigest(), path="docs/img/x.png", alt=alt, mimetype="image/png", size=len(data)
    )


def test_a_relative_address_means_no_file_of_the_same_name_elsewhere() -> None:
    pictures = told({"a.md": "![x](img/x.png)", "docs/img/x.png": PNG + b"1", "img/x.png": PNG + b"2"})
    assert [picture.path for picture in pictures] == ["img/x.png"]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("docs/a.md", "No picture"),
        ("docs/a.md", "```\n![x](img/x.png)\n```"),
        ("docs/a.md", "<!-- ![x](img/x.png) -->"),
        ("docs/a.md", "![x](https://elsewhere.example/img/x.png)"),
        ("docs/a.md", "![x](/other/img/x.png) ![y](../../docs/img/x.png/..) ![z](x.png)"),
        ("docs/a.py", "![x](img/x.png)"),
        ("docs/a.md", '<img data-src="img/x.png" src=img/x.png>'),
    ],
)
def test_a_picture_that_no_page_shows_is_not_told(page: str, text: str) -> None:
    assert told({page: text, "docs/img/x.png": PNG}) == ()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"), (GIF, "image/gif"), (JPEG, "image/jpeg"), (b"<html><script>", None), (b"", None),
        (b"RIFF1234WEBP", "image/webp"), (b"<svg/>", None),
    ],
)  # fmt: skip
def test_its_kind_is_that_of_its_first_bytes(data: bytes, kind: str | None) -> None:
    pictures = told({"a.md": "![x](x.png)", "x.png": data})
    assert [picture.mimetype for picture in pictures] == ([kind] if kind else [])


def test_an_svg_is_told_by_its_name_and_has_no_kind() -> None:
    (picture,) = told({"a.md": "![x](x.svg)", "x.svg": b"<svg/>"})
    assert (picture.path, picture.mimetype) == ("x.svg", None)


def test_of_fifty_pictures_the_first_are_told_and_deleted_ones_never() -> None:
    page = "".join(f"![{number}](x{number:02}.png)" for number in reversed(range(50)))
    files: dict[str, str | bytes] = {f"x{number:02}.png": PNG + bytes([number]) for number in range(50)}
    pictures = told({"a.md": f"{page}![old](old.png)", **files}, "old.png")
    assert [picture.path for picture in pictures] == [
        f"x{number:02}.png" for number in range(49, 49 - MAX_PICTURES, -1)
    ]
