"""With Slack's limits enforced, posts are delivered without a refusal, and refused calls wait for the given time."""

import pytest
from support.worlds.core_world import CoreWorld

from bot.domain.slack_limits import SLACK_LIMITS, Limit, SlackMethod
from bot.domain.threads.thread import Thread
from bot.errors import ChatRateLimited
from bot.notices.notice import Reaction

pytestmark = pytest.mark.promise("slack limits")

METHODS = {
    "mark": SlackMethod.ADD_REACTION,
    "unmark": SlackMethod.REMOVE_REACTION,
    "update_card": SlackMethod.UPDATE,
    "post": SlackMethod.POST_MESSAGE,
    "post_card": SlackMethod.POST_MESSAGE,
    "tell": SlackMethod.POST_EPHEMERAL,
}


class StrictSlack:
    """Refuses calls beyond its limits, as Slack does; `strictness`: how much lower they are than documented."""

    def __init__(self, world: CoreWorld, strictness: float = 1.0) -> None:
        self._world = world
        self._strictness = strictness
        self._made: dict[tuple[str, str], list[float]] = {}
        self.refused: list[str] = []
        self.early: list[str] = []
        self._asked: dict[tuple[str, str], tuple[float, float]] = {}

    def check(self, call: str, thread: Thread | None) -> None:
        if call not in METHODS or thread is None:
            return
        method, now = METHODS[call], self._world.clock.now()
        for channel_id, limits in (("", SLACK_LIMITS.methods), (thread.channel_id, SLACK_LIMITS.channel)):
            if method not in limits:
                continue
            limit = Limit(max(int(limits[method].calls / self._strictness), 1), min(limits[method].seconds, 60.0))
            at = (method, channel_id)
            since, until = self._asked.get(at, (0.0, 0.0))
            if since < now < until:
                self.early.append(call)
            made = self._made.setdefault(at, [])
            if limit.left(made, now) == 0:
                wait = limit.wait(made, now)
                self._asked[at] = now, now + wait
                self.refused.append(call)
                raise ChatRateLimited("ratelimited", retry_after=wait, method=method)
            made.append(now + limit.seconds)


@pytest.fixture
def strict(world: CoreWorld) -> StrictSlack:
    """A Slack with the limits that it documents."""
    world.slack_limits = SLACK_LIMITS
    world.assemble()
    slack = StrictSlack(world)
    world.chat.fault = slack.check
    return slack


async def started_in(world: CoreWorld, *channels: str) -> list[str]:
    world.chat.joined |= set(channels)
    world.chat.public |= set(channels)
    roots = []
    for channel in channels:
        roots.append(await world.started(channel=channel, key=channel))
        await world.pass_time(5)
    return roots


async def replies(world: CoreWorld, channels: list[str], roots: list[str], *, count: int, every: float) -> None:
    for number in range(count):
        at = number % len(channels)
        await world.reply(roots[at], f"Change {number}", f"5.{number:06}", channel=channels[at])
        await world.pass_time(every)


async def test_ninety_replies_in_a_minute_are_marked_within_the_limits(world: CoreWorld, strict: StrictSlack) -> None:
    channels = ["C1", "C2", "C3"]
    await replies(world, channels, await started_in(world, *channels), count=90, every=2 / 3)
    await world.pass_time(32)
    assert strict.refused == []
    assert set(world.chat.reactions.values()) == {Reaction.ACCEPTED}
    assert len(world.chat.reactions) == 90
    assert world.chat.calls.count("mark") <= 90 + 30, "few waited so long that they were marked as noted down"


async def test_a_lower_limit_than_documented_is_obeyed(world: CoreWorld, strict: StrictSlack) -> None:
    """No call is retried early, and no successful call is repeated."""
    half = StrictSlack(world, strictness=2.0)
    world.chat.fault = half.check
    channels = ["C1", "C2", "C3"]
    await replies(world, channels, await started_in(world, *channels), count=60, every=1.0)
    await world.pass_time(400)
    assert half.early == []
    assert len(world.chat.reactions) == 60
    assert set(world.chat.reactions.values()) == {Reaction.ACCEPTED}
    assert all(len(there) == 1 for there in world.chat.all_reactions.values())
    assert len(half.refused) <= 40


async def test_a_refused_mark_keeps_its_place(world: CoreWorld, strict: StrictSlack) -> None:
    """It was refused once, and waits no longer than those that came after it."""
    [root] = await started_in(world, "C1")
    refusals = [ChatRateLimited("ratelimited", retry_after=20.0, method=SlackMethod.ADD_REACTION)]

    def once(call: str, _: Thread | None) -> None:
        if call == "mark" and refusals:
            raise refusals.pop()

    world.chat.fault = once
    await replies(world, ["C1"], [root], count=8, every=2.0)
    await world.pass_time(40)
    assert list(world.chat.all_reactions) == [f"5.{number:06}" for number in range(8)]


@pytest.mark.parametrize("starts", [10, pytest.param(60, marks=pytest.mark.full)])
async def test_many_starts_in_one_channel_are_posted_at_its_rate(
    world: CoreWorld, strict: StrictSlack, starts: int
) -> None:
    for number in range(starts):
        await world.start(f"Do {number}", key=f"k{number}")
        await world.pass_time(60 / starts)
    for _ in range(12):
        await world.pass_time(15)  # in steps of a second, in which the outbox checks again
    assert strict.refused == []
    assert len(world.job_api.created) == starts
    kinds = [message.kind for message in world.chat.messages]
    assert (kinds.count("card_changed"), kinds.count("job_started")) == (starts, starts)
