"""Pages from templates: everything is escaped, and no script is ever allowed."""

from pathlib import Path

import jinja2
from aiohttp import web

from bot.runtime.text import without_misleading

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`: with it browsers send a form's Origin as "null".
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_templates = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render_page(template: str, *, status: int = 200, **values: object) -> web.Response:
    text = without_misleading(_templates.get_template(template).render(values))
    return web.Response(
        body=text.encode(errors="replace"), status=status, content_type="text/html", charset="utf-8", headers=_HEADERS
    )


def error_page(_: web.Request, status: int, message: str) -> web.Response:
    return render_page("error.html", status=status, message=message)
