"""What every request has to pass: the Host it names, the Origin it comes from, and how refusals look."""

import logging
from collections.abc import Callable
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

_logger = logging.getLogger(__name__)
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
Refusal = Callable[[web.Request, int, str], web.Response]

_WORDS = {
    400: "This request could not be read.",
    403: "This page cannot be used from there.",
    404: "There is nothing at this address.",
    405: "This address does not take this method.",
    413: "This request is too large.",
}
_INTERNAL = "Something went wrong in the job server. Its log says what."


def host_name(host_header: str) -> str:
    """The name in a Host header, without its port; empty if it makes no sense."""
    try:
        return urlsplit(f"//{host_header}").hostname or ""
    except ValueError:
        return ""


def allowed_hosts(host: str, public_url: str) -> frozenset[str]:
    """Names under which the server may be addressed: any other is a page elsewhere that rebinds its own name."""
    return _LOOPBACK | {host.lower().strip("[]"), (urlsplit(public_url).hostname or "").lower()} - {""}


def is_own_origin(origin: str | None, host_header: str, public_url: str) -> bool:
    """Whether a form was sent from one of this server's own pages."""
    if not origin:
        return False
    parts = urlsplit(public_url)
    return origin.lower() in {f"http://{host_header}".lower(), f"{parts.scheme}://{parts.netloc}".lower()}


def guard_host(allowed: frozenset[str], refusal: Refusal) -> Middleware:
    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if host_name(request.host) not in allowed:
            return refusal(request, 403, "This server is not known under that name: set its public address.")
        return await handler(request)

    return middleware


def explain_errors(refusal: Refusal) -> Middleware:
    """Turn what a handler raises into a refusal in words; tracebacks go to the log only."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPException as error:
            if error.status < 400:  # noqa: PLR2004 (redirects are answers)
                raise
            response = refusal(request, error.status, _WORDS.get(error.status, error.reason))
            if "Allow" in error.headers:
                response.headers["Allow"] = error.headers["Allow"]
            return response
        except web.RequestPayloadError:
            return refusal(request, 400, _WORDS[400])
        except Exception:
            _logger.exception("%s failed", request.method)
            return refusal(request, 500, _INTERNAL)

    return middleware
