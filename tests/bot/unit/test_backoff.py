import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.runtime.backoff import Backoff

SPREAD = Backoff(first=2.0, longest=60.0, spread=(0.75, 1.25))


@pytest.mark.parametrize(
    ("backoff", "delays"),
    [
        (Backoff(first=1.0, longest=30.0), [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]),
        (Backoff(first=2.0, longest=60.0), [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]),
        (Backoff(first=0.5, longest=5.0, factor=3.0), [0.5, 1.5, 4.5, 5.0]),
        (Backoff(first=9.0, longest=4.0), [4.0, 4.0]),
    ],
)
def test_delays_grow_up_to_the_maximum(backoff: Backoff, delays: list[float]) -> None:
    assert [backoff.delay(failures) for failures in range(1, len(delays) + 1)] == delays


@given(st.integers(0, 10**9), st.floats(0.0, 1.0))
def test_delays_stay_within_their_jitter(failures: int, jitter: float) -> None:
    steady = SPREAD.delay(failures)
    assert 0.75 * steady <= SPREAD.delay(failures, jitter=jitter) <= 1.25 * steady <= 75.0
    assert SPREAD.delay(failures, jitter=jitter) <= SPREAD.delay(failures + 1, jitter=jitter)
