"""Follow-ups that are no messages of their thread."""

from dataclasses import dataclass

from bot.domain.requests.request import Person, WayIn


@dataclass(frozen=True)
class Written:
    """What was typed into a modal, or what a button says that was pressed.

    `source_key` is made of Slack's own ids, so that it counts once; of a button each person has one.
    """

    person: Person
    thread_id: str
    text: str
    source_key: str
    way_in: WayIn = WayIn.MODAL
