"""Pages in Markdown and MDX as HTML: what is shown, and that authored text is inert."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.jobserver.pages.handlers import shown_description
from bot.jobserver.pages.markdown import LONGEST_HTML, PageSource, picture_path, render
from bot.jobserver.pages.page_renderer import MarkdownRenderer

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
    text = "---\ntitle: A\n---\n\nimport X from 'y'\n\n<Card\n  title=\"A\"\n>\n    Some **text**.\n</Card>\n"
    rendered = html(text, "a.mdx")
    assert '<pre class="front-matter">title: A</pre>' in rendered
    assert '<pre class="component">import X from &#x27;y&#x27;</pre>' in rendered
    assert '<pre class="component">&lt;Card\ntitle=&quot;A&quot;\n&gt;</pre>' in rendered
    assert "Some <strong>text</strong>." in rendered
    assert '<pre class="component">&lt;/Card&gt;</pre>' in rendered


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
    shown = await shown_description("> One\n> two\n\n- <b>x</b> `y`", 1, renderer)
    assert shown.html is not None
    assert "<p>One<br />\ntwo</p>" in shown.html
    assert "<li>&lt;b&gt;x&lt;/b&gt; <code>y</code></li>" in shown.html
    endless = await shown_description("[" * 50_000, 1, MarkdownRenderer(time_limit=0.001))
    assert (endless.html, endless.text) == (None, "[" * 50_000)
    long = await shown_description("x" * 60_000, 1, renderer)
    assert (long.html, len(long.text), long.hidden) == (None, 50_000, 10_000)
