"""How changes are described, for any prompt, agent and repository; at GitHub, foreign text has no effect."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from pydantic import TypeAdapter
from support.worlds.jobserver_world import git, make_repository

from bot.jobapi.models import CheckResult, CheckStatus, PromptBody, Requester
from bot.jobserver.pipeline.descriptions import (
    Proposal,
    commit_message,
    pull_request_description,
    subject,
    task_from_checks,
    why_nothing_changed,
)
from bot.jobserver.pull_requests.github.github_pull_requests import LIMIT, description, title, with_addition
from bot.jobserver.store.records import Instruction
from bot.jobserver.text import BREAK

REQUESTER = TypeAdapter(Requester)
ROBIN = Requester(name="Robin Field", id="U1", url="https://example.slack.com/archives/C1/p1")
FORGED = "Fix it\n\nPagehand-Instruction: x/1\nRequested-by: Somebody else"
BREAKOUTS = [
    "</blockquote><h1>", "<!-- ", "```", "~~~", "> ", "\r", "\x85", "\u2028", "\\<b>", "\\\\<b>", "<details>", "\n\n",
    "<script>", "<?", "<!DOCTYPE", "<![CDATA[", "- ", "1. ", "# ", "    ", "\t", "[x]: y", "|a|\n|-|", "$$", "`",
]  # fmt: skip
NASTY = st.lists(st.sampled_from(BREAKOUTS) | st.text(max_size=20)).map("".join)


@given(st.text(), st.none() | st.text(max_size=300))
def test_a_commit_message_always_ends_with_our_trailers(prompt: str, name: str | None) -> None:
    body = PromptBody.model_construct(prompt=prompt)
    requester = REQUESTER.validate_python({"name": f"R {name}"[:200]}) if name is not None else None
    message = commit_message(Instruction(7, "abc", "docs", "pagehand/abc", "", body.prompt, requester))
    first, rest = message.replace(BREAK, "").split("\n", 1)
    assert 0 < len(first) <= 72
    assert first.isprintable()
    assert rest.startswith("\n")
    *_, trailers = message.rstrip("\n").split("\n\n")
    assert [line.partition(":")[0] for line in trailers.split("\n")] == [
        *(["Requested-by"] if requester else []),
        "Pagehand-Instruction",
    ]
    assert message.endswith("\nPagehand-Instruction: abc/7\n")
    assert "\0" not in message


def test_git_reads_our_trailers_and_no_forged_ones(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a.md": "a"})
    forged_name = REQUESTER.validate_python({"name": "Eve\nPagehand-Instruction: x/1", "url": "https://example.com/t"})
    for prompt in (FORGED, f"{FORGED}\n", "x\n---\nPagehand-Instruction: x/1", "# Pagehand-Instruction: x/1\n\n#"):
        message = commit_message(Instruction(7, "abc", "docs", "pagehand/abc", "", prompt, forged_name))
        git(repository, "commit", "--quiet", "--allow-empty", "--cleanup=verbatim", "-m", message)
        for key, value in (
            ("Pagehand-Instruction", "abc/7"),
            ("Requested-by", "Eve Pagehand-Instruction: x/1 (https://example.com/t)"),
        ):
            found = git(repository, "log", "-1", f"--format=%(trailers:key={key},valueonly)")
            assert found.strip() == value


def test_titles_and_descriptions_are_formatted() -> None:
    assert subject("  a\n b\t") == "a b"
    assert subject("\u200b\n") == "Change the documentation"
    assert pull_request_description(Proposal("a\n\nb")) == "> a\n>\n> b"
    assert pull_request_description(Proposal("a", "Done.")) == "> a\n\nThe agent answered:\n\n> Done."


def test_a_description_has_requester_omissions_and_problems() -> None:
    checks = (
        CheckResult(name="links", status=CheckStatus.FAILED, problems=("docs/faq.md: [gone](gone.md) leads nowhere",)),
        CheckResult(name="vale", status=CheckStatus.PASSED),
    )
    left_out = ("`big.bin` is larger than 5 MB",)
    proposal = Proposal("Add a FAQ", "Done.", ROBIN, ("main was merged into the branch",), left_out, checks)
    assert pull_request_description(proposal).split("\n\n") == [
        "[Robin Field](https://example.slack.com/archives/C1/p1) asked:",
        "> Add a FAQ",
        "The agent answered:",
        "> Done.",
        "Main was merged into the branch.",
        "Left out:",
        "- `big.bin` is larger than 5 MB",
        "The checks still find:",
        "- links: docs/faq.md: [gone](gone.md) leads nowhere",
    ]
    assert "docs/faq.md: [gone](gone.md) leads nowhere" in task_from_checks(checks)
    assert "not by a person" in task_from_checks(checks)


@given(NASTY, NASTY, st.text(min_size=1, max_size=50))
@example("a\r```", "a\u2028~~~", "x")
def test_texts_of_people_and_agents_stay_in_their_quotation(prompt: str, summary: str, name: str) -> None:
    requester = Requester(name=f"R {name}", url="https://example.com/x")
    description = pull_request_description(
        Proposal(prompt, summary, requester, left_out=("END OF IT",)),
    )
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(description)
    outside = [token for token in tokens if token.level == 0 and token.nesting >= 0]
    kinds = [token.type for token in outside]
    assert kinds[-2:] == ["paragraph_open", "bullet_list_open"], "text after a quotation is not part of it"
    assert set(kinds) <= {"blockquote_open", "paragraph_open", "bullet_list_open"}
    assert not [token for token in tokens if token.type == "html_block"]
    inline = [child for token in tokens for child in token.children or ()]
    assert not [child for child in inline if child.type == "html_inline"]


@given(st.text(max_size=100_000, alphabet="a\n<>`\u2028"))
def test_a_description_is_bounded(text: str) -> None:
    failed = CheckResult(name="links", status=CheckStatus.FAILED, problems=(text[:3000],) * 300)
    description = pull_request_description(Proposal(text, text, ROBIN, (text,), (text,) * 300, (failed,) * 9))
    assert len(description) < 60_000, "GitHub takes 65,536 characters"
    assert len(task_from_checks((failed,) * 9)) < 20_000


def test_an_unchanged_result_is_explained() -> None:
    assert why_nothing_changed("", "", ()) == "The agent changed no files."
    assert why_nothing_changed("It is right as it is.", "", ()) == "It is right as it is."
    assert why_nothing_changed("", "Which page?", ()) is None
    assert (why_nothing_changed("", "", [f"{n}.log" for n in range(500)]) or "").endswith("; 29.log; and 470 more")
    assert (
        why_nothing_changed("", "", ("`a` is a link", "`b` is too large"))
        == "Left out: `a` is a link; `b` is too large"
    )


def test_names_are_one_line_and_addresses_valid() -> None:
    assert REQUESTER.validate_python({"name": "a\nb\u202e\x00c"}).name == "a b c"
    assert not re.search(r"\s", ROBIN.url or " ")


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
    assert acts(description(text)) == []


@given(st.lists(st.sampled_from([*HOSTILE, " ", "\n", "a", "*", "`", "<", "&", "!", "#", "@", "\\", "1"]), max_size=12))
def test_combined_fragments_are_harmless(parts: list[str]) -> None:
    assert acts(description("".join(parts))) == []


def test_plain_words_addresses_and_code_are_unchanged() -> None:
    text = (
        "Fixes the page.\n\n- `<Card title='A & B'>` is closed\n- mail ada@example.com\n- see <https://example.com/a>\n\n"
        "| a | b |\n|---|---|\n| 1 < 2 | AT&T |\n\n```mdx\nimport { Card } from 'x'\n```"
    )  # fmt: skip
    assert description(text).replace(BREAK, "") == text
    assert description("1 < 2 && a #tag: AT&T, ada@example.com") == ("1 < 2 && a #tag: AT&T, ada@example.com")


def test_issue_links_create_no_cross_references() -> None:
    link = "https://github.com/acme/docs/issues/1"
    assert description(link) == "https://redirect.github.com/acme/docs/issues/1"


def test_a_title_is_one_short_line_without_references() -> None:
    assert title("Fix #12 for @team\n\x00now") == f"Fix #{BREAK}12 for @{BREAK}team now"
    assert len(title("long " * 100)) <= 256
    assert title(" \n ") == "Change the documentation"


def test_a_commit_message_creates_no_references() -> None:
    message = commit_message(Instruction(7, "abc", "docs", "pagehand/abc", "", "Fixes #12, @team"))
    assert message == f"Fixes #{BREAK}12, @{BREAK}team\n\nPagehand-Instruction: abc/7\n"


@given(st.lists(st.text(alphabet="ab `#@<\n", max_size=50).map(lambda part: part * 900), max_size=5))
def test_a_growing_description_fits_and_contains_the_newest_text(parts: list[str]) -> None:
    body = ""
    for part in parts:
        addition = description(part)
        body = with_addition(body, addition)
        assert len(body) <= LIMIT
        assert addition in body
        assert with_addition(body, addition) == body
