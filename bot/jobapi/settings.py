"""The settings of a job API, and their formats."""

import re
from typing import Annotated
from urllib.parse import urlsplit

import httpx
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from bot.runtime.rotating_secrets import RotatingSecret, rotating_secret

DEFAULT_PAUSE = 10.0
"""Seconds, if there is no Retry-After, which the specification does not promise."""
GET_PATH = "/v2/agent/{projectId}/job/{id}"
MOST_CONNECTIONS = 100
"""With responses after 0.3 s, enough to poll 10,000 idle jobs every 30 s."""
SHORTEST_KEY = 8
"""Characters. Anything shorter is a mistake, and masking it in the log would mask ordinary words."""


def _base_url(value: str) -> str:
    try:
        parts = urlsplit(value)
        is_web_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
        httpx.URL(value)
    except (ValueError, httpx.InvalidURL):
        raise ValueError("is not a web address") from None
    if not is_web_address or not value.isprintable() or " " in value:
        raise ValueError("must begin with http:// or https:// and name a host")
    if "@" in parts.netloc or "?" in value or "#" in value:
        raise ValueError("must have no user name, password, ? or #")
    return value.rstrip("/")


def _api_key(key: str) -> None:
    if not re.fullmatch(r"[!-~]+", key) or len(key) < SHORTEST_KEY:
        raise ValueError(f"must be one word of at least {SHORTEST_KEY} ASCII letters, digits and signs")


def _get_path(value: str) -> str:
    rest = value.replace("{projectId}", "").replace("{id}", "")
    if not re.fullmatch(r"/(?!/)[!-~]*", value) or "{id}" not in value or re.search(r"[{}#]", rest):
        raise ValueError("must begin with one / and hold {id}; {projectId} is the only other name")
    return value


def _project_id(value: str) -> str:
    if value in {".", ".."}:
        raise ValueError("must not be . or .., which no address can hold")
    return value


BaseUrl = Annotated[str, AfterValidator(_base_url)]
ApiKey = Annotated[RotatingSecret, rotating_secret(_api_key)]
GetPath = Annotated[str, AfterValidator(_get_path)]
ProjectId = Annotated[str, AfterValidator(_project_id)]


class JobApiSettings(BaseModel):
    """The settings of a job API. Times are in seconds: `connect_timeout` is for a connection, `timeout` for a whole
    call.

    `max_connections` limits the connections for polls, and separately those for creates and messages. `default_pause`
    is the pause for a busy project if the job API gives no time. `pictures`: whether a job's pictures are wanted.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    base_url: BaseUrl
    api_key: ApiKey
    get_path: GetPath = GET_PATH
    connect_timeout: Annotated[float, Field(gt=0, le=60)] = 5.0
    timeout: Annotated[float, Field(gt=0, le=300)] = 20.0
    default_pause: Annotated[float, Field(ge=0, le=3600)] = DEFAULT_PAUSE
    max_connections: Annotated[int, Field(ge=1, le=1000)] = MOST_CONNECTIONS
    pictures: bool = False
