"""Members of the workspace with their preferences, and channels."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Member:
    """A person as Slack knows them.

    `team_id` is the workspace that they belong to: ours for everybody in our organization, empty if Slack does not say.
    If Slack does not say whether they are a guest, they count as one. `tz` is the name of a time zone, or empty.
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
    """A person's defaults. `project` is a project's name or empty; `quiet` means that a job's end mentions nobody."""

    project: str = ""
    quiet: bool = False


@dataclass(frozen=True)
class ChannelInfo:
    """A conversation in Slack.

    `is_shared_outside`: people of other organizations are in it, or Slack does not say. `is_direct`: it is a direct
    message with one person, and has no name.
    """

    id: str
    name: str
    is_shared_outside: bool
    is_private: bool
    is_direct: bool = False
