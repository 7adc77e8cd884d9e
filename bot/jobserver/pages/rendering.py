"""Renders templates with escaping, and forbids scripts."""

from pathlib import Path
from urllib.parse import parse_qsl

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
_MOST_FIELDS = 20


def render_page(template: str, *, status: int = 200, **values: object) -> web.Response:
    text = without_misleading(_templates.get_template(template).render(values))
    return web.Response(
        body=text.encode(errors="replace"), status=status, content_type="text/html", charset="utf-8", headers=_HEADERS
    )


def error_page(_: web.Request, status: int, message: str) -> web.Response:
    return render_page("error.html", status=status, message=message)


async def form_field(request: web.Request, name: str) -> str:
    """Returns a field of a form; empty if it is missing or the body is not a valid form."""
    if request.content_type != "application/x-www-form-urlencoded":
        return ""
    text = (await request.read()).decode(errors="replace")
    try:
        fields = dict(parse_qsl(text, errors="replace", max_num_fields=_MOST_FIELDS))
    except ValueError:  # too many
        return ""
    return fields.get(name, "")
