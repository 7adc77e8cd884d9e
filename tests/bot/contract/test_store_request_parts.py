"""The context of requests on real databases: stored parts, and the queue of files to upload."""

import asyncio

import pytest
from support.fakes.ports import FakeClock
from support.worlds.store_world import LEASE, a_follow_up, add, claim_requests, settle, watched

from bot.domain.context.fetched_parts import (
    FetchedFile,
    FetchedParts,
    FetchedThread,
    FileOutcome,
    ThreadPart,
    with_files,
)
from bot.domain.context.slack_files import FileMode, FileProblem, LinkPreview, QuotedFile, SlackFile, ThreadMessage
from bot.domain.requests.request import RejectionReason, RequestState
from bot.jobapi.models import PromptFile
from bot.store.request_parts import ClaimedFile
from bot.store.store import Store, Transaction

pytestmark = pytest.mark.either_database

FIRST, SECOND = (f"1700000000.00000{n}" for n in (1, 2))
ONE = f"t1-{FIRST}"
FILES = [SlackFile(f"F{n}", f"{n}.png", "image/png", mode=FileMode.SNIPPET) for n in range(3)]
GIVEN = FileOutcome(PromptFile("id", "0.png", "image/png"), project="docs")


async def claim(store: Store, owner: str = "one", limit: int = 9) -> list[ClaimedFile]:
    return list(await store.transact(lambda tx: tx.request_parts.claim(owner, lease=LEASE, limit=limit)))


async def waiting(store: Store, *, count: int = 3) -> None:
    """A follow-up that waits for these files, and one after it."""
    await watched(store)
    await add(store, a_follow_up(FIRST), a_follow_up(SECOND))
    await store.transact(lambda tx: tx.request_parts.to_upload(ONE, FILES[:count]))


async def test_each_file_is_claimed_separately_by_one_owner(store: Store) -> None:
    """However many workers claim concurrently."""
    await waiting(store)
    taken = await asyncio.gather(*(claim(store, owner, limit=1) for owner in ("one", "two", "three", "four")))
    assert len([item for items in taken for item in items]) + len(await claim(store, "five")) == 3
    assert await claim(store, "six") == []


async def test_a_request_waits_for_all_its_files_and_is_not_overtaken(store: Store) -> None:
    await waiting(store, count=2)
    assert await claim_requests(store) == []
    for number, item in enumerate(await claim(store)):
        assert (item.file, item.position, item.attempts, item.thread.id) == (FILES[number], number, 1, "t1")

        async def work(tx: Transaction, item: ClaimedFile = item, last: bool = number == 1) -> None:  # noqa: FBT001 - of the test
            await tx.request_parts.settle(item, GIVEN if last else FileOutcome(problem=FileProblem.REFUSED))
            settled = await tx.request_parts.settled(ONE)
            assert (settled is not None) == last
            if settled is not None:
                context = with_files(None, settled, "docs")
                assert context is not None
                await tx.request_parts.complete(ONE, context)

        await store.transact(work)
    (sent,) = await claim_requests(store)
    assert (sent.request.id, sent.uncertain) == (ONE, False)
    assert sent.request.context is not None
    assert sent.request.context.files == (GIVEN.uploaded,)


async def test_files_of_a_request_that_no_longer_waits_are_dropped(store: Store) -> None:
    """Except for a request that was handed back: they are uploaded when it is sent again."""
    await waiting(store)
    await settle(store, ONE, RequestState.REJECTED, problem=RejectionReason.HANDED_BACK)
    assert await claim(store) == []
    await settle(store, ONE, RequestState.WAITING, afresh=True)
    assert len(await claim(store)) == 3
    await store.transact(lambda tx: tx.claims.release("one"))
    await settle(store, ONE, RequestState.WITHDRAWN)
    assert await claim(store) == []
    await settle(store, ONE, RequestState.WAITING)
    assert [item.request.id for item in await claim_requests(store)] == [ONE]


async def test_forgetting_a_person_deletes_their_files(store: Store) -> None:
    await waiting(store)
    await store.transact(lambda tx: tx.retention.forget_person("UANA", limit=9))
    assert await claim(store) == []


async def test_the_start_of_slack_failures_is_kept(store: Store, clock: FakeClock) -> None:
    await waiting(store, count=1)
    (item,) = await claim(store)
    since = await store.transact(lambda tx: tx.request_parts.fails(item))
    clock.advance(7)
    assert await store.transact(lambda tx: tx.request_parts.fails(item)) == since
    await store.transact(lambda tx: tx.request_parts.postpone(item, due_in=5.0))
    assert await claim(store) == []
    clock.advance(6)
    assert len(await claim(store)) == 1


async def test_prepared_parts_are_kept_until_the_request_proceeds(store: Store) -> None:
    """With any text and file names."""
    await watched(store)
    await add(store, a_follow_up(FIRST, state=RequestState.RECEIVED))
    message = ThreadMessage(
        "Ana", "a\0\ud800ß", "1.2", (FILES[0],), previews=(LinkPreview("t", "x", "https://x.example"),)
    )
    thread = FetchedThread(ThreadPart("1.1", "1.0", "1.3"), (message,))
    found = QuotedFile(FILES[0], "text", complete=False, problem=FileProblem.ELSEWHERE)
    parts = FetchedParts(thread, (FetchedFile(FILES[0], found),), 12.5)
    await store.transact(lambda tx: tx.request_parts.keep_fetched(ONE, parts))
    kept = await store.transact(lambda tx: tx.request_parts.fetched(ONE))
    assert (kept.files, kept.failing_since) == (parts.files, 12.5)
    assert kept.thread is not None
    assert kept.thread.messages is not None
    assert kept.thread.messages[0].previews == message.previews
    await settle(store, ONE, RequestState.WITHDRAWN)
    assert await store.transact(lambda tx: tx.request_parts.fetched(ONE)) == FetchedParts()
