"""People: members of the workspace, their preferences and the content of their Home; and channels."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from bot.domain.requests.request import Request
from bot.domain.threads.thread import Thread


class Account(Enum):
    """Whose an account is. Only people can ask for anything."""

    PERSON = auto()
    BOT = auto()


@dataclass(frozen=True)
class Member:
    """A person as Slack knows them.

    `team_id` is the workspace that they belong to: ours for everybody in our organization, empty if Slack does not say.
    `enterprise_id` is their organization, if Slack says. If it does not say whether they are a guest, they count as
    one. `name` can be empty.
    """

    id: str
    name: str
    team_id: str
    is_guest: bool
    account: Account = Account.PERSON
    deleted: bool = False
    enterprise_id: str = ""


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


JOBS_A_PAGE = 10


@dataclass(frozen=True)
class HomeContent:
    """A page of somebody's Home.

    Attributes:
        person_id: The person.
        page: The page of their jobs, from 0.
        jobs: The jobs of the page, newest first.
        has_older: Whether there is a next page.
        waiting: Jobs whose agent waits for this person's answer, or whose plan waits to be started.
        held: The requests that wait for this person, with the threads of their jobs.
        preference: Their defaults.
        updated_at: When the content was read, in seconds since the epoch.
    """

    person_id: str
    page: int = 0
    jobs: Sequence[Thread] = ()
    has_older: bool = False
    waiting: Sequence[Thread] = ()
    held: Sequence[tuple[Request, Thread]] = ()
    preference: Preference = field(default_factory=Preference)
    updated_at: float = 0.0
