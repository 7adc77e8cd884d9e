"""If only mentions are for the agent, those sent as one message read the Slack thread once."""

import asyncio
from collections.abc import Sequence

import pytest
from support.worlds.core_world import ANA, BEN, CoreWorld

from bot.domain.context.slack_files import ThreadMessage
from bot.domain.jobs.poll_pace import Polling
from bot.domain.requests.request import Person, Reply
from bot.errors import ChatUncertain
from bot.scheduler.preparing.parts import FetchLimits, PreparerSettings
from bot.scheduler.request_preparer import RequestPreparer
from bot.scheduler.worker import WorkerSettings

ROOT, JOB = "1700000000.000100", "job-1"
AT = [f"170000000{n}.000200" for n in range(1, 10)]
HOLD = 0.3
"""Seconds that a reply waits for others: enough for all to arrive, even on a busy machine."""


def waiting_for_others(world: CoreWorld, seconds: float) -> None:
    """Makes each reply wait this long for others that may be merged with it."""
    settings = WorkerSettings(world.owner, world.clock, lease=30.0, call_timeout=8.0, on_commit=lambda _: None)
    limits = FetchLimits(together=seconds)
    world.request_preparer = RequestPreparer(
        world.store,
        settings,
        PreparerSettings(world.rules, world.projects, Polling(), world.merge_seconds, limits),
        reading=world.reading.ports,
        rereader=world.rereader,
        job_api=world.job_api,
        people=world.people,
    )


@pytest.fixture
async def mentions(world: CoreWorld) -> CoreWorld:
    """A job in an existing thread; replies in quick succession are merged."""
    world.merge_seconds = 3.0
    world.assemble()
    waiting_for_others(world, HOLD)
    world.reading.threads[ROOT] = [ThreadMessage("Cleo", "The guide is wrong", ROOT)]
    await world.service.receive(Reply(ANA, "C1", ROOT, AT[0], "Fix it", mentions_us=True))
    await world.settle()
    world.reading.asked.clear()
    return world


async def mention(world: CoreWorld, text: str, at: str, person: Person = ANA) -> None:
    await world.service.receive(Reply(person, "C1", ROOT, at, text, mentions_us=True))


async def prepared_together(world: CoreWorld, *, order: Sequence[int] = ()) -> None:
    """Prepares everything received concurrently, started in written order or another, until nothing is left."""
    while claimed := await world.request_preparer.claim(8):
        in_order = sorted(claimed, key=lambda item: item.request.written_at)
        begun = [in_order[number] for number in order if number < len(in_order)] or in_order
        await asyncio.gather(*(world.request_preparer.process(item, world.clock.monotonic()) for item in begun))


def said(world: CoreWorld, *numbers: int) -> None:
    world.reading.threads[ROOT] += [ThreadMessage("Cleo", f"Chapter {number}", AT[number]) for number in numbers]


def reads(world: CoreWorld) -> int:
    return world.reading.asked.count(f"thread {ROOT}")


async def sent(world: CoreWorld) -> Sequence[str]:
    await world.pass_time(30)
    return world.job_api.messages[JOB]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
async def test_merged_requests_read_the_thread_once(mentions: CoreWorld, order: Sequence[int]) -> None:
    """Each part of it is included once, in its place, in any order of claims."""
    said(mentions, 1, 3, 5)
    for words, number in (("First", 2), ("Second", 4), ("Third", 6)):
        await mention(mentions, words, AT[number])
    await prepared_together(mentions, order=order)
    assert reads(mentions) == 1
    (message,) = await sent(mentions)
    assert message.startswith("First\n\nSecond\n\nThird\n\n")
    assert [message.count(f"> Chapter {number}") for number in (1, 3, 5)] == [1, 1, 1]
    assert reads(mentions) == 1


