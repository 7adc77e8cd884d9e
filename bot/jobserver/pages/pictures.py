"""Pictures of the repository, for the Rendered view: only of formats that hold no scripts, and not too large."""

from aiohttp import web

PICTURE_BYTES = 5_000_000
_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def picture_response(contents: bytes | None) -> web.Response:
    """Answers with a picture. Its first bytes say what it is, whatever it is called.

    Raises:
        web.HTTPNotFound: it is not a picture.
    """
    kind = _format(contents or b"")
    if kind is None:
        raise web.HTTPNotFound
    return web.Response(body=contents, content_type=kind, headers=_HEADERS)


def _format(contents: bytes) -> str | None:
    if contents.startswith(b"RIFF") and contents[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _SIGNATURES.items() if contents.startswith(start)), None)
