"""The log: one line a record, whatever strangers put into it, and no secret in any of them."""

import logging

import pytest

from bot.runtime.logging import SecretMaskingFormatter, ThrottledLogger

FORGED = "2026-11-22 10:00:00,000 INFO    bot.store.audit: audit: asked person=UEVE"
LINE_ENDS = ("\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")


def formatted(message: str, *values: object, name: str = "bot", exception: BaseException | None = None) -> str:
    fault = (type(exception), exception, exception.__traceback__) if exception else None
    record = logging.LogRecord(name, logging.INFO, "", 0, message, values, fault)
    vars(record).update(created=0.0, msecs=0.0)  # two records of one text are equal, whenever they were made
    return SecretMaskingFormatter(["planted-secret"]).format(record)


def raised(words: str) -> ValueError:
    """An exception with a traceback."""
    with pytest.raises(ValueError, match=r".") as caught:
        int_of(words)
    return caught.value


def int_of(words: str) -> None:
    raise ValueError(words)


@pytest.mark.parametrize("end", LINE_ENDS)
def test_nobody_begins_a_line_of_their_own(end: str) -> None:
    """By an id, by the name of a logger, by words."""
    for text in (
        formatted("request %s", f"U1{end}{FORGED}"),
        formatted(f"words{end}{FORGED}"),
        formatted("words", name=f"bot{end}{FORGED}"),
    ):
        assert len(text.splitlines()) == 1
        assert FORGED in text


def test_nobody_moves_the_cursor() -> None:
    """Nor hides in a terminal what stands before."""
    assert formatted("request %s", "U1\x1b[2K\x08\x00") == formatted("request %s", r"U1\x1b[2K\x08\x00")


def test_a_traceback_has_lines_that_are_no_records() -> None:
    """Also where the exception's own text has some."""
    error = raised(f"wrong\n{FORGED}\x1b[2K\u2028{FORGED}")
    first, *further = formatted("failed", exception=error).splitlines()
    assert first.endswith("bot: failed")
    assert further[0] == "    Traceback (most recent call last):"
    assert all(line.startswith("    ") for line in further)
    assert len(further) >= 4


def test_secrets_are_masked_in_every_line() -> None:
    """In a traceback, too, and where a line's end stands right beside."""
    text = formatted("key %s", "a\nplanted-secret\n", exception=raised("planted-secret"))
    assert "planted-secret" not in text
    assert text.count("***") >= 2


def test_what_another_formatter_made_of_a_traceback_does_not_count() -> None:
    """A record goes to every handler, and keeps the first one's traceback."""
    error = raised("planted-secret")
    record = logging.LogRecord("bot", logging.INFO, "", 0, "failed", (), (ValueError, error, error.__traceback__))
    before = logging.Formatter().format(record)
    assert "planted-secret" not in SecretMaskingFormatter(["planted-secret"]).format(record)
    assert logging.Formatter().format(record) == before


def test_the_same_line_again_and_again_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """And then how often it was left out."""
    now = 0.0
    log = ThrottledLogger(logging.getLogger("bot.test"), monotonic=lambda: now)
    for number in range(2_500):
        log.warning("envelopes are left: %d are waiting", number)
    now = 60.0
    log.warning("envelopes are left: %d are waiting", 7)
    assert [each.getMessage() for each in caplog.records] == [
        "envelopes are left: 0 are waiting",
        "envelopes are left: 7 are waiting (2499 more times since)",
    ]
