"""What is known of a request once Slack was asked."""

from dataclasses import dataclass

from bot.domain.context.fetched_parts import FetchedParts, ThreadPart
from bot.domain.people.preferences import Preference
from bot.domain.projects import Route
from bot.scheduler.preparing.context import Gathered
from bot.scheduler.preparing.slack_reading import PersonAndPlace


@dataclass(frozen=True)
class FoundOut:
    """What was found out about a request. `route`: of a start. Of one that may be sent, `project` is for which,
    `part` which of the Slack thread goes along, and `kept` what of all that goes along was fetched before;
    others may follow within `wait` seconds that share that part's reading.
    """

    who_and_where: PersonAndPlace
    preference: Preference
    now: float
    route: Route | None = None
    project: str = ""
    part: ThreadPart | None = None
    kept: FetchedParts | None = None
    gathered: Gathered | None = None
    wait: float = 0.0
