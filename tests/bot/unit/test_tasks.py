"""Background tasks: none is lost, and none is left behind."""

import asyncio
import gc
import logging
import signal
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.ports import FakeClock
from support.fakes.virtual_loop import in_virtual_time
from support.worlds.listening_world import ListeningWorld, listening

from bot.errors import StoreUnavailable
from bot.runtime.health import RECOVERY_SECONDS
from bot.runtime.http.server import PendingBytes
from bot.runtime.process_signals import ending_signals, freeze_startup_objects, lasting_imports, run_until_signal
from bot.runtime.tasks import RESTART_BACKOFF, BackgroundTasks, Supervisor, log_fault
from bot.slack.receiving.modal_opener import DraftKeeper
from bot.slack.sending.expiring_cache import AT_A_TIME, ExpiringCache

FAR = 10_000.0


@pytest.fixture
def tasks() -> BackgroundTasks:
    return BackgroundTasks(expected=LookupError)


async def trip(fault: Exception) -> None:
    raise fault


@in_virtual_time
async def test_unexpected_task_failures_are_logged(tasks: BackgroundTasks, caplog: pytest.LogCaptureFixture) -> None:
    tasks.spawn(trip(ValueError("tripped")), name="tripping")
    tasks.spawn(trip(KeyError("none")), name="looking up")
    tasks.spawn(asyncio.sleep(FAR), name="sleeping").cancel()
    await tasks.drain(1.0)
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.ERROR, "tripping ended unexpectedly")
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ValueError)


@in_virtual_time
async def test_draining_waits_for_tasks_spawned_meanwhile(tasks: BackgroundTasks) -> None:
    said: list[str] = []

    async def say() -> None:
        await asyncio.sleep(1.0)
        said.append("said")

    async def begin() -> None:
        await asyncio.sleep(1.0)
        tasks.spawn(say(), name="delivery")

    tasks.spawn(begin(), name="beginning")
    await tasks.drain(3.0)
    assert said == ["said"]
    assert asyncio.get_running_loop().time() == 2.0


@pytest.mark.parametrize("seconds", [0.0, 2.0])
@in_virtual_time
async def test_late_tasks_are_cancelled_and_awaited(tasks: BackgroundTasks, seconds: float) -> None:
    ended = False

    async def sleep() -> None:
        nonlocal ended
        try:
            await asyncio.sleep(FAR)
        finally:
            await asyncio.sleep(0.5)
            ended = True

    tasks.spawn(sleep(), name="sleeping")
    await asyncio.sleep(0)
    await tasks.drain(seconds)
    assert ended
    assert asyncio.get_running_loop().time() == seconds + 0.5


async def trip_over() -> None:
    raise ValueError("tripped")


async def end() -> None:
    return


async def be_cancelled_within() -> None:
    inner = asyncio.create_task(asyncio.sleep(FAR))
    inner.cancel()
    await inner


