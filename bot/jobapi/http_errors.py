"""Translates failures into bot.errors: whether the request arrived, and what to do about it."""

from enum import Enum
from http import HTTPStatus as Status
from urllib.parse import urlsplit

import aiohttp
import httpx

from bot import errors
from bot.jobapi.settings import GET_PATH
from bot.jobapi.wire import is_json_object
from bot.runtime.http.retry_after import retry_after_in
from bot.runtime.text import printable_line


class JobApiOperation(Enum):
    """The calls of the job API, with their paths; a project's settings can have another one for GET. The meaning of a
    404 depends on the call. The last five are not in the specification; Pagehand's own job server has them.
    """

    CREATE = "/v2/agent/{projectId}/job"
    MESSAGE = "/v2/agent/{projectId}/job/{id}/message"
    GET = GET_PATH
    CANCEL = "/v2/agent/{projectId}/job/{id}/cancel"
    DISCARD = "/v2/agent/{projectId}/job/{id}/discard"
    PULL_REQUEST = "/v2/agent/{projectId}/job/{id}/pull-request"
    PICTURE = "/v2/agent/{projectId}/job/{id}/picture/{pictureId}"
    UPLOAD = "/v2/agent/{projectId}/file/{id}"


# -- no response ----------------------------------------------------------------------------------------------------

_NEVER_CONNECTED = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    httpx.InvalidURL,
    aiohttp.ClientConnectorError,  # refused, DNS, TLS and its certificates, the proxy
    aiohttp.ConnectionTimeoutError,  # no connection, or no free one, in time
    aiohttp.ClientHttpProxyError,  # the proxy refused to open a tunnel
    aiohttp.InvalidURL,
    aiohttp.NonHttpUrlClientError,
)


def error_without_answer(error: Exception) -> errors.JobApiError:
    """Returns the error for a call without a response. It never quotes the library's message, which may have
    headers.
    """
    # httpx-aiohttp reports a connection lost while waiting as httpx.ConnectTimeout, as if nothing had been sent. So
    # aiohttp's own error decides, if there is one.
    origin = error.__cause__ if isinstance(error.__cause__, aiohttp.ClientError) else error
    if isinstance(origin, _NEVER_CONNECTED):
        return errors.JobApiUnreachable(f"The job API cannot be reached: {_why(origin)}.")
    if isinstance(origin, TimeoutError | httpx.TimeoutException):
        return errors.JobApiUncertain("The job API did not answer in time.")
    return errors.JobApiUncertain(f"The connection to the job API broke before it answered ({type(origin).__name__}).")


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


# -- unsuccessful responses -----------------------------------------------------------------------------------------


def error_for_status(
    operation: JobApiOperation, response: httpx.Response, words: str, body: bytes
) -> errors.JobApiError:
    """Returns the error for a response that is not 2xx; `words` are the API's own."""
    status, is_json = response.status_code, is_json_object(body)
    if status in {Status.UNAUTHORIZED, Status.FORBIDDEN}:
        what = "let Pagehand's key or address do this (403). Check its scopes and allowed addresses."
        if status == Status.UNAUTHORIZED:
            what = "know Pagehand's key (401). Check JOB_API_KEY, or the project's own: keys can expire."
        is_page = bool(body) and not is_json
        return errors.JobApiNotAllowed(f"The job API does not {what}", status=status, words=words, is_page=is_page)
    return (
        _not_accepted_yet(response, words)
        or _not_found(operation, status, words, is_json=is_json)
        or _rejected_or_failed(response, words)
    )


def _not_accepted_yet(response: httpx.Response, words: str) -> errors.JobApiUnreachable | None:
    """Returns the error for responses that are sent before the request is processed, so that retrying is safe."""
    status, wait = response.status_code, retry_after_in(response.headers)
    if status == Status.TOO_MANY_REQUESTS or (status == Status.SERVICE_UNAVAILABLE and wait is not None):
        return errors.JobApiBusy(f"The job API is busy ({status}).", words=words, status=status, retry_after=wait)
    if status in {Status.CONFLICT, Status.LOCKED}:
        return errors.JobApiBusy(
            f"Something else is going on with the job ({status}).", words=words, status=status, retry_after=wait
        )
    if status == Status.TOO_EARLY:  # RFC 8470: not processed, because it might be a replay
        return errors.JobApiUnreachable(f"The job API asks to send it again ({status}).", words=words, retry_after=wait)
    if status == Status.PROXY_AUTHENTICATION_REQUIRED:
        return errors.JobApiUnreachable(f"The job API cannot be reached: the proxy asks for a password ({status}).")
    return None


def _not_found(operation: JobApiOperation, status: int, words: str, *, is_json: bool) -> errors.JobApiError | None:
    if operation is JobApiOperation.UPLOAD:
        if status in {Status.NOT_FOUND, Status.GONE, Status.METHOD_NOT_ALLOWED, Status.NOT_IMPLEMENTED}:
            return errors.JobApiRejected(f"The job API takes no files ({status}).", words=words)
        if status == Status.INSUFFICIENT_STORAGE:
            return errors.JobApiRejected(f"The job API has no room for this file ({status}).", words=words)
    elif status == Status.NOT_FOUND and not is_json:
        return errors.NotTheJobApi(
            "What answers at the job API's address is not the job API (404): a proxy, or its base URL is wrong."
        )
    elif operation is JobApiOperation.CREATE:
        if status == Status.NOT_FOUND:
            return errors.NoSuchProject(f"The job API knows no such project ({status}).", words=words)
    elif status in {Status.NOT_FOUND, Status.GONE}:
        return errors.JobGone(f"The job API knows no such job ({status}).", words=words)
    return None


def _rejected_or_failed(response: httpx.Response, words: str) -> errors.JobApiError:
    status = response.status_code
    if httpx.codes.is_redirect(status):
        return errors.JobApiRejected(_redirected(response), words=words, status=status)
    # 408 should mean that the request did not arrive completely. But servers also send it when their own work took too
    # long, and then repeating a create could start a second job.
    if httpx.codes.is_client_error(status) and status != Status.REQUEST_TIMEOUT:
        return errors.JobApiRejected(f"The job API refused this ({status}).", words=words, status=status)
    kind = errors.JobApiFailed if httpx.codes.is_server_error(status) else errors.JobApiUncertain
    return kind(f"The job API failed ({status}).", words=words)


def _redirected(response: httpx.Response) -> str:
    try:
        host = urlsplit(response.headers.get("location", "")).hostname
    except ValueError:
        host = None
    where = f"to {printable_line(host, 100)}" if host else "to another address"
    return (
        f"The job API's address redirects {where} ({response.status_code}), which Pagehand does not follow: "
        "correct its base URL."
    )
