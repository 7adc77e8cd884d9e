"""What each way to fail means (the table of remedies): did the request arrive, and who can do something about it."""

import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from enum import Enum
from http import HTTPStatus as Status
from urllib.parse import urlsplit

import aiohttp
import httpx

from bot.errors import (
    JobApiBusy,
    JobApiError,
    JobApiNotAllowed,
    JobApiRefused,
    JobApiUncertain,
    JobApiUnreachable,
    JobGone,
    NoSuchProject,
)
from bot.jobs.wire import clean

LONGEST_WAIT = 3600.0
"""Seconds; a Retry-After above this is a mistake or a trap."""

_SECONDS = re.compile(r"\d{1,20}(\.\d{1,20})?", re.ASCII)


class Operation(Enum):
    """The three calls; what a 404 says depends on which it is."""

    CREATE = "create"
    MESSAGE = "message"
    GET = "get"


# -- no answer ------------------------------------------------------------------------------------------------------

_NEVER_CONNECTED = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    httpx.InvalidURL,
)
_AIOHTTP_NEVER_CONNECTED = (
    aiohttp.ClientConnectorError,  # refused, DNS, TLS and its certificates, the proxy
    aiohttp.ConnectionTimeoutError,  # no connection, or none free, in time
    aiohttp.ClientHttpProxyError,  # the proxy would not open a tunnel
    aiohttp.InvalidURL,
    aiohttp.NonHttpUrlClientError,
)


def no_answer(fault: Exception) -> JobApiError:
    """The error for a call that ended without an answer. Foreign messages, which may quote headers, are left out."""
    # httpx-aiohttp turns a connection cut while waiting into httpx.ConnectTimeout, as if nothing had been sent: so
    # what aiohttp itself raised decides, wherever there is such a thing.
    origin = fault.__cause__ if isinstance(fault.__cause__, aiohttp.ClientError) else fault
    if isinstance(origin, aiohttp.ClientError):
        sent = not isinstance(origin, _AIOHTTP_NEVER_CONNECTED)
    else:
        sent = not isinstance(origin, _NEVER_CONNECTED)
    if not sent:
        return JobApiUnreachable(f"The job API can't be reached: {_why(origin)}.")
    if isinstance(origin, TimeoutError | httpx.TimeoutException):
        return JobApiUncertain("The job API did not answer in time.")
    return JobApiUncertain(f"The connection to the job API broke before it answered ({type(origin).__name__}).")


_REASONS: tuple[tuple[tuple[type[BaseException], ...], str], ...] = (
    ((TimeoutError, httpx.TimeoutException), "no connection in time"),
    ((aiohttp.ClientConnectorDNSError,), "its host name is not known"),
    ((aiohttp.ClientConnectorCertificateError,), "its certificate is not trusted"),
    ((aiohttp.ClientSSLError,), "no secure connection could be made"),
    (
        (aiohttp.ClientProxyConnectionError, aiohttp.ClientHttpProxyError, httpx.ProxyError),
        "the proxy does not let Pagehand through",
    ),
    ((aiohttp.InvalidURL, httpx.InvalidURL, httpx.UnsupportedProtocol), "its address is not valid"),
)


def _why(origin: BaseException) -> str:
    return next((why for kinds, why in _REASONS if isinstance(origin, kinds)), "the connection was not accepted")


# -- an answer other than success -----------------------------------------------------------------------------------


def refusal(operation: Operation, answer: httpx.Response, words: str) -> JobApiError:
    """The error for an answer that is not 2xx; `words` are the API's own."""
    status = answer.status_code
    if status in {Status.UNAUTHORIZED, Status.FORBIDDEN}:
        what = {
            Status.UNAUTHORIZED: "know Pagehand's key (401). Check JOB_API_KEY; keys can expire.",
            Status.FORBIDDEN: "let Pagehand's key or address do this (403). Check its scopes and allowed addresses.",
        }
        return JobApiNotAllowed(f"The job API does not {what[Status(status)]}", status=status, words=words)
    return _turned_away(answer, words) or _absent(operation, status, words) or _failed(answer, words)


def _turned_away(answer: httpx.Response, words: str) -> JobApiUnreachable | None:
    """The answers that are given before anything is done: trying again can't do it twice."""
    status, wait = answer.status_code, retry_after(answer.headers)
    if status == Status.TOO_MANY_REQUESTS or (status == Status.SERVICE_UNAVAILABLE and wait is not None):
        return JobApiBusy(f"The job API is busy ({status}).", words=words, retry_after=wait)
    if status == Status.TOO_EARLY:  # RFC 8470: not processed, since it might be a replay
        return JobApiUnreachable(f"The job API asks to send it again ({status}).", words=words, retry_after=wait)
    if status == Status.PROXY_AUTHENTICATION_REQUIRED:
        return JobApiUnreachable(f"The job API can't be reached: the proxy asks for a password ({status}).")
    return None


def _absent(operation: Operation, status: int, words: str) -> JobApiError | None:
    if operation is Operation.CREATE:
        if status == Status.NOT_FOUND:
            return NoSuchProject(f"The job API knows no such project ({status}).", words=words)
    elif status in {Status.NOT_FOUND, Status.GONE}:
        return JobGone(f"The job API knows no such job ({status}).", words=words)
    return None


def _failed(answer: httpx.Response, words: str) -> JobApiError:
    status = answer.status_code
    if httpx.codes.is_redirect(status):
        return JobApiRefused(_redirected(answer), words=words)
    # 408 is meant to say that the request never came in whole, but servers also send it when their own work took too
    # long: repeating a create on that ground could start a second job.
    if httpx.codes.is_client_error(status) and status != Status.REQUEST_TIMEOUT:
        return JobApiRefused(f"The job API refused this ({status}).", words=words)
    return JobApiUncertain(f"The job API failed ({status}).", words=words)


def _redirected(answer: httpx.Response) -> str:
    try:
        host = urlsplit(answer.extensions.get("location", "")).hostname
    except ValueError:
        host = None
    where = f"to {clean(host, 100)}" if host else "to another address"
    return (
        f"The job API's address redirects {where} ({answer.status_code}), which Pagehand does not follow: "
        "correct its base URL."
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from 0 to an hour; None where the header is missing, garbage or negative (RFC 9110, 10.2.3)."""
    value = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(value):
        return min(float(value), LONGEST_WAIT)
    until = _http_date(value)
    if until is None:
        return None
    # Measured on the server's own clock where it tells it, since ours may be an hour off.
    now = _http_date(headers.get("date", ""))
    return min(max(until - (time.time() if now is None else now), 0.0), LONGEST_WAIT)


def _http_date(value: str) -> float | None:
    try:
        seconds = parsedate_to_datetime(value[:100]).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError, OSError):
        return None
    return seconds if math.isfinite(seconds) else None
