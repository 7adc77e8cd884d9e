"""Recent calls to Slack, because all processes share its limits."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sqlalchemy import (
    BindParameter,
    Boolean,
    ColumnElement,
    Double,
    Executable,
    Text,
    bindparam,
    case,
    exists,
    select,
    update,
)

from bot.domain.slack_limits import Budget, Grant, SlackLimits, SlackMethod
from bot.store.schema.tables import slack_calls
from bot.store.session import InsertInto, Session, for_each_dialect

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
_ADD = for_each_dialect(lambda into: into(slack_calls).on_conflict_do_nothing())


def _spend(into: InsertInto) -> Executable:
    now, cost = bindparam("now", type_=Double), bindparam("cost", type_=Double)
    insert = into(slack_calls).values(method=bindparam("of"), channel_id=bindparam("at", type_=Text), tat=now + cost)
    later = case((now < _TAT, _TAT), else_=now) + cost
    return insert.on_conflict_do_update(index_elements=["method", "channel_id"], set_={"tat": later})


def _refuse(into: InsertInto) -> Executable:
    insert = into(slack_calls)
    later = case((insert.excluded.tat < _TAT, _TAT), else_=insert.excluded.tat)
    return insert.on_conflict_do_update(index_elements=["method", "channel_id"], set_={"tat": later})


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


_SPEND, _REFUSE = for_each_dialect(_spend), for_each_dialect(_refuse)


class SqlSlackCalls:
    """ports.SlackCalls."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def budget(self, methods: Collection[str], limits: SlackLimits) -> Budget:
        """Reads which calls are possible now; other transactions that take calls wait until this one ends."""
        found = await self._in_workspace(methods)
        missing = set(methods) - {method for method, _ in found}
        if missing:
            new = [{"method": method, "channel_id": "", "tat": 0.0} for method in sorted(missing)]
            await self._session.execute(_ADD[self._session.dialect], new)
            found = await self._in_workspace(methods)
        if in_channels := sorted(filter(limits.is_channel_bound, methods)):
            rows = await self._session.rows(_IN_CHANNELS, methods=in_channels, now=self._session.now)
            found |= _tats(rows)
        return Budget(limits, self._session.now, found)

    async def spend(self, budget: Budget) -> None:
        """Records the calls taken from a budget."""
        now, costs = self._session.now, sorted(budget.costs().items())
        rows = [{"of": method, "at": channel_id, "now": now, "cost": cost} for (method, channel_id), cost in costs]
        if rows:
            await self._session.execute(_SPEND[self._session.dialect], rows)

    async def take(self, method: str, wanted: int, limits: SlackLimits, *, yields: bool = False) -> Grant:
        budget = await self.budget([method], limits)
        grant = budget.take(method, wanted, yields=yields)
        await self.spend(budget)
        return grant

    async def refused(self, method: str, channel_id: str, retry_after: float, limits: SlackLimits) -> None:
        channel_id = channel_id if limits.is_channel_bound(method) else ""
        limit = limits.of(method, channel_id)
        if limit is not None:
            tat = limit.after_refusal(self._session.now, retry_after)
            row = {"method": method, "channel_id": channel_id, "tat": tat}
            await self._session.execute(_REFUSE[self._session.dialect], row)

    async def posted(self, channel_id: str, *, failed: bool) -> None:
        await self._session.execute(_POSTED, {"at": channel_id, "failed": failed})

    async def _in_workspace(self, methods: Collection[str]) -> dict[tuple[str, str], float]:
        return _tats(await self._session.rows(_IN_WORKSPACE, methods=sorted(methods)))


def _tats(rows: Iterable[Mapping[Any, Any]]) -> dict[tuple[str, str], float]:
    return {(row["method"], row["channel_id"]): row["tat"] for row in rows}
