"""The pages of pull requests: foreign text is inert, changes are shown as they are, and foreign names are refused."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from bot.jobapi.models import ChangeKind
from bot.jobserver.documents import PageSource
from bot.jobserver.middleware import allowed_hosts, host_name, is_same_origin
from bot.jobserver.pages.diff import (
    FILE_LINES,
    PAGE_LINES,
    file_diffs,
    omissions,
    page_of_files,
    parse_patch,
)
from bot.jobserver.pages.handlers import shown_description
from bot.jobserver.pages.markdown import LONGEST_HTML, picture_path, render
from bot.jobserver.pages.rendered import MarkdownRenderer
from bot.jobserver.pull_requests.local.contents import fair_shares
from bot.jobserver.repository.listings import (
    ChangedFile,
    FileVersion,
    GitFileMode,
    PullRequestChange,
    parse_files,
)

TEXT_TAGS = {"a", "p", "pre", "code", "em", "strong", "s", "span", "img", "br", "hr", "blockquote", "ul", "ol", "li"}
TAGS = TEXT_TAGS | {"h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"}
ATTRIBUTES = {"href", "rel", "src", "alt", "loading", "class", "title", "start"}
HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a <b onclick=alert(1)>b</b>",
    "[x](javascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "![x](data:image/svg+xml;base64,AAAA)",
    "![x](https://evil.example/x.png)",
    '![x" onerror="alert(1)](y.png)',
    '[x](https://e.example "a\\"onclick=\\"b")',
    "<svg/onload=alert(1)>",
    "<https://e.example/'\"><x>",
    '```"><script>\nx\n```',
    "|a|\n|:-:|\n|<script>|",
    "<Card onClick={() => alert(1)}>\n\n# In\n\n</Card>",
    "---\n<script>: 1\n---\n",
    "[a]: javascript:alert(1)\n\n[a]",
    "&lt;script&gt;",
    "<!-- --><script>x</script>",
    "export const x = <script>",
)
SIGNS = ("<", ">", '"', "'", "`", "[", "](", ")", "!", "\n", "    ", "{", "x", ":", "//")


class Witness(HTMLParser):
    """Records every tag and attribute."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, list[str]] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, []).append(value or "")


def html(text: str, path: str = "docs/a.md") -> str:
    return render(PageSource(text, path, "/pulls/1/after/"))


def assert_harmless(rendered: str) -> None:
    witness = Witness(rendered)
    assert witness.tags <= TAGS
    assert set(witness.attributes) <= ATTRIBUTES
    assert all(re.match("https?://|mailto:", link) for link in witness.attributes.get("href", []))
    assert all(source.startswith("/pulls/1/after/") for source in witness.attributes.get("src", []))


@pytest.mark.parametrize("path", ["docs/a.md", "docs/a.mdx"])
@pytest.mark.parametrize("text", [*HOSTILE, "\n\n".join(HOSTILE), "> - " + "\n> - ".join(HOSTILE)])
def test_authored_text_is_inert(text: str, path: str) -> None:
    assert_harmless(html(text, path))


@given(st.lists(st.sampled_from([*HOSTILE, *SIGNS])).map("".join))
def test_any_mixture_of_authored_text_is_inert(text: str) -> None:
    assert_harmless(html(text))
    assert_harmless(html(text, "a.mdx"))


def test_a_pages_content_is_rendered() -> None:
    rendered = html("# Title\n\nSome **bold** and ~~old~~ text.\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n")
    assert "<h1>Title</h1>" in rendered
    assert "<strong>bold</strong> and <s>old</s>" in rendered
    assert '<td class="align-right">2</td>' in rendered


def test_front_matter_components_and_imports_are_shown_literally() -> None:
    text = "---\ntitle: A\n---\n\nimport X from 'y'\n\n<Card title=\"A\">\n\nSome **text**.\n\n</Card>\n"
    rendered = html(text, "a.mdx")
    assert '<pre class="front-matter">title: A</pre>' in rendered
    assert "<p>import X from 'y'</p>" in rendered
    assert "<p>&lt;Card title=&quot;A&quot;&gt;</p>" in rendered
    assert "Some <strong>text</strong>." in rendered
    assert "<p>&lt;/Card&gt;</p>" in rendered


