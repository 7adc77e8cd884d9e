"""The fields of Slack's payloads that several readers need, and what of a payload the log may hold."""

import re
from typing import Any

from bot.runtime.json_fields import first_item_at, text_at

_UNUSUAL = re.compile(r"[^A-Za-z0-9_.:\-]")
_LONGEST_LOGGED = 40
_TS = re.compile(r"\d{1,20}\.\d{6}")


def ts_at(payload: Any, key: str) -> str:
    """Returns the `ts` of a message under a key; empty where it is not one."""
    value = text_at(payload, key)
    return value if _TS.fullmatch(value) else ""


def is_direct_message(channel_id: str) -> bool:
    """Returns whether a channel's id is that of a direct message."""
    return channel_id.startswith("D")


def workspace_id(body: Any) -> str:
    """Returns the id of the workspace that a payload comes from."""
    return (
        text_at(body, "team_id")
        or text_at(body, "team", "id")
        or text_at(first_item_at(body, "authorizations"), "team_id")
        or text_at(body, "team")
    )


def payload_kind(body: Any) -> str:
    """Returns what sort of payload this is, for the log: its types, none of its content."""
    types = (text_at(body, "type"), text_at(body, "event", "type"), text_at(body, "command"))
    return "/".join(log_safe(name) for name in types if name) or "without a type"


def log_safe(value: Any) -> str:
    """Returns a type or an id as the log may hold it: short and on one line; empty where it is no text."""
    return _UNUSUAL.sub("?", value[:_LONGEST_LOGGED]) if isinstance(value, str) else ""
