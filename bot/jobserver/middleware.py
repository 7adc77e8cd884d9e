"""Middleware for all HTTP requests: checks Host and Origin, and turns errors into responses."""

import logging
import secrets
from collections.abc import Callable, Collection
from http import HTTPStatus
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from bot.jobserver.errors import PullRequestNotFoundError
from bot.runtime.logging import REQUEST_ID_HEADER, LogContext, is_request_id, log_context

logger = logging.getLogger(__name__)
ErrorResponseFactory = Callable[[web.Request, int, str], web.Response]
"""Makes a response from a request, a status and a message for people."""

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_MESSAGES = {
    400: "This request could not be read.",
    404: "There is nothing at this address.",
    405: "This address does not take this method.",
    413: "This request is too large.",
}


def host_name(host_header: str) -> str:
    """Returns the name in a Host header without the port; empty if it is malformed."""
    try:
        return urlsplit(f"//{host_header}").hostname or ""
    except ValueError:
        return ""


def allowed_hosts(host: str, public_url: str, more: Collection[str] = ()) -> frozenset[str]:
    """Returns the host names that requests may use.

    A request for another name may come from a foreign page whose name points here (DNS rebinding).
    """
    named = (host.strip("[]"), urlsplit(public_url).hostname or "", *more)
    return _LOOPBACK | {name.lower() for name in named if name}


def is_same_origin(origin: str | None, host_header: str, public_url: str) -> bool:
    """Whether a form was sent from one of this server's own pages."""
    if not origin:
        return False
    parts = urlsplit(public_url)
    return origin.lower() in {f"http://{host_header}".lower(), f"{parts.scheme}://{parts.netloc}".lower()}


@web.middleware
async def with_request_id(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Has the log lines about a request carry its `X-Request-Id`: the client's own if it is one, or else a new one."""
    given = request.headers.get(REQUEST_ID_HEADER, "")
    request_id = given if is_request_id(given) else secrets.token_hex(8)
    with log_context(LogContext(request_id)):
        response = await handler(request)
    response.headers[REQUEST_ID_HEADER] = request_id
    return response


def require_host(allowed: frozenset[str], error_response: ErrorResponseFactory) -> Middleware:
    """Answers 403 to requests for any other host name."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if host_name(request.host) not in allowed:
            return error_response(request, 403, "This server does not go by that name: set its public address.")
        return await handler(request)

    return middleware


def answer_errors(error_response: ErrorResponseFactory) -> Middleware:
    """Turns every error of a handler into a message for people; tracebacks go to the log only."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPError as error:
            return _http_error(request, error, error_response)
        except web.RequestPayloadError:
            return error_response(request, 400, _MESSAGES[400])
        except PullRequestNotFoundError:
            return error_response(request, 404, _MESSAGES[404])
        except (web.HTTPException, ConnectionError):  # a redirect, or a client that is gone
            raise
        except Exception:
            logger.exception("%s failed", request.method)
            return error_response(request, 500, "Something went wrong in the job server. Its log says what.")

    return middleware


def _http_error(request: web.Request, error: web.HTTPError, error_response: ErrorResponseFactory) -> web.Response:
    words = error.reason if error.reason != HTTPStatus(error.status).phrase else _MESSAGES.get(error.status)
    response = error_response(request, error.status, words or error.reason)
    for name in {"Allow", "WWW-Authenticate"} & error.headers.keys():
        response.headers[name] = error.headers[name]
    return response