def test_links_within_the_site_are_shown_but_inactive() -> None:
    assert '<span class="link" title="../b">b</span>' in html("[b](../b)")
    assert '<a href="https://a.example" rel="noopener noreferrer nofollow">a</a>' in html("[a](https://a.example)")


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("x.png", "docs/x.png"),
        ("../img/a%20b.PNG?v=1#x", "img/a b.PNG"),
        ("/img/x.jpg", "img/x.jpg"),
        ("../../x.png", ""),
        ("/../../etc/x.png", ""),
        ("https://e.example/x.png", ""),
        ("//e.example/x.png", ""),
        ("x.svg", ""),
        ("javascript:x.png", ""),
        ("http://[x.png", ""),
        ("a%00.png", ""),
    ],
)
def test_only_images_of_the_repository_are_shown(address: str, path: str) -> None:
    assert picture_path(address, "docs/a.md") == path


@pytest.mark.full
async def test_a_slow_page_is_given_up_and_hides_no_other() -> None:
    endless = [PageSource("![[](" * 40_000, f"{number}.md", "/") for number in range(10)]  # seconds, each of them
    short = PageSource("# Short", "b.md", "/")
    rendered = await MarkdownRenderer(time_limit=2).render([*endless, short])
    assert rendered[short] == "<h1>Short</h1>\n"
    assert set(endless) - rendered.keys()


