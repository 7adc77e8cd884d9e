"""The body of a signed HTTP request, read as Slack sends it: JSON, a form's fields, or a form with one field of JSON.

Bolt's own reading takes every form that contains the word "payload" for an interaction, and drops a command about one.
"""

import json
from typing import Any
from urllib.parse import parse_qsl

_JSON, _FORM = "application/json", "application/x-www-form-urlencoded"


def parse_body(body: str, content_type: str) -> dict[str, Any] | None:
    """Returns the payload; None where the body is nothing that Slack sends."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == _JSON or (kind != _FORM and body.lstrip().startswith("{")):
        return _json_object(body)
    fields = dict(parse_qsl(body, keep_blank_values=True))
    return _json_object(fields["payload"]) if "payload" in fields else fields or None


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
