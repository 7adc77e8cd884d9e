"""Which messages consist of thanks alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.commands.thanks import is_only_thanks

THANKS = [
    "thanks!", "Thank you", "THX", "great, thanks", "Thanks again :tada: 🎉", "ty <3",
    "thanks a lot for your great work", "Perfect \u2014 thank you all! :)", "That\u2019s great, thanks",
    "Nice job, thx", "merci beaucoup", "Vielen Dank!", "danke schön", "muchas gracias", "Obrigada!", "grazie mille",
    "tusen takk", "Спасибо большое", "ありがとうございます\uff01", "谢谢", "감사합니다", "धन्यवाद", "شكرا",
    "teşekkür ederim",
]  # fmt: skip
ANSWERS = [
    "", "ok", "OK!", "yes", "no", "go ahead", "sure", "great", "perfect", ":tada:", "thanks?", "ok thanks",
    "yes, thanks", "no thanks", "thanks, go ahead", "thanks, but shorter", "Thanks! Also fix the index", "thanks 2",
    "thanks https://a.example", "great job", "please thank the writers", "thanks.md", "add a thank-you page",
    "nein danke", "tak", "thank the team", "thanks, work on it",
]  # fmt: skip


@pytest.mark.parametrize("text", THANKS)
def test_thanks_are_recognized_in_several_languages(text: str) -> None:
    """With praise, emoji and other usual additions."""
    assert is_only_thanks(text)


@pytest.mark.parametrize("text", ANSWERS)
def test_possible_answers_are_not_thanks(text: str) -> None:
    """Neither is praise alone, nor anything that asks for something."""
    assert not is_only_thanks(text)


@given(st.text(max_size=300))
def test_any_text_is_checked_for_thanks(text: str) -> None:
    """Thanks with one more word are not."""
    assert not is_only_thanks(f"thanks {text} headings")
    is_only_thanks(text)


@pytest.mark.timeout(5)
@pytest.mark.parametrize("piece", ["thanks ", "so much ", "\ufdfa", "a'", ":", "thank "])
def test_a_megabyte_is_not_thanks(piece: str) -> None:
    assert not is_only_thanks(piece * (1_000_000 // len(piece)))
