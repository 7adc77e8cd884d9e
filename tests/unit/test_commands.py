import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.commands import Aside, FollowUp, Help, Nothing, Start, parse_reply, parse_slash, plain


@pytest.mark.parametrize("text", ["", "   ", "help", "Help", " HELP "])
def test_nothing_and_help_ask_for_help(text: str) -> None:
    assert parse_slash(text) == Help()


def test_everything_else_is_a_prompt() -> None:
    assert parse_slash(' Replace "colour" with "color" ') == Start('Replace "colour" with "color"')
    assert parse_slash("help me with the guides") == Start("help me with the guides")


@pytest.mark.parametrize(
    ("escaped", "read"),
    [
        ("a &lt;b&gt; &amp; c", "a <b> & c"),
        ("&amp;lt;", "&lt;"),
        ("see <https://example.org/a>", "see https://example.org/a"),
        ("see <https://example.org|example.org>", "see https://example.org"),
        ("see <https://example.org/a|the page>", "see the page (https://example.org/a)"),
        ("mail <mailto:a@example.org|a@example.org>", "mail a@example.org"),
        ("ask <@U1> in <#C1|docs>", "ask @U1 in #docs"),
        ("ask <@U1|ana>", "ask @ana"),
        ("<!channel> and <!here|here>", "@channel and @here"),
        ("<!subteam^S1|@writers>", "@writers"),
        ("<!date^1392734382^{date}|2014-02-18>", "2014-02-18"),
        ("a\x00b\x1bc\nd\te", "abc\nd\te"),
    ],
)
def test_slacks_escaped_form_becomes_what_a_person_reads(escaped: str, read: str) -> None:
    assert plain(escaped) == read


def test_a_reply_steers_is_an_aside_or_says_nothing() -> None:
    assert parse_reply("<@UBOT> shorter, please", bot_user_id="UBOT") == FollowUp("shorter, please")
    assert parse_reply("// what do you think?", bot_user_id="UBOT") == Aside()
    assert parse_reply("<@UBOT> // between us", bot_user_id="UBOT") == Aside()
    assert parse_reply(" <@UBOT|pagehand> ", bot_user_id="UBOT") == Nothing()
    assert parse_reply("", bot_user_id="UBOT") == Nothing()


@given(st.text(max_size=2_000))
def test_any_text_is_read(text: str) -> None:
    read = plain(text)
    assert read == read.strip()
    assert "\x00" not in read


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=500))
def test_what_slack_escaped_comes_back_unchanged(text: str) -> None:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert plain(escaped) == text.strip()
