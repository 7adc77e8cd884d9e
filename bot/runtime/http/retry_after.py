"""Parses the header Retry-After of a response."""

import math
import re
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime

LONGEST_WAIT = 3600.0
"""Seconds; a longer Retry-After is a mistake, or malicious."""

_SECONDS = re.compile(r"\d{1,20}(\.\d{1,20})?", re.ASCII)


def retry_after_in(headers: Mapping[str, str], *, now: Callable[[], float] = time.time) -> float | None:
    """Returns the seconds to wait according to a response's headers; None if they do not say."""
    return parse_retry_after(headers.get("Retry-After", ""), date=headers.get("Date", ""), now=now())


def parse_retry_after(value: str, *, date: str = "", now: float) -> float | None:
    """Returns the seconds to wait, from 0 to LONGEST_WAIT; None if the header is missing or malformed.

    Source: RFC 9110, 10.2.3 (seconds or a date; fractions are also accepted).

    Args:
        value: The header Retry-After, or an empty text.
        date: The header Date of the same response, or an empty text. If there is one, a date in Retry-After is compared
            with it, because our clock may be an hour off.
        now: Our own clock, in seconds since the epoch.
    """
    value = value.strip()
    if _SECONDS.fullmatch(value):
        return min(float(value), LONGEST_WAIT)
    until = _http_date(value)
    if until is None:
        return None
    server_now = _http_date(date)
    return min(max(until - (now if server_now is None else server_now), 0.0), LONGEST_WAIT)


def _http_date(value: str) -> float | None:
    try:
        seconds = parsedate_to_datetime(value[:100]).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError, OSError):
        return None
    return seconds if math.isfinite(seconds) else None