async def test_concurrent_requests_share_one_reading(mentions: CoreWorld) -> None:
    """They are sent separately, each with its own part."""
    said(mentions, 1, 3)
    await mention(mentions, "First", AT[2])
    await mention(mentions, "Second", AT[4], BEN)
    await prepared_together(mentions)
    first, second = await sent(mentions)
    assert reads(mentions) == 1
    assert ("Chapter 1" in first, "Chapter 3" in first) == (True, False)
    assert ("Chapter 1" in second, "Chapter 3" in second) == (False, True)


async def test_context_of_a_withdrawn_request_goes_with_the_next(mentions: CoreWorld) -> None:
    """As if it had never been written."""
    said(mentions, 1, 3)
    await mention(mentions, "Oops", AT[2])
    await mention(mentions, "Second", AT[4])
    claimed = await mentions.request_preparer.claim(8)
    at_work = asyncio.gather(*(mentions.request_preparer.process(item, 0.0) for item in claimed))
    gone = Reply(ANA, "C1", ROOT, AT[2], "", edited_at=AT[5], withdrawn=True, mentions_us=True)
    await mentions.service.revise(gone)
    await at_work
    await prepared_together(mentions)
    (message,) = await sent(mentions)
    assert message.startswith("Second\n\n")
    assert [message.count(f"> Chapter {number}") for number in (1, 3)] == [1, 1]


async def test_a_request_behind_one_in_flight_reads_its_part_at_once(mentions: CoreWorld) -> None:
    """So that it is still sent with it."""
    said(mentions, 1)
    await mention(mentions, "First", AT[2])
    await prepared_together(mentions)
    said(mentions, 3)
    await mention(mentions, "Second", AT[4])
    before = asyncio.get_running_loop().time()
    await mentions.step(mentions.request_preparer)
    assert asyncio.get_running_loop().time() - before < HOLD
    (message,) = await sent(mentions)
    assert [message.count(f"> Chapter {number}") for number in (1, 3)] == [1, 1]
    assert reads(mentions) == 2


async def test_a_failed_reading_is_retried_silently(mentions: CoreWorld) -> None:
    """Each reply still includes its own part."""
    said(mentions, 1, 3)
    await mention(mentions, "First", AT[2])
    await mention(mentions, "Second", AT[4])
    claimed = await mentions.request_preparer.claim(8)
    at_work = asyncio.gather(*(mentions.request_preparer.process(item, 0.0) for item in claimed))
    async with asyncio.timeout(20.0):
        while mentions.reading.asked.count("channel C1") < 2:  # noqa: ASYNC110 - nobody tells that both have come so far
            await asyncio.sleep(0.001)
    mentions.reading.faults = [ChatUncertain("away")]
    await at_work
    mentions.reading.faults = []
    message = "\n\n".join(await sent(mentions))
    assert [message.count(f"> Chapter {number}") for number in (1, 3)] == [1, 1]


async def test_a_thread_beyond_the_limit_is_read_for_each_request(mentions: CoreWorld) -> None:
    """A part left out for one may be included for another."""
    mentions.reading.threads[ROOT] += [
        ThreadMessage("Cleo", f"Word {n}", f"1700000001.{n:06}") for n in range(300, 500)
    ]
    said(mentions, 3)
    await mention(mentions, "First", AT[2])
    await mention(mentions, "Second", AT[4])
    await prepared_together(mentions)
    (message,) = await sent(mentions)
    assert message.count("> Word ") == 50
    assert "> Word 499" in message
    assert message.count("> Chapter 3") == 1


async def test_a_stop_makes_no_request_wait_for_others(mentions: CoreWorld) -> None:
    """Work in progress ends at once, prepared."""
    await mention(mentions, "First", AT[2])
    mentions.request_preparer._limits = FetchLimits(together=60.0)
    run = asyncio.create_task(mentions.request_preparer.run())
    async with asyncio.timeout(20.0):
        while "channel C1" not in mentions.reading.asked:  # noqa: ASYNC110 - nobody tells that it has come so far
            await asyncio.sleep(0.001)
        await mentions.request_preparer.stop(10.0)
        await run
    assert reads(mentions) == 1