@pytest.mark.parametrize(
    ("dies", "kind"), [(trip_over, "ValueError"), (end, "UnexpectedReturn"), (be_cancelled_within, "RuntimeError")]
)
@in_virtual_time
async def test_a_crashed_task_is_logged_shown_and_restarted(
    dies: Callable[[], Coroutine[Any, Any, None]], kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    starts = 0

    async def work() -> None:
        nonlocal starts
        starts += 1
        await (dies() if starts == 1 else asyncio.sleep(FAR))

    supervisor = Supervisor()
    supervisor.start("Retention", work)
    await asyncio.sleep(0.5)
    (part,) = supervisor.statuses()
    assert (part.name, part.reason) == ("Retention task", f"it ended unexpectedly ({kind})")
    assert part.failing_seconds == 0.5
    await asyncio.sleep(1.0)
    assert starts == 2
    assert list(supervisor.statuses()), "it has not worked for long"
    await asyncio.sleep(RECOVERY_SECONDS)
    assert not list(supervisor.statuses())
    await supervisor.stop(1.0)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage().startswith("Retention ended unexpectedly")
    assert record.exc_info is not None
    assert record.exc_info[0] is not None
    assert record.exc_info[0].__name__ == kind


@in_virtual_time
async def test_repeated_crashes_back_off_and_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    began: list[float] = []

    async def work() -> None:
        began.append(asyncio.get_running_loop().time())
        raise ValueError("tripped")

    supervisor = Supervisor()
    supervisor.start("JobPoller", work)
    await asyncio.sleep(400.0)
    (part,) = supervisor.statuses()
    assert part.failing_seconds == 400.0
    assert not part.ok()
    await supervisor.stop(1.0)
    pauses = [after - before for before, after in pairwise(began)]
    assert pauses[:7] == [1, 2, 4, 8, 16, 32, RESTART_BACKOFF.longest]
    assert set(pauses[7:]) == {RESTART_BACKOFF.longest}
    assert len(caplog.records) == 1


@in_virtual_time
async def test_a_task_that_ends_on_purpose_is_not_restarted(caplog: pytest.LogCaptureFixture) -> None:
    ended, starts = asyncio.Event(), 0

    async def work() -> None:
        nonlocal starts
        starts += 1
        await ended.wait()

    supervisor = Supervisor()
    well, ill = supervisor.start("RequestSender", work), supervisor.start("Retention", trip_over)
    await asyncio.sleep(0.5)
    supervisor.stop_restarting()
    ended.set()
    async with asyncio.timeout(0.1):  # a task waiting to be restarted is stopped, too
        await asyncio.gather(well, ill)
    assert starts == 1
    await supervisor.stop(1.0)
    assert len(caplog.records) == 1


@in_virtual_time
async def test_a_background_task_logs_what_killed_it(caplog: pytest.LogCaptureFixture) -> None:
    for work in (trip_over, end):
        task = asyncio.create_task(work(), name=work.__name__)
        task.add_done_callback(log_fault)
        await asyncio.wait({task})
    assert [record.getMessage() for record in caplog.records] == ["trip_over ended unexpectedly"]


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


@pytest.fixture
def slow() -> Slow:
    return Slow()


def now() -> float:
    return asyncio.get_running_loop().time()


def cache_of(seconds: float = 10.0) -> ExpiringCache[str]:
    return ExpiringCache[str](seconds=seconds, monotonic=now)


@pytest.mark.promise("look-ups")
@in_virtual_time
async def test_concurrent_callers_share_one_fetch(slow: Slow) -> None:
    """Callers during a fetch get its result."""
    cache = cache_of()
    first = asyncio.create_task(cache.get("a", slow.fetch))
    await asyncio.sleep(SECONDS / 2)
    assert await cache.get("a", slow.fetch) == await first == "a 1"
    assert now() == SECONDS
    assert slow.begun == ["a"]


@pytest.mark.promise("look-ups")
@in_virtual_time
async def test_different_keys_are_fetched_concurrently_up_to_a_limit(slow: Slow) -> None:
    """Three rounds of fetches take as long as three fetches."""
    cache = cache_of()
    await asyncio.gather(*(cache.get(str(number), slow.fetch) for number in range(3 * AT_A_TIME)))
    assert slow.most_at_a_time == AT_A_TIME
    assert now() == 3 * SECONDS
    assert len(cache._flights) == 0


@pytest.mark.promise("look-ups")
@in_virtual_time
async def test_a_cancelled_caller_cancels_no_other(slow: Slow) -> None:
    """Including the first, which started it."""
    cache = cache_of()
    first, second = (asyncio.create_task(cache.get("a", slow.fetch)) for _ in range(2))
    await asyncio.sleep(SECONDS / 2)
    first.cancel()
    assert await second == "a 1"
    assert first.cancelled()
    assert (slow.begun, slow.cancelled) == (["a"], [])


@pytest.mark.promise("look-ups")
@in_virtual_time
async def test_a_fetch_without_waiters_is_cancelled(slow: Slow) -> None:
    """Nothing of it is left, and the next caller starts a new one, even at the same moment."""
    cache = cache_of()
    waiting = [asyncio.create_task(cache.get("a", slow.fetch)) for _ in range(2)]
    await asyncio.sleep(SECONDS / 2)
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)
    assert await cache.get("a", slow.fetch) == "a 2"
    assert (slow.begun, slow.cancelled, len(cache._flights)) == (["a", "a"], ["a"], 0)


