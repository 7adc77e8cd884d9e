"""Where the built-in editor puts a new page, and in which format."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builtin_editor import work

from bot.jobserver.documents.page import is_record
from bot.jobserver.editors.builtin.new_page_places import place_for

DOCS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/index.md", "docs/setup.md")
PLACES: list[tuple[str, Sequence[str], str]] = [
    # beside a README only if pages are there; never among historical pages
    ("FAQ", DOCS, "docs .md"),
    ("FAQ", ("README.md",), "docs .md"),
    ("FAQ", ("README.md", "LICENSE.md", "SECURITY.md", "usage.md"), "docs .md"),
    ("FAQ", ("README.md", "usage.md", "install.md"), ". .md"),
    ("FAQ", ("start.mdx",), ". .mdx"),
    ("FAQ", (), "docs .md"),
    ("Version 2", ("README.md", *(f"changelog/{n}.md" for n in range(30)), "guides/a.md"), "guides .md"),
    ("Release 2", ("docs/releases/1.md", "docs/releases/2.md", "docs/a.md"), "docs .md"),
    ("News", ("blog/a.md", "blog/b.md", "blog/c.md", "content/docs/a.md"), "content/docs .md"),
    # by its subject
    ("Deploy to Kubernetes", ("docs/a.md", "docs/deployment/b.md", "docs/guides/c.md"), "docs/deployment .md"),
    ("Configure the proxy", ("docs/a.md", "docs/b.md", "docs/x/configuration.md"), "docs/x .md"),
    ("Webhook API", ("docs/guides/a.md", "docs/webhooks/b.md", "docs/api/c.md"), "docs/webhooks .md"),
    ("Dark mode", ("docs/a.md", "docs/b/v-model.md"), "docs .md"),
    ("API", ("docs/a.md", "docs/apis/b.md"), "docs/apis .md"),
    ("Internet", ("docs/a.md", "docs/interface/b.md"), "docs .md"),
    ("Command line options", ("docs/a.md", "docs/b/build-options.md", "docs/c/an-unknown-command-in-x.md"), "docs .md"),
    # in the site, in its newest version
    ("FAQ", ("testdata/a.md", "test_data/b.md", "playground/c/d.md", "README.md"), "docs .md"),
    ("FAQ", ("README.md", "src/guide/a.md", "src/api/b.md", "src/api/c.md"), "src/guide .md"),
    ("Commands", ("site/docs/a.md", "site/docs/b/c.md", "site/docs/b/d.md", "cmd/commands/e.md"), "site/docs .md"),
    ("FAQ", ("docs/x.md", *(f"content/{v}x/guide/{n}.md" for v in (4, 10) for n in "ab")), "content/10x/guide .md"),
    ("FAQ", ("docs/index.md", "docs/guides/a.md", "docs/x/b.md"), "docs/guides .md"),
    ("FAQ", ("docs/index.md", "docs/x/b.md", "docs/y/b.md", "docs/y/c.md"), "docs .md"),
    ("FAQ", ("docs/a.md", "docs/b.md", "docs/intro/faq.md"), "docs/intro .md"),
    # among pages of the main language, and complete ones
    ("FAQ", ("es/a.md", "es/b.md", "es/c.md", "en/a.md"), "en .md"),
    ("FAQ", ("docs/_partials/a.md", "docs/_partials/b.md", "docs/guides/a.md"), "docs/guides .md"),
    ("FAQ", ("examples/one/a.md", "tests/b.md", ".github/c.md", "packages/x/README.md"), "docs .md"),
    ("FAQ", ("versioned_docs/version-1/a.md", "versioned_docs/version-1/b.md", "docs/a.md"), "docs .md"),
    ("FAQ", ("docs/reference/a.md", "docs/reference/b.md", "docs/guides/a.md"), "docs/guides .md"),
    # in the repository's format
    ("FAQ", ("README.md", "docs/a.mdx", "docs/b.mdx"), "docs .mdx"),
    ("FAQ", ("docs/a.mdx", "docs/b.mdx", "docs/c.md"), "docs .mdx"),
    ("FAQ", ("notes/a.markdown",), "notes .markdown"),
]  # fmt: skip


@pytest.mark.parametrize(("title", "names", "expected"), PLACES, ids=lambda value: str(value)[:40])
def test_a_page_goes_among_pages_of_its_subject_and_kind(title: str, names: Sequence[str], expected: str) -> None:
    place = place_for(title, [PurePosixPath(name) for name in names], set())
    assert f"{place.folder} {place.suffix}" == expected


def test_pages_of_a_table_of_contents_come_first() -> None:
    paths = [PurePosixPath(name) for name in ("README.md", "index.md", "start.md", "docs/a.md", "site/pages/a.md")]
    assert place_for("FAQ", paths, {PurePosixPath("site/pages")}).folder == PurePosixPath("site/pages")
    assert place_for("FAQ", paths, {PurePosixPath()}).folder == PurePosixPath()


def test_alternatives_are_mentioned_only_in_doubt(tmp_path: Path) -> None:
    for name in ("docs/guides/lights.md", "docs/reference/commands.md", "docs/a.md", "changelog/a.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("# X\n")
    told = work("Add a page called FAQ with the text: x", tmp_path)["summary"]
    assert told == (
        "Added the page docs/faq.md. It could be in `docs/guides` or `docs/reference` as well: "
        '`Add a page called "FAQ" in docs/guides with the text: …`.'
    )
    for name in ("docs/b.md", "docs/c.md"):
        (tmp_path / name).write_text("# X\n")
    told = work("Add a page called Fees with the text: x", tmp_path)["summary"]
    assert "`docs/guides` as well" in told, "a folder with pages of its own is for all subjects, and so are guides"
    told = work("Add a page called Commands in short with the text: x", tmp_path)["summary"]
    assert told == "Added the page docs/reference/commands-in-short.md."
    told = work('Add a page called "2.0" in changelog with the text: x', tmp_path)["summary"]
    assert told == "Added the page changelog/2-0.md.", "who names a place means it"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("CHANGELOG.md", True), ("docs/release-notes/v2.md", True), ("changelog-2025.md", True), ("NEWS.rst", True),
        ("blog/a.md", True), ("_posts/a.md", True), ("releases-v2.md", True), ("HISTORY.md", True),
        ("newsletter.md", False), ("docs/releasing.md", False), ("docs/history-api.md", False), ("docs/a.md", False),
    ],
)  # fmt: skip
def test_historical_pages_are_recognized_by_name(name: str, expected: bool) -> None:  # noqa: FBT001 (a case)
    assert is_record(PurePosixPath(name)) is expected


NAMES = st.from_regex(
    r"((docs|blog|src|guides|\.github|es|changelog)/){0,3}(README|CHANGELOG|a|b|index)\.(md|mdx)", fullmatch=True
)


@given(st.text(max_size=40), st.lists(NAMES, max_size=20, unique=True), st.lists(NAMES, max_size=2))
def test_no_page_goes_into_an_unsuitable_folder(title: str, names: list[str], listed: list[str]) -> None:
    paths = [PurePosixPath(name) for name in names]
    place = place_for(title, paths, {PurePosixPath(name).parent for name in listed})
    for folder in (place.folder, *place.others):
        assert not {"blog", "changelog", ".github", "es"} & set(folder.parts)
    assert place.folder == PurePosixPath("docs") or place.folder in {path.parent for path in paths}
