"""Data for the store's tests."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from sqlalchemy import text
from support.databases import engine_for
from support.fakes.slack_limits import ANY_NUMBER

from bot.domain.requests.request import Request, RequestKind, RequestState
from bot.domain.slack_limits import Budget, Grant, SlackLimits
from bot.domain.threads.thread import Thread, ThreadState
from bot.jobapi.models import Job
from bot.notices.answers import ActionAnswer, ActionAnswered
from bot.notices.job import JobStarted
from bot.notices.notice import CARD_CHANGED, NewNotice, NoticeKey, Reaction, ReactionChanged
from bot.store.notice_queue import ClaimedNotice
from bot.store.request_queue import ClaimedRequest
from bot.store.store import Store, Transaction
from bot.store.threads import PollResult, UnchangedPoll

Sql = Callable[..., Awaitable[Sequence[tuple[Any, ...]]]]
"""Runs SQL in the test's database, without the store."""
Opener = Callable[..., Awaitable["StoreWorld"]]
"""Opens another store on the test's database, with options of `open_store`."""

on_sqlite = pytest.mark.parametrize("server", [pytest.param("sqlite", id="sqlite")], indirect=True)
on_postgres = pytest.mark.parametrize(
    "server", [pytest.param("postgres", id="postgres", marks=pytest.mark.postgres)], indirect=True
)

T = TypeVar("T")
LEASE = 30.0
CARD = CARD_CHANGED
JOB = Job("job-1", "active", repository="acme/docs", ref="main")


async def run_sql(url: str, statement: str, **values: object) -> Sequence[tuple[Any, ...]]:
    """Runs SQL in any database, on a connection of its own."""
    engine = engine_for(url)
    async with engine.begin() as connection:
        result = await connection.execute(text(statement), values)
        rows = [tuple(row) for row in result] if result.returns_rows else []
    await engine.dispose()
    return rows


def a_thread(name: str = "t1", **changes: Any) -> Thread:
    """Returns a thread that begins with its card, if it has a `ts`."""
    card = {"card_ts": changes["ts"]} if "ts" in changes else {}
    return replace(Thread(name, "T1", "C1", "UANA", "Do it", "docs", 1_700_000_000.0), **card | changes)


def a_start(thread: str = "t1", **changes: Any) -> Request:
    request = Request(
        f"{thread}-start", thread, RequestKind.START, f"command/{thread}", "UANA", "Do it", "", 1_700_000_000.0
    )
    request = replace(request, state=RequestState.WAITING)
    return replace(request, **changes)


def a_follow_up(written_at: str, thread: str = "t1", **changes: Any) -> Request:
    """Returns a reply whose id, source key and text are made of the thread and its time."""
    name = f"{thread}-{written_at}"
    request = Request(
        name, thread, RequestKind.FOLLOW_UP, f"message/{name}", "UBEN", written_at, written_at, 1_700_000_000.0
    )
    request = replace(request, state=RequestState.WAITING)
    return replace(request, **changes)


def a_post(key: str, job: str = "job-1", repository: str = "") -> NewNotice:
    return NewNotice(NoticeKey(key), JobStarted(job, repository))


def a_reaction(key: str, reaction: str) -> NewNotice:
    return NewNotice(NoticeKey(key), ReactionChanged(key, Reaction(reaction)))


def an_answer(key: str, person_id: str) -> NewNotice:
    return NewNotice(NoticeKey(key), ActionAnswered(person_id, ActionAnswer.OTHER_WORKSPACE))


