"""Invisible and reordering characters are neither shown nor sent to the agent; those that
scripts and emoji need are.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.slack_payloads import command, edit, event
from support.worlds.listening_world import listening

from bot.domain.context.message_text import unescape
from bot.domain.context.slack_files import FileContent, SlackFile, quoted
from bot.jobserver.pages.diff import visible_line
from bot.jobserver.pages.rendering import render_page
from bot.runtime.text import displayable, printable_line, without_misleading
from bot.slack.message_parts.attachments import read_file
from bot.slack.message_parts.slack_message import MessageFile, SlackMessage
from bot.slack.message_parts.thread_messages import thread_message
from bot.slack.rendering import text

DECEPTIVE = [
    *map(
        chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C, 0x200B, 0xFEFF, 0x3164, 0xE0041)
    ),
    *map(chr, (0x00AD, 0x034F, 0x206A, 0xFFF0, 0x1D173, 0x1BCA0, 0xE0080, 0xE0100, 0xE01EF, 0xE0FFF)),
]
ALONE = [*map(chr, (0x200C, 0x200D, 0xFE00, 0xFE0E, 0xFE0F, 0x180B, 0x180E, 0x180F))]
"""Characters that only some scripts and emoji need."""


@pytest.mark.parametrize("sign", DECEPTIVE)
def test_misleading_characters_are_removed_from_displayed_text(sign: str) -> None:
    said = f"invoice{sign}fdp.exe"
    for shown in (
        text.escape,
        text.quote,
        lambda words: text.one_line(words, 99),
        lambda words: printable_line(words, 99),
    ):
        assert sign not in shown(said)
    assert "".join(text.pieces(said, 99)) == text.opening(said, characters=99, lines=9)[0] == "invoicefdp.exe"
    assert text.safe_url(f"https://example.org/{sign}x") is None
    assert sign not in visible_line(said)
    assert f"[U+{ord(sign):04X}]" in visible_line(said)
    answer = render_page("error.html", message=said, status=400)
    assert isinstance(answer.body, bytes)
    assert sign not in answer.body.decode()


WRITTEN_SO = [
    "👩‍👩‍👧 ❤️ ❤️‍🔥 🏳️‍🌈 👩🏽‍🚀 🧑🏿‍⚖️ 🐦‍⬛ 🙂‍↔️ 👁️‍🗨️",
    "1️⃣ #️⃣ ©️ ™️ ‼️ \u2139\ufe0f ☎︎ 🫩",
    "שלום עולם",
    "می‌خواهم \u0647\u200d",
    "e\u0301",
    "क्‍ष क्‌ष ක්‍ර ക്‍",
    "ᠬᠠᠭᠠᠨ ᠠ᠋ ᠮᠣᠩᠭᠣᠯ ᠭᠡᠷ᠎ᠡ",
    "က︀ ∩︀",
    "葛飾区 ﷽ \uff41",
]


@pytest.mark.parametrize("words", WRITTEN_SO)
def test_scripts_and_emoji_are_unchanged(words: str) -> None:
    assert text.escape(words) == words == unescape(words)


@pytest.mark.parametrize("sign", ALONE)
def test_joiners_of_scripts_are_removed_elsewhere(sign: str) -> None:
    """For example text hidden in selectors after a letter, or several selectors after one emoji."""
    assert without_misleading(f"a{sign}b 1{sign} {sign}") == "ab 1 "
    assert len(without_misleading(f"❤{sign * 3}")) <= 2
    assert len(without_misleading(f"م{sign * 3}")) <= 2
    assert len(without_misleading(f"ᠠ{sign * 3}")) <= 2
    assert without_misleading("".join(f"a{chr(0xFE00 + number)}" for number in range(16))) == "a" * 16


def test_a_braille_blank_becomes_a_space() -> None:
    """It is drawn as a space, and separates words in braille."""
    assert text.escape("\u2813\u2800\u2815") == "\u2813 \u2815"


SIGNS = st.sampled_from(
    [*DECEPTIVE, *ALONE, *"aא1#मمᠠ❤👩🔥🏽⃣ \n\r\t\x00\x1b<>&|@\u2800\ud83d", "&lt;", "<@U1>", "<https://a.b|"]
)


@given(st.lists(SIGNS | st.characters(), max_size=40).map("".join))
def test_the_agent_receives_the_text_the_card_shows(written: str) -> None:
    """Cleaning is idempotent, in any order."""
    told = unescape(written)
    assert displayable(told) == told
    assert displayable(displayable(written)) == displayable(written)
    assert without_misleading(without_misleading(written)) == without_misleading(written)


HIDDEN = "fix\u202e the\U000e0041\U000e0042 gu\u200bi\U000e0100de\ufe0f\u2063s 👩‍🚀"
SEEN = "fix the guides 👩‍🚀"
PAYLOADS = {
    "a command": command(text=HIDDEN),
    "a reply": event(text=HIDDEN),
    "an edit": edit(HIDDEN),
    "a mention": event(type="app_mention", text=f"<@U0BOT> {HIDDEN}", thread_ts=None),
    "a direct message": event(text=HIDDEN, thread_ts=None, channel="D1", channel_type="im"),
}


@pytest.mark.parametrize("way", PAYLOADS)
async def test_hidden_text_is_not_recorded(way: str) -> None:
    async with listening() as world:
        await world.both_ways(PAYLOADS[way])
        recorded = repr(world.service.calls)
        assert repr(SEEN)[1:-1] in recorded
        assert "\\u202e" not in recorded


async def test_a_hidden_character_does_not_turn_an_aside_into_a_follow_up() -> None:
    async with listening() as world:
        await world.both_ways(event(text="\u2063<@U0BOB> shall we?"))
        assert world.service.calls == []


def test_hidden_text_is_not_sent_as_context() -> None:
    """In a thread, a forwarded message, and a file's name and text."""
    message = {
        "ts": "1700000001.000100",
        "username": HIDDEN,
        "text": HIDDEN,
        "files": [{"id": "F1", "name": HIDDEN}],
        "attachments": [
            {"is_share": True, "author_name": HIDDEN, "text": HIDDEN},
            {"title": HIDDEN, "text": HIDDEN, "from_url": "https://x.example"},
        ],
    }
    read = thread_message(SlackMessage.read(message))
    assert read is not None
    assert (read.author, read.text, read.files[0].name) == (SEEN, SEEN, SEEN)
    assert (read.forwarded[0].author, read.forwarded[0].text) == (SEEN, SEEN)
    assert (read.previews[0].title, read.previews[0].text) == (SEEN, SEEN)
    assert read_file(MessageFile.read({"id": "F1", "name": HIDDEN})).name == SEEN
    assert quoted(SlackFile("F1", "a"), FileContent(HIDDEN.encode(), "text/plain")).text == SEEN
