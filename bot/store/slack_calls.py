"""Recent calls to Slack, because all processes share its limits."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic_core import from_json
from sqlalchemy import Boolean, ColumnElement, and_, bindparam, exists, select, update

from bot.domain.slack_limits import Budget, SlackLimits, SlackMethod
from bot.queue.claims import NOW
from bot.queue.transaction import adding, replacing
from bot.store.schema.rows import json_text
from bot.store.schema.tables import slack_calls
from bot.store.session import Part

T = TypeVar("T")

_WHOLE = slack_calls.c.channel_id == ""
_OF_METHODS = slack_calls.c.method.in_(bindparam("methods", expanding=True))
_IN_WORKSPACE = select(slack_calls).where(_OF_METHODS, _WHOLE).order_by(slack_calls.c.method).with_for_update()
"""Transactions lock one of these rows before they take calls, and so wait for each other. They always exist."""
_IN_CHANNELS = select(slack_calls).where(_OF_METHODS, ~_WHOLE, slack_calls.c.tat > NOW).order_by(slack_calls.c.tat)
_ADD, _RECORD = adding(slack_calls), replacing(slack_calls, "tat", "calls")


def posts_fail(channel_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Returns the condition that the last post in a channel failed."""
    return exists().where(_posts_in(channel_id), slack_calls.c.failing).correlate_except(slack_calls)


def _posts_in(channel_id: ColumnElement[str]) -> ColumnElement[bool]:
    return and_(slack_calls.c.method == SlackMethod.POST_MESSAGE, slack_calls.c.channel_id == channel_id)


_FAILED = bindparam("failed", type_=Boolean)
_POSTED = (
    update(slack_calls).where(_posts_in(bindparam("channel")), slack_calls.c.failing != _FAILED).values(failing=_FAILED)
)


class SlackCalls(Part):
    """The recent calls to Slack by all processes."""

    async def budget(self, methods: Collection[str], limits: SlackLimits) -> Budget:
        """Reads which calls are possible now; other transactions that take calls wait until this one ends."""
        found = await self._in_workspace(methods)
        missing = set(methods) - {method for method, _ in found}
        if missing:
            new = [{"method": method, "channel_id": "", "tat": 0.0, "calls": "[]"} for method in sorted(missing)]
            await self._session.execute(_ADD, new)
            found = await self._in_workspace(methods)
        if in_channels := sorted(limits.channel.keys() & methods):
            found |= _made(await self._session.rows(_IN_CHANNELS, methods=in_channels, now=self._session.now))
        return Budget(limits, self._session.now, found)

    async def record(self, budget: Budget) -> None:
        """Records what has changed in a budget."""
        rows = [
            {
                "method": method,
                "channel_id": channel_id,
                "tat": next_at,
                "calls": json_text([round(end, 2) for end in made]),
            }
            for (method, channel_id), (next_at, made) in sorted(budget.changed().items())
        ]
        if rows:
            await self._session.execute(_RECORD, rows)

    async def with_budget(self, methods: Collection[str], limits: SlackLimits, use: Callable[[Budget], T]) -> T:
        """Returns what `use` makes of the budget, and records what it changed there."""
        budget = await self.budget(methods, limits)
        result = use(budget)
        await self.record(budget)
        return result

    async def posted(self, channel_id: str, *, failed: bool) -> None:
        """Records whether a post in a channel failed, other than by a 429."""
        # The row is there since the call was taken.
        await self._session.execute(_POSTED, {"channel": channel_id, "failed": failed})

    async def _in_workspace(self, methods: Collection[str]) -> dict[tuple[str, str], Sequence[float]]:
        return _made(await self._session.rows(_IN_WORKSPACE, methods=sorted(methods)))


def _made(rows: Iterable[Mapping[Any, Any]]) -> dict[tuple[str, str], Sequence[float]]:
    """In a channel only one call counts, and the version before records only that."""
    return {
        (row["method"], row["channel_id"]): [row["tat"]] if row["channel_id"] else from_json(row["calls"])
        for row in rows
    }