class StoreWorld:
    """A store, and what tests do with it."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, urgent: bool = False) -> T:
        return await self.store.transact(work, urgent=urgent)

    async def close(self) -> None:
        await self.store.close()

    async def add(self, *items: Thread | Request, say: Sequence[NewNotice] = ()) -> None:
        """Records these in one transaction, then the notices in the (last) thread."""

        async def work(tx: Transaction) -> None:
            thread_id = ""
            for item in items:
                if isinstance(item, Thread):
                    assert await tx.threads.add(item)
                    thread_id = item.id
                else:
                    assert await tx.requests.add(item)
            for notice in say:
                await tx.notices.add(thread_id, notice)

        await self.transact(work)

    async def watched(self, name: str = "t1", *, poll_in: float = 0.0, **state: Any) -> Thread:
        """Records a thread with a watched job."""
        await self.add(a_thread(name, ts=f"{name}.card", card_ts=f"{name}.card"))
        await self.save(name, ThreadState(job=JOB, **state), poll_in=poll_in)
        return await self.get_thread(name)

    async def get_thread(self, name: str = "t1") -> Thread:
        thread = await self.transact(lambda tx: tx.threads.get(name))
        assert thread is not None
        return thread

    async def get_request(self, name: str) -> Request:
        request = await self.transact(lambda tx: tx.requests.get(name))
        assert request is not None
        return request

    async def say(self, *notices: NewNotice, thread: str = "t1") -> None:
        async def work(tx: Transaction) -> None:
            for notice in notices:
                await tx.notices.add(thread, notice)

        await self.transact(work)

    async def save(self, name: str, state: ThreadState, *, poll_in: float | None) -> None:
        await self.transact(lambda tx: tx.threads.save_state(name, state, poll_in=poll_in))

    async def settle(self, name: str, state: RequestState, **options: Any) -> None:
        await self.transact(lambda tx: tx.requests.settle(name, state, **options))

    async def claim_requests(self, owner: str = "one", limit: int = 10) -> Sequence[ClaimedRequest]:
        return await self.transact(lambda tx: tx.requests.claim(owner, lease=LEASE, limit=limit))

    async def claim_received(self, limit: int = 10, turn: float = 0.0) -> Sequence[ClaimedRequest]:
        return await self.transact(lambda tx: tx.requests.claim_received("one", lease=LEASE, limit=limit, turn=turn))

    async def claim_notices(
        self,
        owner: str = "one",
        limit: int = 10,
        *,
        limits: SlackLimits = ANY_NUMBER,
        max_reactions: int | None = None,
    ) -> Sequence[ClaimedNotice]:
        terms: dict[str, Any] = {"lease": LEASE, "limit": limit, "limits": limits, "max_reactions": max_reactions}
        return await self.transact(lambda tx: tx.notices.claim(owner, **terms))

    async def refuse(self, method: str, channel_id: str, retry_after: float = 600.0) -> None:
        """Records a 429 of Slack."""
        await self.use_budget(method, lambda budget: budget.refuse(method, retry_after, channel_id))

    async def use_budget(self, method: str, use: Callable[[Budget], Grant], limits: SlackLimits = ANY_NUMBER) -> Grant:
        return await self.transact(lambda tx: tx.slack_calls.with_budget([method], limits, use))

    async def claim_polls(self, owner: str = "one", limit: int = 10) -> Sequence[Thread]:
        """Claims polls of threads that nobody knows yet."""
        claimed = await self.transact(lambda tx: tx.polls.claim(owner, lease=LEASE, limit=limit))
        return [poll.thread for poll in claimed if poll.thread is not None]

    async def done(self, item: ClaimedNotice, owner: str = "one", ts: str | None = "1.1") -> bool:
        return await self.transact(lambda tx: tx.notices.delivered(item.notice, owner, ts=ts))

    async def deliver_all(self, owner: str = "one") -> list[str]:
        """Claims and delivers until nothing is due; returns the keys in order."""
        keys: list[str] = []
        while items := await self.claim_notices(owner):
            for item in items:
                assert await self.done(item, owner)
                keys.append(item.notice.key)
        return keys

    async def save_polls(self, *polls: PollResult | UnchangedPoll, owner: str = "one") -> int:
        return await self.transact(lambda tx: tx.polls.save(polls, owner))


def unchanged(thread: Thread, next_poll_in: float | None = 5.0) -> PollResult:
    return PollResult(thread, thread.state, (), card_changed=False, next_poll_in=next_poll_in)


def changed(
    thread: Thread, *notices: NewNotice, next_poll_in: float | None = 5.0, not_found_count: int | None = None
) -> PollResult:
    state = thread.state
    if not_found_count is not None:
        state = replace(state, failure=replace(state.failure, not_found_count=not_found_count))
    return PollResult(thread, state, notices, card_changed=True, next_poll_in=next_poll_in)
