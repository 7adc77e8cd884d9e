"""Token budgets: a job's, after which its thread is asked, and a day's."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

from bot.jobserver.errors import BudgetUsedUpError
from bot.jobserver.settings.limits import TokenBudget
from bot.jobserver.store.job_rows import says_no
from bot.jobserver.usage import Spent

T = TypeVar("T")


class Spending:
    """What all jobs take of their models today, in UTC. `today` are the tokens that were taken before."""

    def __init__(self, budget: TokenBudget, *, now: Callable[[], datetime], today: int = 0) -> None:
        self._budget = budget
        self._now = now
        self._day = self._today()
        self._tokens = today
        self._open: set[Allowance] = set()

    def check(self, spent: int, reply: str) -> None:
        """Looks whether anything is left to begin with. `spent`: tokens that the job took since a person let it go on.

        Raises:
            BudgetUsedUpError: the instruction was not heard; a no is not asked about again.
        """
        self._roll()
        if error := self._error(spent):
            raise BudgetUsedUpError(str(error), "" if says_no(reply) else error.question, was_heard=False)

    @contextmanager
    def allowed(self, spent: int) -> Iterator["Allowance"]:
        """Gives what an instruction may take."""
        allowance = Allowance(self, spent)
        self._open.add(allowance)
        try:
            yield allowance
        finally:
            self._open.discard(allowance)

    def take(self, tokens: int) -> None:
        """Counts tokens, and ends all that the day has nothing left for and each that its job has not."""
        self._roll()
        self._tokens += tokens
        for allowance in self._open:
            if error := self._error(allowance.spent):
                allowance.end(error)

    def _error(self, spent: int) -> BudgetUsedUpError | None:
        job, day = self._budget.job, self._budget.day
        if day is not None and self._tokens >= day:
            words = f"today's budget of all jobs, {day:,} tokens, is used up: a reply after 00:00 UTC lets it go on"
            return BudgetUsedUpError(words)
        if job is not None and spent >= job:
            question = (
                f"This job has taken {spent:,} tokens, and was to take {job:,}. May it go on with {job:,} more? "
                "Reply “continue”, or say what to do instead."
            )
            return BudgetUsedUpError(f"the job's budget of {job:,} tokens is used up", question)
        return None

    def _roll(self) -> None:
        if self._day != self._today():
            self._day, self._tokens = self._today(), 0

    def _today(self) -> str:
        return self._now().astimezone(UTC).date().isoformat()


class Allowance:
    """What one instruction may take. `spent` are its job's tokens since a person let it go on."""

    def __init__(self, spending: Spending, spent: int) -> None:
        self.spent = spent
        self._spending = spending
        self._error: BudgetUsedUpError | None = None
        self._is_used_up = asyncio.Event()

    def take(self, spent: Spent) -> None:
        self.spent += spent.tokens
        self._spending.take(spent.tokens)

    def end(self, error: BudgetUsedUpError) -> None:
        self._error = self._error or error
        self._is_used_up.set()

    async def within(self, work: Coroutine[Any, Any, T]) -> T:
        """Does the work, and ends it where nothing is left; what was done just then counts.

        Raises:
            BudgetUsedUpError: nothing was left before it was done.
        """
        working = asyncio.create_task(work, name="work within a budget")
        watching = asyncio.create_task(self._is_used_up.wait(), name="a budget")
        try:
            await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
            if working.done() or self._error is None:
                return working.result()
            error = self._error
        finally:
            working.cancel()
            watching.cancel()
            await asyncio.gather(working, watching, return_exceptions=True)
        raise error
