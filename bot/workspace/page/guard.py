"""Who may talk to the page's endpoints: only this machine, and only the page itself."""

from collections.abc import Awaitable, Callable

from aiohttp import web

LOCAL_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def guarded(handler: Handler) -> Handler:
    """Returns the handler behind the guard: a foreign Host or Origin is refused, and nothing may frame the page."""

    async def handle(request: web.Request) -> web.StreamResponse:
        if not _is_own(request):
            return web.Response(status=403, text="This page answers only at its own address.", headers=HEADERS)
        try:
            response = await handler(request)
        except web.HTTPException as error:
            error.headers.update(HEADERS)
            raise
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    return handle


def _is_own(request: web.Request) -> bool:
    host = request.host
    name, _, port = host.rpartition(":")
    own_port = request.transport and request.transport.get_extra_info("sockname")[1]
    if name not in LOCAL_HOSTS or port != str(own_port):
        return False
    origin = request.headers.get("Origin")
    followed_link = request.method == "GET" and request.headers.get("Sec-Fetch-Mode") == "navigate"
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in {"same-origin", "none"} and not followed_link:
        return False
    return origin is None or origin == f"http://{host}"
