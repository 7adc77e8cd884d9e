"""What agents write notifies nobody, and hides no address; all else of it stays."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack.rendering.agent_markdown import BREAK, defused, markdown_pieces

LIVE_MENTION = re.compile(r"<[!@#][A-Za-z^]|@(here|channel|everyone|group)\b", re.IGNORECASE)
LABELLED_LINK = re.compile(r"<https?:[^<>|\n]*\|")
SOME = st.lists(
    st.sampled_from(
        [
            "<!channel>",
            "<@U0ANA>",
            "<#C1|general>",
            "@here",
            "<https://evil.example|good.example>",
            "[",
            "]",
            "(",
            ")",
            "!",
            "https://good.example",
            "https://evil.example",
            "](",
            "`",
            "```",
            "\n",
            " ",
            "[1]:",
            "a",
            "<",
            ">",
            "|",
            BREAK,
        ]
    ),
    max_size=30,
).map("".join)


@pytest.mark.parametrize(
    "text",
    ["<!channel> hi", "<@U0ANA>", "<#C012|general>", "@here", "`<!here>`", "```\n@channel\n```", "<!subteam^S1>"],
)
def test_nobody_is_mentioned(text: str) -> None:
    assert not LIVE_MENTION.search(defused(text))
    assert defused(text).replace(BREAK, "") == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[the guide](https://docs.example/guide)", "[the guide](https://docs.example/guide)"),
        ("[docs.example](https://docs.example/guide)", "[docs.example](https://docs.example/guide)"),
        ("[https://good.example](https://evil.example)", "https://good.example (https://evil.example)"),
        ("[good.example](https://good.example.evil.example)", "good.example (https://good.example.evil.example)"),
        ("[click](javascript:alert(1))", f"[click]{BREAK}(javascript:alert(1))"),
        ("[the page](../guide.md)", "the page"),
        ("[x](https://good.example@evil.example)", "x"),
        ("![logo](https://img.example/a.png)", "[logo](https://img.example/a.png)"),
        ("![](https://img.example/a.png)", "https://img.example/a.png"),
        (
            "[https://good.example [x]](https://evil.example)",
            f"[https://good.example [x]]{BREAK}(https://evil.example)",
        ),
        ("[good.example]: https://evil.example", f"[good.example]{BREAK}: https://evil.example"),
        ("<https://evil.example|https://good.example>", f"<{BREAK}https://evil.example|https://good.example>"),
        ("<https://docs.example/guide>", "<https://docs.example/guide>"),
    ],
)
def test_a_link_says_where_it_leads(text: str, shown: str) -> None:
    assert defused(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "# Title\n\n- one\n- **two** `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |",
        "```mdx\n<Card title='x'>\n```",
        "a < b && c > d",
    ],
)
def test_all_else_stays_as_the_agent_wrote_it(text: str) -> None:
    assert defused(text) == text


def test_what_reorders_or_hides_is_taken_out() -> None:
    assert defused("a\u202eb\u200bc\x07") == "abc"


def test_a_fence_that_was_cut_open_is_closed() -> None:
    assert defused("```sh\npip install …") == "```sh\npip install …\n```"


@given(SOME)
def test_whatever_is_put_together_stays_harmless(text: str) -> None:
    shown = defused(text)
    assert not LIVE_MENTION.search(shown)
    assert not LABELLED_LINK.search(shown)
    assert not re.search(r"\[https://good\.example\]\(https://evil", shown)


@given(st.text(st.sampled_from("ab \n`~"), max_size=300), st.integers(20, 80))
def test_pieces_hold_all_lines_and_are_no_longer_than_asked(text: str, limit: int) -> None:
    pieces = markdown_pieces(text, limit)
    words = [word for piece in pieces for word in re.findall("[ab]", piece)]
    assert words == re.findall("[ab]", text)
    assert all(len(piece) <= 2 * limit + 300 for piece in pieces)