async def test_an_oversized_page_is_not_shown() -> None:
    large, small = PageSource('"' * (LONGEST_HTML // 6 + 1), "a.md", "/"), PageSource("# Small", "b.md", "/")
    assert await MarkdownRenderer(time_limit=60).render([large, small]) == {small: "<h1>Small</h1>\n"}


async def test_a_description_keeps_line_endings_and_falls_back_to_text() -> None:
    renderer = MarkdownRenderer(time_limit=2)
    shown = await shown_description("> One\n> two\n\n- <b>x</b> `y`", "/docs/pulls/1", renderer)
    assert isinstance(shown, Markup)
    assert "<p>One<br />\ntwo</p>" in shown
    assert "<li>&lt;b&gt;x&lt;/b&gt; <code>y</code></li>" in shown
    endless = await shown_description("[" * 50_000, "/docs/pulls/1", MarkdownRenderer(time_limit=0.001))
    assert not isinstance(endless, Markup)
    assert endless == "[" * 50_000


PATCH = """diff --git a/docs/a.md b/docs/a.md
index 1111111..2222222 100644
--- a/docs/a.md
+++ b/docs/a.md
@@ -1,4 +1,4 @@ ## Heading
 first
-The colour is red.
+The color is red.
\x20
 last\u2028line\x0c\u202e
\\ No newline at end of file
@@ -10 +10,2 @@
--- a line like a header
+++ another
+@@ -1 +1 @@
"""
LISTED = (
    ":100644 100755 11 12 M\0a.md\0"
    ":100644 100644 21 22 R090\0old\tname.md\0new\nname.md\0:000000 120000 00 32 A\0link\0"
    ":160000 000000 41 00 D\0sub\0:100644 100644 51 52 M\0i.png\0"
    "1\t2\ta.md\0003\t4\t\0old\tname.md\0new\nname.md\0001\t0\tlink\0000\t1\tsub\0-\t-\ti.png\0"
)


def changed(path: str = "a.md", added: int | None = 1, removed: int | None = 0, **given: str) -> ChangedFile:
    modes = {"before": "100644", "after": "100644", "kind": "changed", "old": path} | given
    return ChangedFile(
        ChangeKind(modes["kind"]),
        FileVersion(modes["old"], GitFileMode(modes["before"]), "1"),
        FileVersion(path, GitFileMode(modes["after"]), "2"),
        added,
        removed,
    )


def added_lines(count: int, text: str = "x") -> str:
    return f"diff --git a/a b/a\n@@ -0,0 +1,{count} @@\n" + f"+{text}\n" * count


def test_lines_have_their_numbers() -> None:
    first, second = parse_patch(PATCH)
    assert (first.heading, second.heading) == ("## Heading", "")
    assert [(line.kind, line.old_number, line.new_number) for line in first.lines] == [
        ("context", 1, 1), ("removed", 2, None), ("added", None, 2), ("context", 3, 3), ("context", 4, 4),
    ]  # fmt: skip
    assert first.lines[4].text == "last\u2028line[U+000C][U+202E]"
    assert [line.kind for line in second.lines] == ["removed", "added", "added"]


def test_a_truncated_patch_shows_its_readable_part() -> None:
    whole = [line for hunk in parse_patch(PATCH) for line in hunk.lines]
    for end in range(len(PATCH)):
        lines = [line for hunk in parse_patch(PATCH[:end].rpartition("\n")[0]) for line in hunk.lines]
        assert lines == whole[: len(lines)]


def test_any_file_names_are_listed() -> None:
    files = parse_files(LISTED)
    assert [(file.kind.value, file.before.path, file.path, file.added, file.removed) for file in files] == [
        ("changed", "a.md", "a.md", 1, 2),
        ("renamed", "old\tname.md", "new\nname.md", 3, 4),
        ("added", "link", "link", 1, 0),
        ("deleted", "sub", "sub", 0, 1),
        ("changed", "i.png", "i.png", None, None),
    ]
    for end in range(len(LISTED)):
        assert parse_files(LISTED[:end]) == files[: len(parse_files(LISTED[:end]))]


def test_small_files_get_their_space_first() -> None:
    assert fair_shares([5000, 10, 0, 700], each=1000, total=1200) == [490, 10, 0, 700]


@given(st.lists(st.integers(0, 50)), st.integers(0, 40), st.integers(0, 100))
def test_space_is_allocated_up_to_its_limits(wanted: list[int], each: int, total: int) -> None:
    shares = fair_shares(wanted, each=each, total=total)
    assert sum(shares) <= total
    assert all(0 <= share <= min(asked, each) for share, asked in zip(shares, wanted, strict=True))
    assert sum(shares) == total or shares == [min(asked, each) for asked in wanted]


def test_a_huge_file_hides_no_other_and_omissions_are_counted() -> None:
    files = [changed("huge.md", 9000), changed("small.md", 2)]
    huge, small = file_diffs(files, [added_lines(9000), added_lines(2)])
    assert sum(len(hunk.lines) for hunk in huge.hunks) == FILE_LINES
    assert huge.omission == "7500 of its 9000 changed lines are not shown here."
    assert small.omission == ""
    page = page_of_files(PullRequestChange("", "", tuple(files), 500, 9002, 0), 1)
    assert omissions(page, [huge, small]) == ("498 of the 500 changed files", "parts of 1 file")


def test_many_files_share_a_page() -> None:
    diffs = file_diffs([changed(f"{n}.md", 1000) for n in range(10)], [added_lines(1000)] * 10)
    assert sum(len(hunk.lines) for diff in diffs for hunk in diff.hunks) == PAGE_LINES
    assert [bool(diff.omission) for diff in diffs] == [False] * 6 + [True] * 4


@pytest.mark.parametrize(
    ("file", "notes", "omission"),
    [
        (changed(added=0, after="100755"), ("Can now be run as a program.",), ""),
        (changed(added=0, before="100755"), ("Can no longer be run as a program.",), ""),
        (changed("b.md", 0, kind="renamed", old="a.md"), ("Only its name changed.",), ""),
        (changed(added=0, kind="added", before="000000"), ("An empty file.",), ""),
        (changed(kind="added", before="000000", after="120000"), ("This is a link.",), "1 of its 1 changed line is"),
        (changed(after="120000"), ("A file before, a link after.",), "1 of its 1 changed line is not shown here."),
        (changed(before="160000", after="160000"), ("This is a submodule (another repository).",), "1 of its 1"),
        (changed(added=None, removed=None), (), "This is not a text file; its contents are not shown."),
    ],
)
def test_changes_without_lines_are_described(file: ChangedFile, notes: tuple[str, ...], omission: str) -> None:
    [diff] = file_diffs([file], [("")])
    assert diff.notes == notes
    assert diff.omission.startswith(omission)
    assert bool(diff.omission) == bool(omission)


def test_files_are_paged() -> None:
    change = PullRequestChange("", "", tuple(changed(f"{n}.md") for n in range(250)), 250, 250, 0)
    pages = [page_of_files(change, number) for number in (1, 2, 3, 4)]
    assert [(page.page, page.first, len(page.files), page.elsewhere) for page in pages] == [
        (1, 1, 100, 150), (2, 101, 100, 150), (3, 201, 50, 200), (3, 201, 50, 200),
    ]  # fmt: skip


@given(st.text())
def test_any_text_is_parsed_as_a_patch_or_nothing(text: str) -> None:
    parse_patch(text)
    parse_patch(f"diff --git a/x b/x\n@@ -1 +1 @@\n{text}")


@given(st.text())
def test_any_host_header_is_a_name_or_nothing(header: str) -> None:
    assert isinstance(host_name(header), str)


def test_our_own_names_and_origins_are_accepted() -> None:
    hosts = allowed_hosts("192.0.2.1", "https://Jobs.example:8443/x")
    assert hosts == {"127.0.0.1", "localhost", "::1", "192.0.2.1", "jobs.example"}
    public = "https://jobs.example:8443"
    assert is_same_origin("https://jobs.example:8443", "127.0.0.1:1", public)
    assert is_same_origin("http://127.0.0.1:1", "127.0.0.1:1", public)
    for origin in (None, "", "null", "https://jobs.example", "http://127.0.0.1", "https://127.0.0.1:1"):
        assert not is_same_origin(origin, "127.0.0.1:1", public)
