"""In any order of delivery, the newest version of a message counts, on every way in."""

from dataclasses import dataclass
from itertools import permutations

import pytest
from support.worlds.core_world import CoreWorld
from support.worlds.listening_world import BOT
from support.worlds.message_versions import ROOT, SOON, Json, MessageVersions

pytestmark = pytest.mark.promise("newest version")

US = f"<@{BOT}>"


@dataclass(frozen=True)
class Way:
    """A way in: where the message is (`in_job`: in the thread of a job), and its form."""

    form: str
    channel: str = "C1"
    thread_ts: str = ""
    in_job: bool = False


WAYS = {
    "mention": Way(f"{US} {{}}"),
    "mention in a thread": Way(f"{US} {{}}", thread_ts=ROOT),
    "direct message": Way("{}", channel="D1"),
    "in a direct message's thread": Way("{}", channel="D1", thread_ts=ROOT),
    "!new": Way("!new {}", in_job=True),
    "new": Way(f"{US} new {{}}", in_job=True),
}
ORDERS = list(permutations(range(3)))
TRIED = pytest.mark.parametrize(
    "order",
    [pytest.param(order, marks=() if order in {(0, 2, 1), (2, 1, 0)} else pytest.mark.full) for order in ORDERS],
    ids=str,
)
"""The default lane swaps one neighbouring pair and reverses the order."""


async def placed(world: CoreWorld, message: MessageVersions, way: Way) -> list[str]:
    """Prepares the place of the message; returns what was created there."""
    world.chat.public.add("D1")
    message.channel, message.thread_ts = way.channel, way.thread_ts
    if way.in_job:
        message.thread_ts = await world.started()
    return list(world.job_api.created)


def words(world: CoreWorld, before: list[str]) -> list[str]:
    """Returns the prompts of jobs created since."""
    return [prompt.partition("\n")[0] for prompt in world.job_api.created[len(before) :]]


async def come(message: MessageVersions, events: list[Json], order: tuple[int, ...], wait: float) -> None:
    """Delivers events in an order, and then all of them again."""
    for index in order:
        await message.take(events[index], wait=wait)
    await message.take(*events)


@pytest.mark.first(way=3)
@TRIED
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_a_message_deleted_before_it_arrives_starts_nothing(
    world: CoreWorld, message: MessageVersions, way: Way, order: tuple[int, ...]
) -> None:
    before = await placed(world, message, way)
    one, two = way.form.format("Delete all pages"), way.form.format("Delete one page")
    await come(message, [message.written(one), message.edited(one, two), message.deleted(two)], order, 0)
    assert words(world, before) == []


@pytest.mark.first(way=3)
@TRIED
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_a_message_edited_before_it_arrives_starts_with_the_newest_words(
    world: CoreWorld, message: MessageVersions, way: Way, order: tuple[int, ...]
) -> None:
    before = await placed(world, message, way)
    one, two, three = (way.form.format(text) for text in ("Fix everything", "Fix chapter 3", "Fix chapter 3 only"))
    events = [message.written(one), message.edited(one, two), message.edited(two, three, SOON[1])]
    await come(message, events, order, 0)
    assert words(world, before) == ["Fix chapter 3 only"]


@pytest.mark.first(way=3)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_an_edit_that_arrives_first_starts_the_job(world: CoreWorld, message: MessageVersions, way: Way) -> None:
    """The message itself, which Slack delivers later, belongs to that job."""
    before = await placed(world, message, way)
    one, two = way.form.format("Fix everything"), way.form.format("Fix chapter 3")
    await come(message, [message.written(one), message.edited(one, two)], (1, 0), 60)
    assert words(world, before) == ["Fix chapter 3"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=str)
@pytest.mark.parametrize("way", ["mention", "mention in a thread"])
async def test_a_mention_removed_before_it_arrives_starts_nothing(
    world: CoreWorld, message: MessageVersions, way: str, order: tuple[int, ...]
) -> None:
    before = await placed(world, message, WAYS[way])
    await come(message, [message.written(f"{US} Fix it"), message.edited(f"{US} Fix it", "Fix it")], order, 0)
    assert words(world, before) == []


async def test_messages_not_for_pagehand_leave_no_trace(world: CoreWorld, message: MessageVersions) -> None:
    """Neither do edits of other people's messages."""
    message.thread_ts = ROOT
    await message.take(message.written("one"), message.edited("one", "two"), message.deleted("two"))
    version = message.version(SOON[0])
    assert await world.store.transact(lambda tx: tx.message_versions.note(version))
