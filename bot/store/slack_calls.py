"""Recent calls to Slack, because all processes share its limits."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic_core import from_json
from sqlalchemy import (
    BindParameter,
    Boolean,
    ColumnElement,
    Double,
    bindparam,
    exists,
    select,
    update,
)

from bot.domain.slack_limits import Budget, SlackLimits, SlackMethod
from bot.store.schema.rows import json_text
from bot.store.schema.tables import slack_calls
from bot.store.session import Part, adding, replacing

T = TypeVar("T")

_TAT = slack_calls.c.tat
_METHODS: BindParameter[Any] = bindparam("methods", expanding=True)
_IN_WORKSPACE = (
    select(slack_calls)
    .where(slack_calls.c.method.in_(_METHODS), slack_calls.c.channel_id == "")
    .order_by(slack_calls.c.method)
    .with_for_update()
)
"""Transactions lock one of these rows before they take calls, and so wait for each other. The rows always exist."""
_IN_CHANNELS = (
    select(slack_calls)
    .where(bindparam("now", type_=Double) < _TAT, slack_calls.c.method.in_(_METHODS), slack_calls.c.channel_id != "")
    .order_by(_TAT)
)
_ADD, _RECORD = adding(slack_calls), replacing(slack_calls, "tat", "calls")


_POSTED = (
    update(slack_calls)
    .where(
        slack_calls.c.method == SlackMethod.POST_MESSAGE,
        slack_calls.c.channel_id == bindparam("at"),
        slack_calls.c.failing != bindparam("failed", type_=Boolean),
    )
    .values(failing=bindparam("failed", type_=Boolean))
)
"""The row is there since the call was taken."""


def posts_fail(channel_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Returns the condition that the last post in a channel failed."""
    found = exists().where(
        slack_calls.c.method == SlackMethod.POST_MESSAGE, slack_calls.c.channel_id == channel_id, slack_calls.c.failing
    )
    return found.correlate_except(slack_calls)


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
            rows = await self._session.rows(_IN_CHANNELS, methods=in_channels, now=self._session.now)
            found |= _made(rows)
        return Budget(limits, self._session.now, found)

    async def record(self, budget: Budget) -> None:
        """Records what has changed in a budget."""
        rows = [
            {"method": method, "channel_id": channel_id, "tat": next_at, "calls": _text(made)}
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
        await self._session.execute(_POSTED, {"at": channel_id, "failed": failed})

    async def _in_workspace(self, methods: Collection[str]) -> dict[tuple[str, str], Sequence[float]]:
        return _made(await self._session.rows(_IN_WORKSPACE, methods=sorted(methods)))


def _made(rows: Iterable[Mapping[Any, Any]]) -> dict[tuple[str, str], Sequence[float]]:
    """In a channel only one call counts, and the version before records only that."""
    return {
        (row["method"], row["channel_id"]): [row["tat"]] if row["channel_id"] else from_json(row["calls"])
        for row in rows
    }


def _text(made: Sequence[float]) -> str:
    return json_text([round(end, 2) for end in made])
