"""Records progress in tests of editors."""

import asyncio
from collections.abc import Callable, Sequence

from bot.jobapi.models import PlanStep
from bot.jobserver.store.records import Question
from bot.jobserver.usage import Spent


class FakeProgress:
    """Keeps the progress reported by an editor, in order."""

    def __init__(self) -> None:
        self.plans: list[tuple[PlanStep, ...]] = []
        self.activities: list[str] = []
        self.sessions: list[str] = []
        self.total = Spent()
        self.questions: list[Question] = []
        self.has_asked = asyncio.Event()
        self.reply: str | None = ""
        """The answer; empty: none in time, None: never."""

    def plan(self, steps: Sequence[PlanStep]) -> None:
        self.plans.append(tuple(steps))

    def activity(self, title: str) -> None:
        self.activities.append(title)

    def session(self, session_id: str) -> None:
        self.sessions.append(session_id)

    def spent(self, spent: Spent) -> None:
        self.total += spent

    async def ask(self, question: Question, is_answer: Callable[[str], bool]) -> str | None:
        self.questions.append(question)
        self.has_asked.set()
        if self.reply is None:
            await asyncio.get_running_loop().create_future()
        return self.reply if self.reply and is_answer(self.reply) else None
