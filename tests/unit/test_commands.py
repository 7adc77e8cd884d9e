import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.commands import Aside, FollowUp, Help, LoneWord, NoWords, Start, parse_reply, parse_slash
from bot.domain.mentions import with_names
from bot.domain.message_text import BLANKS, unescape


@pytest.mark.parametrize(
    "text", ["", "   ", "help", "Help", " HELP ", "?", "-h", "-H", "--help", "\u2014help", "\u200b", "\ufeffhelp"]
)
def test_nothing_and_help_ask_for_help(text: str) -> None:
    assert parse_slash(text) == Help()


@pytest.mark.parametrize("word", ["status", "list", "cancel", "stop"])
def test_a_word_that_looks_like_a_command_asks_for_help_with_what_was_meant(word: str) -> None:
    for text in (word, word.upper(), f"  {word.title()} ", f"\u2060{word} \u200b"):
        assert parse_slash(text) == Help(LoneWord(word))


@pytest.mark.parametrize("word", ["help", "?", "-h", "--help", "status", "List", "cancel", "STOP"])
@pytest.mark.parametrize("quotes", ['""', "\u201c\u201d", "\u201e\u201c", "''", "\u2018\u2019", "\u00ab\u00bb", "``"])
def test_in_quotes_such_a_word_is_a_prompt(word: str, quotes: str) -> None:
    assert parse_slash(f"{quotes[0]}{word}{quotes[1]}") == Start(word)


@pytest.mark.parametrize("text", ["status page", "stop!", "list of pages", '"colour"', '"', '""', "cancelled"])
def test_other_words_are_prompts_as_they_are(text: str) -> None:
    assert parse_slash(text) == Start(text)


def test_everything_else_is_a_prompt() -> None:
    assert parse_slash(' Replace "colour" with "color" ') == Start('Replace "colour" with "color"')
    assert parse_slash("help me with the guides") == Start("help me with the guides")


def test_a_reply_steers_is_an_aside_or_says_nothing() -> None:
    assert parse_reply("<@UBOT> shorter, please", bot_user_id="UBOT") == FollowUp("shorter, please")
    assert parse_reply("// what do you think?", bot_user_id="UBOT") == Aside()
    assert parse_reply("<@UBOT> // between us", bot_user_id="UBOT") == Aside()
    assert parse_reply(" <@UBOT|pagehand> ", bot_user_id="UBOT") == NoWords()
    assert parse_reply("", bot_user_id="UBOT") == NoWords()
    assert parse_reply(" \ufeff\u200b", bot_user_id="UBOT") == NoWords()
    assert parse_reply("\u200b <@UBOT> \u200b// between us", bot_user_id="UBOT") == Aside()


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("Please <@UBOT> fix it", "Please fix it"),
        ("Please fix it, <@UBOT>", "Please fix it,"),
        ("hey <@UBOT>, shorter", "hey, shorter"),
        ("<@UBOT>: shorter", "shorter"),
        ("<@UBOT>, shorter", "shorter"),
        ("<@UBOT> <@UBOT> shorter", "shorter"),
        ("one\n<@UBOT> two", "one\ntwo"),
        ("<@UBOT>:tada: two  blanks", ":tada: two  blanks"),
        ("a<@UBOT>b", "ab"),
        ("<@UBOT2> is somebody else", "<@UBOT2> is somebody else"),
    ],
)
def test_taking_a_mention_out_leaves_the_words_as_they_would_be_without(written: str, told: str) -> None:
    said = parse_reply(written, bot_user_id="UBOT")
    assert isinstance(said, FollowUp)
    assert with_names(said.prompt, {}) == told.replace("<@UBOT2>", "@UBOT2")


@pytest.mark.timeout(30)
@pytest.mark.parametrize("piece", [" ", "<@UBOT|", "<@UBOT> ", " <@UBOT", "\n", "<@UBOT>,"])
def test_a_hostile_reply_of_a_megabyte_is_read(piece: str) -> None:
    parse_reply(piece * (1_000_000 // len(piece)), bot_user_id="UBOT")


@given(st.text(max_size=2_000))
def test_any_text_is_read(text: str) -> None:
    read = unescape(text)
    assert read == read.strip()
    assert "\x00" not in read


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=500))
def test_what_slack_escaped_comes_back_unchanged(text: str) -> None:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert unescape(escaped) == text.strip(BLANKS)
