"""Who somebody is in the workspace."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Member:
    """A person as Slack knows them.

    `team_id` is the workspace that they count as one of: ours for all of our organization, empty where Slack does not
    say. Where it does not say whether they are a guest, they are one. `tz` is the name of a time zone, or empty.
    """

    id: str
    name: str
    team_id: str
    is_guest: bool
    is_admin: bool = False
    is_bot: bool = False
    deleted: bool = False
    tz: str = ""
