"""Reading Slack's payloads: any field can be missing, null or of another type, and none of that may raise."""

import re
from typing import Any

from bot.domain.models import Person

_TS = re.compile(r"\d{1,20}\.\d{6}")


def field(payload: Any, *path: str) -> str:
    """The text at a path of keys; empty where there is none."""
    for key in path:
        payload = payload.get(key) if isinstance(payload, dict) else None
    return payload if isinstance(payload, str) else ""


def first(payload: Any, key: str) -> Any:
    """The first item of the list under a key; None where there is none."""
    items = payload.get(key) if isinstance(payload, dict) else None
    return items[0] if isinstance(items, list) and items else None


def timestamp(payload: Any, key: str) -> str:
    """A message's `ts` under a key; empty where it is not one."""
    value = field(payload, key)
    return value if _TS.fullmatch(value) else ""


def author(body: Any) -> Person:
    """Who wrote the message of an event, with their own team: people from other organisations have another one."""
    event = body.get("event") if isinstance(body, dict) else None
    return Person(
        id=field(event, "user"),
        team_id=field(event, "user_team") or field(event, "team") or field(event, "source_team") or team(body),
    )


def clicker(body: Any) -> Person:
    """Who pressed a button."""
    return Person(id=field(body, "user", "id"), team_id=field(body, "user", "team_id") or team(body))


def commander(body: Any) -> Person:
    """Who ran a slash command."""
    return Person(id=field(body, "user_id"), team_id=team(body))


def team(body: Any) -> str:
    """The workspace that a payload comes from."""
    return (
        field(body, "team_id")
        or field(body, "team", "id")
        or field(first(body, "authorizations"), "team_id")
        or field(body, "team")
    )
