"""A message of Slack's history."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class PastMessage:
    """A message as it is now; `raw` is Slack's whole description of it, which only its readers look into.

    `edited_at` is when its author last edited it, `latest_reply` the `ts` of the newest reply to it (each empty: none);
    `stops` are the people whose reaction asks for a stop.
    """

    ts: str
    author_id: str = ""
    text: str = ""
    edited_at: str = ""
    latest_reply: str = ""
    stops: tuple[str, ...] = ()
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def mentions(self, person_id: str) -> bool:
        """Returns whether it mentions somebody."""
        return f"<@{person_id}" in self.text
