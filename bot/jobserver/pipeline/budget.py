"""Token budgets: per job, after which its thread is asked, and per day."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeVar

from bot.jobserver.errors import BudgetUsedUpError
from bot.jobserver.settings.server import TokenBudget
from bot.jobserver.store.records import says_no
from bot.jobserver.usage import Spent
from bot.runtime.tasks import watched

T = TypeVar("T")


class Spending:
    """The tokens that all jobs use today, in UTC. `took` is told of each use."""

    def __init__(
        self,
        budget: TokenBudget,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        took: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._took = took
        self._budget = budget
        self._now = now
        self._day = self._today()
        self._tokens = 0
        self._open: set[Allowance] = set()

    def check(self, spent: int, reply: str) -> None:
        """Checks that tokens are left to start. `spent`: the job's tokens since a person last let it continue.

        Raises:
            BudgetUsedUpError: the instruction was not started; after a no, nobody is asked again.
        """
        self._start_new_day()
        if error := self._error(spent):
            raise BudgetUsedUpError(str(error), "" if says_no(reply) else error.question, was_heard=False)

    @contextmanager
    def allowed(self, spent: int) -> Iterator["Allowance"]:
        """Yields an instruction's allowance."""
        allowance = Allowance(self, spent)
        self._open.add(allowance)
        try:
            yield allowance
        finally:
            self._open.discard(allowance)

    def know(self, day: str, tokens: int) -> None:
        """Counts what other processes have used, too: `tokens` is what all have recorded of a day so far. By this
        machine's clock, another one may have begun.
        """
        self._start_new_day()
        if day == self._day:
            self._tokens = max(self._tokens, tokens)
            self._end_those_without()

    def take(self, tokens: int) -> None:
        """Counts tokens, and ends every instruction whose job or day has none left."""
        self._start_new_day()
        self._tokens += tokens
        self._took(tokens)
        self._end_those_without()

    def _end_those_without(self) -> None:
        for allowance in self._open:
            if error := self._error(allowance.spent):
                allowance.end(error)

    def _error(self, spent: int) -> BudgetUsedUpError | None:
        job, day = self._budget.job, self._budget.day
        if day is not None and self._tokens >= day:
            words = f"today's budget of all jobs, {day:,} tokens, is used up: a reply after 00:00 UTC lets it continue"
            return BudgetUsedUpError(words)
        if job is not None and spent >= job:
            question = (
                f"This job has used {spent:,} tokens of its {job:,}. May it use {job:,} more? "
                "Reply “continue”, or say what to do instead."
            )
            return BudgetUsedUpError(f"the job's budget of {job:,} tokens is used up", question)
        return None

    def _start_new_day(self) -> None:
        if self._day != self._today():
            self._day, self._tokens = self._today(), 0

    def _today(self) -> str:
        return self._now().astimezone(UTC).date().isoformat()


class Allowance:
    """What one instruction may use. `spent`: its job's tokens since a person last let it continue."""

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
        """Runs `work`, and ends it if no tokens are left; a result at that same moment counts.

        Raises:
            BudgetUsedUpError: the tokens ran out before the work was done.
        """
        return await watched(work, self._watch())

    async def _watch(self) -> NoReturn:
        while self._error is None:
            await self._is_used_up.wait()
        raise self._error
