"""Navigation files: what they list, and a new entry with nothing else changed."""

from pathlib import PurePosixPath

import pytest

from bot.jobserver.documents.navigation import Navigation, find_navigation, read_navigation, with_entry

DOCS_JSON = """{"$schema": "x", "pages": ["index", "/guides/one"],
  "tags": ["index"],
  "navigation": {"languages": [
    {"language": "en", "groups": [{"group": "Start", "pages": [
      "quickstart", {"group": "Deep", "pages": [
        "deep/a",
        "deep/b"
      ]}
    ]}]},
    {"language": "es", "pages": ["es/quickstart"]}]}}
"""
MKDOCS = """site_name: x
theme: !!python/name:material.x
nav:
  - Home: index.md  # the first
  - 'Guides':
      - guides/one.md
      - Two: "guides/two.md"
  - API: api/
  - [flow.md, "other.md"]
"""
I18N = """plugins:
  - search
  - i18n:
      languages:
        - locale: en
          default: true
          nav:
            - Start: index.md
        - locale: ja
          nav:
            - index.md
"""
SIDEBAR = "* [Home](/)\n* Guides\n  * [One](guides/one.md 'x')\n    * [Deep](guides/deep/x.md)\n  * [Site](https://x.example)\n"
RECORDS = '{"tabs": [{"pages": ["start"]}, {"pages": ["changelog", "releases/1", "releases/2"]}]}'
SUMMARY = "# Summary\r\n\r\n- [One](./one.md)\r\n  - [Deep](deep/x.md)"


def read(name: str, text: str) -> Navigation:
    navigation = read_navigation(PurePosixPath(name), text)
    assert navigation
    return navigation


@pytest.mark.parametrize(
    ("name", "text", "page", "after", "entry"),
    [
        ("docs.json", DOCS_JSON, "new.mdx", '"quickstart"', ',\n      "new"'),
        ("docs.json", DOCS_JSON, "guides/new.mdx", '"/guides/one"', ', "/guides/new"'),
        ("docs.json", DOCS_JSON, "deep/new.mdx", '"deep/b"', ',\n        "deep/new"'),
        ("docs.json", DOCS_JSON, "es/new.mdx", '"es/quickstart"', ', "es/new"'),
        ("x/mint.json", '{"pages": ["a"]}', "x/b.md", '"a"', ', "b"'),
        ("mkdocs.yml", MKDOCS, "docs/guides/new.md", '"guides/two.md"', '\n      - "A: [new]": guides/new.md'),
        ("mkdocs.yml", MKDOCS.replace("\n", "\r\n"), "docs/guides/x/new.md", '"guides/two.md"',
         '\r\n      - "A: [new]": guides/x/new.md'),
        ("mkdocs.yml", MKDOCS, "docs/new.md", '"other.md"', ", new.md"),
        ("mkdocs.yml", "docs_dir: .\nnav:\n- a.md # x\n", "new.md", "a.md # x", "\n- new.md"),
        ("mkdocs.yml", I18N, "docs/new.md", "Start: index.md", '\n            - "A: [new]": new.md'),
        ("mkdocs.yml", I18N, "docs/ja/new.md", "- index.md", "\n            - new.md"),
        ("_sidebar.md", SIDEBAR, "guides/new.md", "(guides/deep/x.md)", "\n  * [A: \\[new\\]](guides/new.md)"),
        ("docs.json", RECORDS, "new.mdx", '"start"', ', "new"'),
        ("docs.json", RECORDS, "releases/3.mdx", '"releases/2"', ', "releases/3"'),
        ("SUMMARY.md", SUMMARY, "new.md", "(deep/x.md)", "\r\n- [A: \\[new\\]](./new.md)"),
    ],
)  # fmt: skip
def test_an_entry_is_inserted_beside_its_neighbour_only(
    name: str, text: str, page: str, after: str, entry: str
) -> None:
    navigation = read(name, text)
    assert not navigation.lists(PurePosixPath(page))
    start, _, end = text.rpartition(after)
    result = with_entry(navigation, PurePosixPath(page), "A: [new]")
    assert result == f"{start}{after}{entry}{end}"
    assert read(name, result).lists(PurePosixPath(page))


def test_listed_pages_are_found() -> None:
    assert [str(path) for path in read("docs.json", DOCS_JSON).targets()] == [
        "index", "guides/one", "quickstart", "deep/a", "deep/b", "es/quickstart",
    ]  # fmt: skip
    assert [str(path) for path in read("mkdocs.yml", MKDOCS).targets()] == [
        f"docs/{name}.md" for name in ("index", "guides/one", "guides/two", "flow", "other")
    ]
    assert read("docs/_sidebar.md", SIDEBAR).lists(PurePosixPath("docs/guides/deep/x.md"))
    assert not read("docs/_sidebar.md", SIDEBAR).covers(PurePosixPath("other/x.md"))


@pytest.mark.parametrize(
    ("name", "text"),
    [("docs.json", "{"), ("docs.json", "[" * 100_000), ("mkdocs.yml", "nav: [" * 1000),
     ("mkdocs.yml", "a: &a [x]\nnav: *a")],
)  # fmt: skip
def test_an_unreadable_navigation_file_is_an_explained_error(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        read_navigation(PurePosixPath(name), text)


@pytest.mark.parametrize(("name", "text"), [("mkdocs.yml", "site_name: x"), ("docs.json", "{}"), ("a.json", DOCS_JSON)])
def test_a_file_without_entries_is_no_navigation(name: str, text: str) -> None:
    assert read_navigation(PurePosixPath(name), text) is None


def test_the_nearest_navigation_is_found() -> None:
    files = {PurePosixPath("mkdocs.yml"): MKDOCS, PurePosixPath("docs/x/SUMMARY.md"): SUMMARY}

    def found(page: str) -> str | None:
        navigation = find_navigation(PurePosixPath(page), files, files.get)
        return str(navigation.path) if navigation else None

    assert [found(page) for page in ("docs/x/a.md", "docs/a.md", "README.md")] == [
        "docs/x/SUMMARY.md",
        "mkdocs.yml",
        None,
    ]
    assert with_entry(read("_sidebar.md", "* [A](a/b.md)\n"), PurePosixPath("c/d.md"), "D") is None
