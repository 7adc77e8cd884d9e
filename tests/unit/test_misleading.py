"""What nobody sees and what turns text around is not shown; what scripts and emoji are written with is."""

import pytest

from bot.jobs.wire import printable_line
from bot.jobserver.pages.diff import visible_line
from bot.jobserver.pages.rendering import render_page
from bot.slack.rendering import text

DECEPTIVE = [
    *map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C, 0x200B, 0xFEFF, 0x3164, 0xE0041))
]


@pytest.mark.parametrize("sign", DECEPTIVE)
def test_it_is_taken_out_of_what_is_shown(sign: str) -> None:
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


@pytest.mark.parametrize("words", ["👩‍👩‍👧 ❤️", "שלום עולם", "می‌خواهم", "e\u0301"])
def test_scripts_and_emoji_stay_as_they_are(words: str) -> None:
    assert text.escape(words) == words
