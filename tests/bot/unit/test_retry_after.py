"""The header Retry-After: seconds, a date on the server's clock, or garbage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.runtime.http.retry_after import LONGEST_WAIT, parse_retry_after

NOW = 1_767_225_600.0  # 1 January 2026
HOUR_OFF = "Wed, 01 Jan 2025 00:00:00 GMT"  # the server's clock is nowhere near ours


@pytest.mark.parametrize(
    ("value", "date", "wait"),
    [
        ("0", "", 0.0),
        ("7", "", 7.0),
        ("1.5", "", 1.5),
        (" 30 ", "", 30.0),
        ("3601", "", LONGEST_WAIT),
        ("9" * 20, "", LONGEST_WAIT),
        ("Thu, 01 Jan 2026 00:00:30 GMT", "", 30.0),
        ("Wed, 01 Jan 2025 00:00:30 GMT", HOUR_OFF, 30.0),
        ("Wed, 01 Jan 2025 09:00:00 GMT", HOUR_OFF, LONGEST_WAIT),
        ("Tue, 31 Dec 2024 00:00:00 GMT", HOUR_OFF, 0.0),
        ("Wed, 01 Jan 2020 00:00:00 GMT", "", 0.0),
        ("Fri, 01 Jan 2100 00:00:00 GMT", "soon", LONGEST_WAIT),
        ("-5", "", None),
        ("", "", None),
        ("soon", "", None),
        ("nan", "", None),
        ("inf", "", None),
        ("1e9", "", None),
        ("٣", "", None),
        ("9" * 5000, "", None),
        ("Wed, 01 Jan 99999 00:00:00 GMT", "", None),
    ],
)
def test_retry_after_is_parsed(value: str, date: str, wait: float | None) -> None:
    assert parse_retry_after(value, date=date, now=NOW) == wait


@given(st.text(), st.text())
def test_any_retry_after_is_bounded(value: str, date: str) -> None:
    wait = parse_retry_after(value, date=date, now=NOW)
    assert wait is None or 0.0 <= wait <= LONGEST_WAIT