@pytest.mark.promise("look-ups")
@in_virtual_time
async def test_a_failure_reaches_every_waiter_and_is_not_cached(slow: Slow) -> None:
    """The next caller fetches again; a failure that nobody waited for is not reported."""
    slow.fails = {"a"}
    cache = cache_of()
    told = await asyncio.gather(*(cache.get("a", slow.fetch) for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in told] == [LookupError] * 3
    assert slow.begun == ["a"]
    slow.fails = set()
    assert await cache.get("a", slow.fetch) == "a 2"


@pytest.mark.promise("look-ups")
@in_virtual_time
async def test_a_value_counts_from_the_start_of_its_fetch(slow: Slow) -> None:
    """A change during the fetch is seen as soon as one before it."""
    cache = cache_of(seconds=10.0)
    await cache.get("a", slow.fetch)
    await asyncio.sleep(10.0 - SECONDS)
    assert now() == 10.0
    assert await cache.get("a", slow.fetch) == "a 2"


@pytest.mark.promise("look-ups")
@pytest.mark.parametrize("count", [2_001, 2_500])
@in_virtual_time
async def test_at_most_two_thousand_values_are_cached(slow: Slow, count: int) -> None:
    """The oldest are evicted first, even if they were fetched concurrently."""
    cache = cache_of(seconds=1e6)
    await asyncio.gather(*(cache.get(str(number), slow.fetch) for number in range(count)))
    assert len(cache._kept) == 2_000
    await cache.get(str(count - 1), slow.fetch)
    assert len(slow.begun) == count
    await cache.get("0", slow.fetch)
    assert (len(slow.begun), len(cache._kept)) == (count + 1, 2_000)


def test_a_closing_terminal_ends_it_except_under_nohup() -> None:
    """`nohup` starts a program with SIGHUP ignored (POSIX)."""
    assert ending_signals() == (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert ending_signals() == (signal.SIGTERM, signal.SIGINT)
    finally:
        signal.signal(signal.SIGHUP, before)


class Running:
    """Records that it was stopped."""

    stopped = False

    async def stop(self) -> None:
        self.stopped = True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_every_signal_stops_the_process_alike(number: signal.Signals) -> None:
    running = Running()

    async def start() -> Running:
        asyncio.get_running_loop().call_soon(signal.raise_signal, number)
        return running

    before = {each: signal.getsignal(each) for each in ending_signals()}
    try:
        asyncio.run(run_until_signal(start))
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    assert running.stopped


ANA, BEN = ("U0ANA", "job/C1"), ("U0BEN", "job/C1")


def keeper_of(world: ListeningWorld) -> DraftKeeper:
    return DraftKeeper(world.service, world.app._recorder)


def saved(world: ListeningWorld) -> list[tuple[str, ...]]:
    return [call[1:] for call in world.service.calls if call[0] == "save_draft"]


async def test_text_typed_while_saving_is_saved_once_in_its_final_form() -> None:
    """Not letter by letter."""
    async with listening() as world:
        keeper, world.service.gate = keeper_of(world), asyncio.Event()
        keeper.keep(ANA, "F", view_id="V1")
        await world.service.reached.wait()
        for text in ("Fi", "Fix", "Fix it"):
            keeper.keep(ANA, text, view_id="V1")
        keeper.keep(BEN, "Other", view_id="V2")
        assert await keeper.text(ANA) == "Fix it"
        world.service.gate.set()
        await world.app.drain(5)
        assert await keeper.text(ANA) == "Fix it"
        assert sorted(saved(world)) == [
            ("U0ANA", "job/C1", "F"),
            ("U0ANA", "job/C1", "Fix it"),
            ("U0BEN", "job/C1", "Other"),
        ]


async def test_a_submitted_draft_is_deleted_even_if_typing_is_saved_later() -> None:
    """Another modal for the same place starts empty."""
    async with listening() as world:
        keeper = keeper_of(world)
        keeper.keep(ANA, "Fix i", view_id="V1")
        keeper.forget(ANA, view_id="V1")
        keeper.keep(ANA, "Fix it", view_id="V1")
        await world.app.drain(5)
        assert saved(world)[-1] == ("U0ANA", "job/C1", "")
        keeper.keep(ANA, "And now", view_id="V2")
        await world.app.drain(5)
        assert saved(world)[-1] == ("U0ANA", "job/C1", "And now")


async def test_a_draft_that_cannot_be_saved_is_logged_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    """The next one is tried again."""
    async with listening() as world:
        keeper, world.service.fault = keeper_of(world), StoreUnavailable("away")
        keeper.keep(ANA, "Between us", view_id="V1")
        await world.app.drain(5)
        world.service.fault = None
        keeper.keep(ANA, "Between us two", view_id="V1")
        await world.app.drain(5)
        assert saved(world) == [("U0ANA", "job/C1", "Between us two")]
    assert "StoreUnavailable" in caplog.text
    assert "Between us" not in caplog.text


def test_startup_objects_are_frozen_out_of_garbage_collection() -> None:
    """Garbage is collected before."""
    before, kept = gc.get_freeze_count(), [object()]
    freeze_startup_objects()
    assert gc.get_freeze_count() > before
    assert not any(kept is each for each in gc.get_objects())


def test_imports_are_not_looked_through_for_garbage() -> None:
    with lasting_imports():
        assert not gc.isenabled()
        kept = [object()]
    assert gc.isenabled()
    assert not any(kept is each for each in gc.get_objects())


MOST, SENDERS = 1_000, 10
SHARE = MOST // SENDERS


@given(
    st.lists(
        st.tuples(st.integers(0, SENDERS - 1), st.integers(1, 2 * MOST), st.sampled_from([0.0, 0.1, 30.0])), max_size=60
    )
)
def test_in_any_order_the_limit_holds_and_small_bodies_are_kept(sent: list[tuple[int, int, float]]) -> None:
    clock = FakeClock()
    held = PendingBytes[int](MOST, senders=SENDERS, monotonic=clock.monotonic)
    sizes: dict[int, int] = {}
    for sender, size, later in sent:
        clock.advance(later)
        sizes[sender] = sizes.get(sender, 0) + size
        for over in held.add(sender, size):
            assert sizes.pop(over) > SHARE
        assert held.total == sum(sizes.values()) <= MOST
