"""How much retention deletes at a time, and how long it pauses, on a database of a given speed."""

import pytest

from bot.scheduler.retention import LARGEST_BATCH, LONGEST_DELETION, SMALLEST_BATCH, next_batch, pause_after


def swept(rows: int, *, row: float, commit: float) -> tuple[float, float, int]:
    """Returns the seconds that it takes to delete so many rows, the part of them in which the database is busy, and
    the last batch's size.

    Args:
        rows: How many rows there are.
        row: Seconds that deleting one takes.
        commit: Seconds that a commit takes.
    """
    busy, paused, size, left = 0.0, 0.0, SMALLEST_BATCH, rows
    while left > 0:
        took = size * row + commit
        left -= size
        busy += took
        paused += pause_after(size, took)
        size = next_batch(size, size * row)
    return busy + paused, busy / (busy + paused), size


@pytest.mark.parametrize(
    ("row", "commit"), [(0.0001, 0.001), (0.0005, 0.001), (0.0005, 0.02), (0.001, 0.01), (0.0015, 0.001)]
)
def test_a_million_are_deleted_within_the_hour_and_half_the_time_is_left_to_others(row: float, commit: float) -> None:
    seconds, busy, size = swept(1_000_000, row=row, commit=commit)
    assert seconds < 3600
    assert busy <= 0.5
    assert size * row <= LONGEST_DELETION or size == SMALLEST_BATCH


def test_a_quick_database_is_left_to_others_for_four_fifths_of_the_time() -> None:
    seconds, busy, size = swept(1_000_000, row=0.00001, commit=0.001)
    assert size == LARGEST_BATCH
    assert busy == pytest.approx(0.2)
    assert seconds < 300


def test_a_slow_database_gets_small_batches_and_half_of_the_time() -> None:
    _, busy, size = swept(1_000, row=0.01, commit=0.05)
    assert size == SMALLEST_BATCH
    assert busy == pytest.approx(0.5)
