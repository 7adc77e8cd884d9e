"""What the listeners ask of whatever opens modals."""

from typing import Protocol

from bot.domain.command_options import Options
from bot.domain.requests import Person


class Modals(Protocol):
    """Opens modals. A trigger is good for three seconds and one modal (docs.slack.dev, `views.open`), so these open
    first and look things up afterwards. Each raises ChatError where Slack opens none.
    """

    async def open_job_modal(self, trigger_id: str, person: Person, channel_id: str, options: Options) -> None:
        """Opens the modal in which somebody asks for a job, with what they have said already."""

    async def open_follow_up_modal(self, trigger_id: str, person: Person, channel_id: str, thread_id: str) -> None:
        """Opens the modal in which somebody writes to the agent of a thread's job."""
