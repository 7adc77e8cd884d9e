"""The log: one line per record, whatever strangers put into it, and no secret in any of them."""

import io
import json
import logging
import os
from typing import Any

import pytest

from bot.runtime.logging import (
    MAX_FIELD,
    MAX_MESSAGE,
    MAX_TRACEBACK,
    JsonFormatter,
    LogContext,
    LogFormat,
    TextFormatter,
    ThrottledLogger,
    format_for,
    formatter,
    log_context,
)

pytestmark = pytest.mark.promise("log")

FORGED = "2026-11-22 10:00:00,000 INFO    bot.store.audit: audit: asked person=UEVE"
LINE_ENDS = ("\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")


def formatted(
    message: str,
    *values: object,
    name: str = "bot",
    exception: BaseException | None = None,
    log_format: LogFormat = LogFormat.TEXT,
    **fields: str,
) -> str:
    fault = (type(exception), exception, exception.__traceback__) if exception else None
    record = logging.LogRecord(name, logging.INFO, "", 0, message, values, fault)
    vars(record).update(created=0.0, msecs=0.0, fields=fields)  # equal records, whenever they were made
    return formatter(log_format, ["planted-secret"]).format(record)


def as_json(message: str, *values: object, **more: Any) -> dict[str, str]:
    """Returns the JSON of a record, which is one line."""
    line = formatted(message, *values, log_format=LogFormat.JSON, **more)
    assert len(line.splitlines()) == 1
    entry: dict[str, str] = json.loads(line)
    return entry


def raised(words: str) -> ValueError:
    """Returns an exception with a traceback."""
    with pytest.raises(ValueError, match=r".") as caught:
        int_of(words)
    return caught.value


def int_of(words: str) -> None:
    raise ValueError(words)


@pytest.mark.parametrize("end", LINE_ENDS)
def test_no_message_can_forge_a_log_line(end: str) -> None:
    """By an id, a logger's name, a text or a field."""
    for log_format in LogFormat:
        for text in (
            formatted("request %s", f"U1{end}{FORGED}", log_format=log_format),
            formatted(f"words{end}{FORGED}", log_format=log_format),
            formatted("words", name=f"bot{end}{FORGED}", log_format=log_format),
            formatted("words", job=f"job-1{end}{FORGED}", log_format=log_format),
        ):
            assert len(text.splitlines()) == 1
            assert FORGED in text


def test_no_message_can_move_the_terminals_cursor() -> None:
    """Nor can it hide earlier output."""
    assert formatted("request %s", "U1\x1b[2K\x08\x00") == formatted("request %s", r"U1\x1b[2K\x08\x00")


def test_a_traceback_has_lines_without_a_record_prefix() -> None:
    """Even if the exception's own text has some."""
    error = raised(f"wrong\n{FORGED}\x1b[2K\u2028{FORGED}")
    first, *further = formatted("failed", exception=error).splitlines()
    assert first.endswith("bot: failed")
    assert further[0] == "    Traceback (most recent call last):"
    assert all(line.startswith("    ") for line in further)
    assert len(further) >= 4


def test_secrets_are_masked_in_every_line() -> None:
    """Including tracebacks, and secrets at the end of a line."""
    text = formatted("key %s", "a\nplanted-secret\n", exception=raised("planted-secret"))
    assert "planted-secret" not in text
    assert text.count("***") >= 2


def test_secrets_are_masked_in_every_part_of_json() -> None:
    """Even if JSON escapes them, or a part is cut."""
    error = raised("planted-secret")
    entry = as_json(
        "planted-secret %s", "x" * MAX_MESSAGE, name="planted-secret", exception=error, job="planted-secret"
    )
    assert "planted-secret" not in str(entry)
    assert all("***" in entry[part] for part in ("message", "logger", "exception", "job"))
    odd = 'a"b\\c\nd'
    record = logging.LogRecord("bot", logging.INFO, "", 0, "see %s", (odd,), None)
    assert json.loads(JsonFormatter([odd]).format(record))["message"] == "see ***"
    half = MAX_MESSAGE // 2
    assert "planted" not in as_json("%s", "x" * (half - 8) + "planted-secret" + "y" * half)["message"]


def test_json_has_the_standard_record_attributes() -> None:
    entry = as_json("a %s", "b", exception=raised("wrong"), way_in="command", job="")
    assert entry.pop("exception").startswith("Traceback (most recent call last):")
    told = {"level": "INFO", "logger": "bot", "message": "a b", "way_in": "command"}
    assert entry == {"time": "1970-01-01T00:00:00.000+00:00", **told}


def test_a_line_includes_its_context_fields() -> None:
    """As unmistakable words, from a context that ends."""
    with log_context(LogContext("r-1", 'job-1" thread=x', "t1")):
        assert formatted("sent", job="").endswith(r'bot: sent request=r-1 job="job-1\" thread=x" thread=t1')
        assert formatted("sent", job="j2").endswith("bot: sent job=j2 request=r-1 thread=t1")
        assert as_json("sent")["thread"] == "t1"
    assert formatted("sent").endswith("bot: sent")


def test_no_field_can_replace_a_record_attribute() -> None:
    record = logging.LogRecord("bot", logging.INFO, "", 0, "true", (), None)
    record.fields = {"message": "forged", "level": "ERROR"}
    entry = json.loads(JsonFormatter([]).format(record))
    assert (entry["message"], entry["level"]) == ("true", "INFO")


@pytest.mark.parametrize("log_format", LogFormat)
def test_a_record_has_a_bounded_length(log_format: LogFormat) -> None:
    error = raised("e" * 1_000_000)
    text = formatted("m" * 1_000_000, exception=error, job="j" * 1_000_000, log_format=log_format)
    assert len(text) < (MAX_MESSAGE + MAX_FIELD + MAX_TRACEBACK) * 1.1
    assert "characters left out" in text


def test_text_goes_to_terminals_and_json_elsewhere() -> None:
    controller, terminal = os.openpty()
    with os.fdopen(terminal, "w") as stream:
        assert format_for(stream) is LogFormat.TEXT
    os.close(controller)
    assert format_for(io.StringIO()) is LogFormat.JSON


def test_a_traceback_cached_by_another_formatter_is_ignored() -> None:
    """A record goes to every handler, and keeps the first one's traceback."""
    error = raised("planted-secret")
    record = logging.LogRecord("bot", logging.INFO, "", 0, "failed", (), (ValueError, error, error.__traceback__))
    before = logging.Formatter().format(record)
    assert "planted-secret" not in TextFormatter(["planted-secret"]).format(record)
    assert logging.Formatter().format(record) == before


def test_repeated_lines_are_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """The next line says how often it was left out."""
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
