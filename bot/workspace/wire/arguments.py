"""The arguments of a Web API call, validated with Slack's errors."""

import json
from collections.abc import Mapping
from typing import Any

from bot.workspace.model.entities import Json, SlackError, is_timestamp

DIGITS = 12
_TRUE = frozenset({"true", "1", "t", "yes", "on"})


class Arguments:
    """Values by name. Null and, in forms, empty text count as missing."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = {name: value for name, value in values.items() if value is not None}

    def as_dict(self) -> Json:
        return dict(self._values)

    def given(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str, default: str = "") -> str:
        """Returns a text. Numbers become text, since forms cannot tell them apart."""
        value = self._values.get(name, default)
        if isinstance(value, bool | dict | list):
            raise invalid_argument(f"must be a string [json-pointer:/{name}]")
        return str(value)

    def required(self, name: str) -> str:
        value = self.text(name)
        if not value:
            raise invalid_argument(f"missing required field: {name}")
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self._values.get(name, default)
        if isinstance(value, bool):
            return value
        return str(value).lower() in _TRUE

    def integer(self, name: str, default: int, *, high: int) -> int:
        """Returns a whole number, at most `high`. Raises SlackError ``invalid_arguments``."""
        value = self._values.get(name, default)
        if isinstance(value, bool | dict | list | float) or not _is_integer(value):
            raise invalid_argument(f"must be an integer [json-pointer:/{name}]")
        return min(int(value), high)

    def timestamp(self, name: str) -> str | None:
        """Returns a timestamp; None if it is missing."""
        value = self.text(name)
        if not value:
            return None
        if is_timestamp(value):
            return value
        raise invalid_argument(f"must be a timestamp [json-pointer:/{name}]")

    def json_value(self, name: str, error_code: str) -> Any:
        """Returns a value given as JSON or as text with JSON. Invalid JSON raises the error ``error_code``."""
        value = self._values.get(name)
        if not isinstance(value, str):
            return value
        if not value.strip():
            return None
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise SlackError(error_code) from None


def json_object(body: bytes) -> Json:
    """Returns the JSON object in a request's body. Raises SlackError ``invalid_json`` or ``json_not_object``."""
    try:
        value = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise SlackError("invalid_json") from None
    if not isinstance(value, dict):
        raise SlackError("json_not_object")
    return value


def invalid_argument(message: str) -> SlackError:
    return SlackError("invalid_arguments", messages=[message])


def _is_integer(value: object) -> bool:
    digits = str(value)
    return digits.isascii() and digits.isdigit() and len(digits) <= DIGITS
