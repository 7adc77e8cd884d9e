"""Who somebody is in the workspace, and what they prefer; and what a channel is."""

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


@dataclass(frozen=True)
class Preference:
    """`project` is a project's name, empty: none; `quiet`: nobody is mentioned at the end."""

    project: str = ""
    quiet: bool = False


@dataclass(frozen=True)
class Channel:
    """A conversation in Slack. `is_shared_outside`: people of other organizations are in it, or Slack does not say.
    `is_direct`: with one person alone, and then it has no name.
    """

    id: str
    name: str
    is_shared_outside: bool
    is_private: bool
    is_direct: bool = False
