"""Look-ups: one for all concurrent callers, several at a time, and cached values without waiting."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from support.fakes.virtual_loop import VirtualLoop

from bot.slack.sending.expiring_cache import AT_A_TIME, ExpiringCache, SingleFlight

pytestmark = pytest.mark.promise("look-ups")

SECONDS = 2.0
"""Seconds that a fetch takes."""


class Slow:
    """A slow fetch with its records. `fails` are keys that raise."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.cancelled: list[str] = []
        self.fails: set[str] = set()
        self.most_at_a_time = 0
        self._at_work = 0

    async def fetch(self, key: str) -> str:
        self.begun.append(key)
        self._at_work += 1
        self.most_at_a_time = max(self.most_at_a_time, self._at_work)
        try:
            await asyncio.sleep(SECONDS)
        except asyncio.CancelledError:
            self.cancelled.append(key)
            raise
        finally:
            self._at_work -= 1
        if key in self.fails:
            raise LookupError(key)
        return f"{key} {len(self.begun)}"


def in_virtual_time(test: Callable[[Slow], Awaitable[None]]) -> None:
    async def run() -> None:
        await test(Slow())

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(run())


def now() -> float:
    return asyncio.get_running_loop().time()


def cache_of(seconds: float = 10.0) -> ExpiringCache[str]:
    return ExpiringCache[str](seconds=seconds, monotonic=now)


def test_concurrent_callers_share_one_fetch() -> None:
    """Callers during a fetch get its result."""

    async def test(slow: Slow) -> None:
        cache = cache_of()
        first = asyncio.create_task(cache.get("a", slow.fetch))
        await asyncio.sleep(SECONDS / 2)
        assert await cache.get("a", slow.fetch) == await first == "a 1"
        assert now() == SECONDS
        assert slow.begun == ["a"]

    in_virtual_time(test)


def test_different_keys_are_fetched_concurrently_up_to_a_limit() -> None:
    """Three rounds of fetches take as long as three fetches."""

    async def test(slow: Slow) -> None:
        flights = SingleFlight[str]()
        await asyncio.gather(*(flights.get(str(number), slow.fetch) for number in range(3 * AT_A_TIME)))
        assert slow.most_at_a_time == AT_A_TIME
        assert now() == 3 * SECONDS
        assert len(flights) == 0

    in_virtual_time(test)


def test_a_cancelled_caller_cancels_no_other() -> None:
    """Including the first, which started it."""

    async def test(slow: Slow) -> None:
        cache = cache_of()
        first, second = (asyncio.create_task(cache.get("a", slow.fetch)) for _ in range(2))
        await asyncio.sleep(SECONDS / 2)
        first.cancel()
        assert await second == "a 1"
        assert first.cancelled()
        assert (slow.begun, slow.cancelled) == (["a"], [])

    in_virtual_time(test)


def test_a_fetch_without_waiters_is_cancelled() -> None:
    """Nothing of it is left, and the next caller starts a new one, even at the same moment."""

    async def test(slow: Slow) -> None:
        flights = SingleFlight[str]()
        waiting = [asyncio.create_task(flights.get("a", slow.fetch)) for _ in range(2)]
        await asyncio.sleep(SECONDS / 2)
        for each in waiting:
            each.cancel()
        await asyncio.wait(waiting)
        assert await flights.get("a", slow.fetch) == "a 2"
        assert (slow.begun, slow.cancelled, len(flights)) == (["a", "a"], ["a"], 0)

    in_virtual_time(test)


def test_a_failure_reaches_every_waiter_and_is_not_cached() -> None:
    """The next caller fetches again; a failure that nobody waited for is not reported."""

    async def test(slow: Slow) -> None:
        slow.fails = {"a"}
        cache = cache_of()
        told = await asyncio.gather(*(cache.get("a", slow.fetch) for _ in range(3)), return_exceptions=True)
        assert [type(each) for each in told] == [LookupError] * 3
        assert slow.begun == ["a"]
        slow.fails = set()
        assert await cache.get("a", slow.fetch) == "a 2"

    in_virtual_time(test)


def test_a_value_counts_from_the_start_of_its_fetch() -> None:
    """A change during the fetch is seen as soon as one before it."""

    async def test(slow: Slow) -> None:
        cache = cache_of(seconds=10.0)
        await cache.get("a", slow.fetch)
        await asyncio.sleep(10.0 - SECONDS)
        assert now() == 10.0
        assert await cache.get("a", slow.fetch) == "a 2"

    in_virtual_time(test)


@pytest.mark.parametrize("count", [2_001, 2_500])
def test_at_most_two_thousand_values_are_cached(count: int) -> None:
    """The oldest are evicted first, even if they were fetched concurrently."""

    async def test(slow: Slow) -> None:
        cache = cache_of(seconds=1e6)
        await asyncio.gather(*(cache.get(str(number), slow.fetch) for number in range(count)))
        assert len(cache) == 2_000
        await cache.get(str(count - 1), slow.fetch)
        assert len(slow.begun) == count
        await cache.get("0", slow.fetch)
        assert (len(slow.begun), len(cache)) == (count + 1, 2_000)

    in_virtual_time(test)
