"""The fields of a form that a page sent."""

from urllib.parse import parse_qsl

from aiohttp import web

_MOST_FIELDS = 20


async def form_field(request: web.Request, name: str) -> str:
    """Returns a field; empty where there is none, or the body is no form of ours. Whatever was sent, it can be read."""
    if request.content_type != "application/x-www-form-urlencoded":
        return ""
    text = (await request.read()).decode(errors="replace")
    try:
        fields = dict(parse_qsl(text, errors="replace", max_num_fields=_MOST_FIELDS))
    except ValueError:  # too many
        return ""
    return fields.get(name, "")
