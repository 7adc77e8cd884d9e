"""An executor's ear, for tests of editors."""

from collections.abc import Sequence

from bot.jobserver.models import PlanStep


class FakeProgress:
    """Keeps what an editor told of its progress, in its order."""

    def __init__(self) -> None:
        self.plans: list[tuple[PlanStep, ...]] = []
        self.activities: list[str] = []
        self.sessions: list[str] = []

    def plan(self, steps: Sequence[PlanStep]) -> None:
        self.plans.append(tuple(steps))

    def activity(self, title: str) -> None:
        self.activities.append(title)

    def session(self, session_id: str) -> None:
        self.sessions.append(session_id)
