"""Bytes sent by strangers are bounded in total; the one evicted has sent much, or for long,
and is never small and new.
"""

from hypothesis import given
from hypothesis import strategies as st
from support.fakes.ports import FakeClock

from bot.runtime.http.server import PendingBytes

MOST, SENDERS = 1_000, 10
SHARE = MOST // SENDERS


def pending(clock: FakeClock) -> PendingBytes[str]:
    return PendingBytes(MOST, senders=SENDERS, monotonic=clock.monotonic)


def test_the_largest_body_is_evicted() -> None:
    held = pending(FakeClock())
    assert held.add("large", 600) == []
    assert held.add("middling", 400) == []
    assert held.add("small", 1) == ["large"]
    assert held.total == 401


def test_a_small_body_is_kept_however_long_it_takes() -> None:
    clock = FakeClock()
    held = pending(clock)
    held.add("small", SHARE)
    clock.advance(60)
    assert held.add("large", 950) == ["large"]
    assert held.total == SHARE


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
