"""What the store's tests keep in it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from bot.domain.models import Job, Known, NoticeKind, Request, RequestKind, RequestState, Saying, Thread, What
from bot.ports import ClaimedNotice, ClaimedRequest, ClaimedWatch, Polled, Store, Transaction

Sql = Callable[..., Awaitable[Sequence[tuple[Any, ...]]]]
"""Runs SQL in the test's database, past the store."""
Opener = Callable[[], Awaitable[Store]]
"""Opens one more store on the test's database."""

LEASE = 30.0
CARD = Saying("card", What.CARD, kind=NoticeKind.CARD)
JOB = Job("job-1", "active", repository="acme/docs", ref="main")


def a_thread(name: str = "t1", **changes: Any) -> Thread:
    return replace(Thread(name, "T1", "C1", "UANA", "Do it", "docs", 1_700_000_000.0), **changes)


def a_start(thread: str = "t1", **changes: Any) -> Request:
    request = Request(
        f"{thread}-start", thread, RequestKind.START, f"command/{thread}", "UANA", "Do it", "", 1_700_000_000.0
    )
    return replace(request, **changes)


def a_follow_up(written_at: str, thread: str = "t1", **changes: Any) -> Request:
    """A reply whose id, source key and text are made of the thread and the time it was written."""
    name = f"{thread}-{written_at}"
    request = Request(
        name, thread, RequestKind.FOLLOW_UP, f"message/{name}", "UBEN", written_at, written_at, 1_700_000_000.0
    )
    return replace(request, **changes)


def a_post(key: str, **facts: str) -> Saying:
    return Saying(key, What.STARTED, facts)


def a_mark(key: str, mark: str) -> Saying:
    return Saying(key, What.MARK, {"message_ts": key, "mark": mark}, NoticeKind.MARK)


async def add(store: Store, *items: Thread | Request, say: Sequence[Saying] = ()) -> None:
    """Records these in one transaction, then what is to be said in the (last) thread."""

    async def work(tx: Transaction) -> None:
        thread_id = ""
        for item in items:
            if isinstance(item, Thread):
                assert await tx.add_thread(item)
                thread_id = item.id
            else:
                assert await tx.add_request(item)
        for saying in say:
            await tx.say(thread_id, saying)

    await store.transact(work)


async def watched(store: Store, name: str = "t1", *, poll_in: float = 0.0, **known: Any) -> Thread:
    """Records a thread with a job that is watched."""
    await add(store, a_thread(name, ts=f"{name}.card"))
    await save(store, name, Known(job=JOB, **known), poll_in=poll_in)
    return await get_thread(store, name)


async def get_thread(store: Store, name: str = "t1") -> Thread:
    thread = await store.transact(lambda tx: tx.thread(name))
    assert thread is not None
    return thread


async def get_request(store: Store, name: str) -> Request:
    request = await store.transact(lambda tx: tx.request(name))
    assert request is not None
    return request


async def say(store: Store, *sayings: Saying, thread: str = "t1") -> None:
    async def work(tx: Transaction) -> None:
        for saying in sayings:
            await tx.say(thread, saying)

    await store.transact(work)


async def save(store: Store, name: str, known: Known, *, poll_in: float | None) -> None:
    await store.transact(lambda tx: tx.save_known(name, known, poll_in=poll_in))


async def settle(store: Store, name: str, state: RequestState, **options: Any) -> None:
    await store.transact(lambda tx: tx.settle_request(name, state, **options))


async def claim_requests(store: Store, owner: str = "one", limit: int = 10) -> Sequence[ClaimedRequest]:
    return await store.transact(lambda tx: tx.claim_requests(owner, lease=LEASE, limit=limit))


async def claim_notices(
    store: Store, owner: str = "one", limit: int = 10, held: Sequence[str] = ()
) -> Sequence[ClaimedNotice]:
    return await store.transact(lambda tx: tx.claim_notices(owner, lease=LEASE, limit=limit, held_channels=held))


async def claim_watches(store: Store, owner: str = "one", limit: int = 10) -> Sequence[ClaimedWatch]:
    return await store.transact(lambda tx: tx.claim_watches(owner, lease=LEASE, limit=limit))


async def done(store: Store, item: ClaimedNotice, owner: str = "one", ts: str | None = "1.1") -> bool:
    return await store.transact(lambda tx: tx.notice_done(item.notice, owner, ts=ts))


async def deliver_all(store: Store, owner: str = "one") -> list[str]:
    """Claims and delivers till nothing is due; the keys, in order."""
    keys: list[str] = []
    while items := await claim_notices(store, owner):
        for item in items:
            assert await done(store, item, owner)
            keys.append(item.notice.key)
    return keys


async def save_polls(store: Store, *polls: Polled, owner: str = "one") -> int:
    return await store.transact(lambda tx: tx.save_polls(polls, owner))


def unchanged(item: ClaimedWatch, next_in: float | None = 5.0) -> Polled:
    return Polled(item.thread, item.thread.known, (), card_changed=False, next_in=next_in)


def changed(item: ClaimedWatch, *sayings: Saying, next_in: float | None = 5.0, **known: Any) -> Polled:
    return Polled(item.thread, replace(item.thread.known, **known), sayings, card_changed=True, next_in=next_in)
