"""Foreign text in a pull request at GitHub: it notifies nobody, closes nothing, hides nothing, fetches nothing."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bot.jobserver.pipeline.descriptions import commit_message
from bot.jobserver.pull_requests.github.github_pull_requests import LIMIT, description, title, with_addition
from bot.jobserver.repository.references import BREAK
from bot.jobserver.store.records import Instruction

# What GitHub acts on in rendered text. Source: its documentation of mentions, references and keywords.
MENTION = re.compile(r"(?:^|[^A-Za-z0-9_])@[A-Za-z0-9]", re.MULTILINE)
REFERENCE = re.compile(r"#\d|\bGH-\d", re.IGNORECASE)
ISSUE_LINK = re.compile(r"https?://(?:www\.)?github\.com/[^/\s]+/[^/\s]+/(?:issues|pull|discussions)/\d", re.IGNORECASE)


class Page(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.texts: list[str] = []
        self.comments: list[str] = []
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.links += [value or "" for name, value in attrs if name in {"href", "src"}]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


def rendered(markdown: str) -> Page:
    """Renders like GitHub: HTML passes through, tables and strikethrough are supported."""
    return Page(MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(markdown))


def acts(markdown: str) -> list[str]:
    """Returns what GitHub would do because of this text."""
    page = rendered(markdown)
    texts = [*page.texts, "".join(page.texts)]
    found = [f"mentions {text!r}" for text in texts if MENTION.search(text)]
    found += [f"refers {text!r}" for text in texts if REFERENCE.search(text)]
    found += [f"links {text!r}" for text in (*texts, *page.links) if ISSUE_LINK.search(text)]
    found += [f"hides {comment!r}" for comment in page.comments]
    return found + sorted(page.elements & {"img", "script", "iframe", "details", "picture", "video", "b", "team"})


HOSTILE = [
    "@acme/docs-team look", "fixes #1", "Closes: #12", "resolves acme/other#3", "GH-7 and gh-8",
    "fixes https://github.com/acme/docs/issues/1", "see [this](https://GitHub.com/acme/docs/pull/2)",
    "&#64;team", "&commat;team", "&#x40;team", r"\@team", "*a*@team", "_x_@team", "`x`@team", "(@team)", "\n@team",
    "&num;12", "&#35;12", r"\#12", "#&#49;2", "<!-- hidden -->", "<img src=https://evil.example/x>",
    "![x](https://evil.example/?secret)", "![x][1]\n\n[1]: https://evil.example/y", r"\\![x](https://evil.example/z)",
    "<details><summary>x</summary>@team</details>", "<b>@team</b>",
    "@\u200bteam \u202e@team", "x<b></b>@team", "|@team|#1|\n|-|-|\n|@team|#2|", "~~@team~~", "> @team fixes #1",
    "- [ ] @team", "```\n@team #1\n```", "[@team](x)", "<@team>", "é@team", "1.@team",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_active_markup_is_defused(text: str) -> None:
    assert acts(text), "the test looks for the wrong thing"
    assert acts(description(text, has_redirecting_host=True)) == []


@given(st.lists(st.sampled_from([*HOSTILE, " ", "\n", "a", "*", "`", "<", "&", "!", "#", "@", "\\", "1"]), max_size=12))
def test_combined_fragments_are_harmless(parts: list[str]) -> None:
    assert acts(description("".join(parts), has_redirecting_host=True)) == []


def test_plain_words_addresses_and_code_are_unchanged() -> None:
    text = (
        "Fixes the page.\n\n- `<Card title='A & B'>` is closed\n- mail ada@example.com\n- see <https://example.com/a>\n\n"
        "| a | b |\n|---|---|\n| 1 < 2 | AT&T |\n\n```mdx\nimport { Card } from 'x'\n```"
    )  # fmt: skip
    assert description(text, has_redirecting_host=True).replace(BREAK, "") == text
    assert description("1 < 2 && a #tag: AT&T, ada@example.com", has_redirecting_host=True) == (
        "1 < 2 && a #tag: AT&T, ada@example.com"
    )


def test_issue_links_create_no_cross_references() -> None:
    link = "https://github.com/acme/docs/issues/1"
    assert description(link, has_redirecting_host=True) == "https://redirect.github.com/acme/docs/issues/1"
    assert f"/issues/{BREAK}1" in description("https://github.example.com/a/b/issues/1", has_redirecting_host=False)


def test_a_title_is_one_short_line_without_references() -> None:
    assert title("Fix #12 for @team\n\x00now") == f"Fix #{BREAK}12 for @{BREAK}team now"
    assert len(title("long " * 100)) <= 256
    assert title(" \n ") == "Change the documentation"


def test_a_commit_message_creates_no_references() -> None:
    message = commit_message(Instruction(7, "abc", "pagehand/abc", "", "Fixes #12, @team"))
    assert message == f"Fixes #{BREAK}12, @{BREAK}team\n\nPagehand-Instruction: abc/7\n"


@given(st.lists(st.text(alphabet="ab `#@<\n", max_size=50).map(lambda part: part * 900), max_size=5))
def test_a_growing_description_fits_and_contains_the_newest_text(parts: list[str]) -> None:
    body = ""
    for part in parts:
        addition = description(part, has_redirecting_host=True)
        body = with_addition(body, addition)
        assert len(body) <= LIMIT
        assert addition in body
        assert with_addition(body, addition) == body
