"""Several owners at once, each with its own connections."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest
from support.worlds.store_world import (
    CARD,
    Opener,
    Sql,
    a_follow_up,
    a_post,
    a_thread,
    add,
    changed,
    claim_notices,
    claim_polls,
    claim_requests,
    done,
    get_thread,
    save_polls,
    say,
    settle,
    unchanged,
    watched,
)

from bot.domain.requests.request import Person, Reply, RequestState
from bot.store.store import Store, Transaction

pytestmark = pytest.mark.promise("one owner")

OWNERS = ("one", "two", "three")


@pytest.fixture
async def stores(another_store: Opener) -> Sequence[Store]:
    """One per owner, as separate processes would have."""
    return [await another_store() for _ in OWNERS]


async def test_owners_never_claim_the_same_row(stores: Sequence[Store]) -> None:
    names = [f"t{n:02}" for n in range(40)]
    for name in names:
        await watched(stores[0], name)
        await add(stores[0], a_follow_up("1", name))
        await say(stores[0], a_post("a"), thread=name)
    taken: Counter[str] = Counter()

    async def take(store: Store, owner: str) -> None:
        while True:
            polls = await claim_polls(store, owner, limit=4)
            requests = await claim_requests(store, owner, limit=4)
            notices = await claim_notices(store, owner, limit=4)
            taken.update(f"watch {item.thread.id}" for item in polls)
            taken.update(f"request {item.request.thread_id}" for item in requests)
            taken.update(f"notice {item.notice.thread_id}" for item in notices)
            if not (polls or requests or notices):
                return

    await asyncio.gather(*(take(store, owner) for store, owner in zip(stores, OWNERS, strict=True) for _ in range(2)))
    # Rows locked by another owner are skipped, so a last round takes the rest.
    await take(stores[0], "one")
    assert taken == Counter(f"{kind} {name}" for kind in ("watch", "request", "notice") for name in names)


async def test_a_thread_has_one_request_in_flight(stores: Sequence[Store]) -> None:
    await watched(stores[0])
    await add(stores[0], *[a_follow_up(f"{n}") for n in range(8)])
    under_way: list[str] = []
    sent: list[str] = []

    async def send_requests(store: Store, owner: str) -> None:
        while len(sent) < 8:
            for item in await claim_requests(store, owner):
                under_way.append(item.request.text)
                assert len(under_way) == 1
                await asyncio.sleep(0)
                under_way.remove(item.request.text)
                sent.append(item.request.text)
                await settle(store, item.request.id, RequestState.ACCEPTED)

    await asyncio.gather(*(send_requests(store, owner) for store, owner in zip(stores, OWNERS, strict=True)))
    assert sent == [f"{n}" for n in range(8)]


async def test_notices_stay_in_order_while_more_are_recorded(stores: Sequence[Store]) -> None:
    threads = ["t1", "t2", "t3"]
    for name in threads:
        await add(stores[0], a_thread(name), say=[CARD])
    said: dict[str, list[str]] = {name: [] for name in threads}
    delivering = True

    async def speak(store: Store) -> None:
        for n in range(10):
            for name in threads:
                await say(store, a_post(f"{n}"), CARD, thread=name)

    async def deliver(store: Store, owner: str) -> None:
        idle = False
        while not idle:
            items = await claim_notices(store, owner, limit=2)
            for item in items:
                if item.notice.delivery == "post":
                    said[item.thread.id].append(item.notice.key.split("/")[1])
                assert await done(store, item, owner)
            idle = not items and not delivering
            await asyncio.sleep(0)

    outboxes = [asyncio.create_task(deliver(stores[n], OWNERS[n])) for n in (1, 2)]
    await speak(stores[0])
    delivering = False
    await asyncio.gather(*outboxes)
    await deliver(stores[0], "one")
    assert said == {name: [f"{n}" for n in range(10)] for name in threads}


async def test_concurrent_polls_and_answers_lose_no_update(stores: Sequence[Store], sql: Sql) -> None:
    names = [f"t{n}" for n in range(5)]
    for name in names:
        await watched(stores[0], name)

    async def answer(name: str) -> None:
        async def work(tx: Transaction) -> None:
            thread = await tx.threads.get(name)
            assert thread is not None
            await tx.threads.save_state(name, replace(thread.state, round=thread.state.round + 1), poll_in=0.0)
            await tx.notices.add(name, CARD)

        for _ in range(10):
            await stores[0].transact(work)

    async def poll(store: Store, owner: str) -> None:
        for n in range(20):
            items = await claim_polls(store, owner)
            polls = [
                changed(
                    item,
                    a_post(f"{owner}{n}"),
                    not_found_count=item.thread.state.failure.not_found_count + 1,
                    next_poll_in=0.0,
                )
                if index % 2
                else unchanged(item, next_poll_in=0.0)
                for index, item in enumerate(reversed(items))
            ]
            await save_polls(store, *polls, owner=owner)

    await asyncio.gather(*(answer(name) for name in names), poll(stores[1], "two"), poll(stores[2], "three"))
    state = [(await get_thread(stores[0], name)).state for name in names]
    assert [item.round for item in state] == [10] * len(names)
    [(posts,)] = await sql("SELECT count(*) FROM notices WHERE delivery = 'post'")
    assert posts == sum(item.failure.not_found_count for item in state) > 0


@pytest.mark.parametrize(
    "server", [pytest.param("postgres", id="postgres", marks=pytest.mark.postgres)], indirect=True
)  # on SQLite one transaction locks the whole database
async def test_of_cards_arriving_at_once_the_newest_takes_unassigned_replies(
    stores: Sequence[Store],
) -> None:
    """Otherwise each would leave it to the other one, which is also in flight."""
    for name in ("t1", "t2"):
        await stores[0].transact(partial(_card_to_come, name))
    reply = Reply(Person("UANA", "T1"), "C1", "1700000000.000900", "1700000002.000100", "Fix it", mentions_us=True)
    assert await stores[0].transact(lambda tx: tx.early_replies.keep(reply))
    second: list[asyncio.Task[Sequence[Reply]]] = []

    async def first(tx: Transaction) -> Sequence[Reply]:
        taken = await _card_arrives("t1", tx)
        second.append(asyncio.create_task(stores[1].transact(partial(_card_arrives, "t2"))))
        await asyncio.wait(second, timeout=0.5)  # it ends, unless it waits for this one
        return taken

    assert await stores[0].transact(first) == []
    assert await second[0] == [reply]


async def _card_to_come(name: str, tx: Transaction) -> None:
    await tx.threads.add(a_thread(name, ts=None))
    await tx.notices.add(name, CARD)


async def _card_arrives(name: str, tx: Transaction) -> Sequence[Reply]:
    ts = f"1700000003.00010{name[-1]}"
    assert await tx.threads.get(name)
    await tx.threads.set_card(name, ts)
    return await tx.early_replies.take("C1", ts)
