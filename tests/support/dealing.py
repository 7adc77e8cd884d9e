"""Deals the tests to the workers of pytest-xdist, of whom each begins with an equal part of their list."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SECONDS_EACH = {"chaos": 8.0, "e2e": 4.0, "fuzz": 6.0, "contract": 0.6}
"""What a test of these folders takes, more or less; the others are quick."""


def deal(items: Sequence[pytest.Item], workers: int) -> list[pytest.Item]:
    """Returns the same tests so ordered that each worker begins with its share of what takes long, a file at a time,
    the longest first: so the tests that wait run beside those that compute, and nobody is left with them at the end.
    """
    files = [list(group) for _, group in groupby(items, key=lambda item: item.path)]
    quick = [item for file in files if not _seconds(file) for item in file]
    hands: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for file in sorted(filter(_seconds, files), key=_seconds, reverse=True):
        min(hands, key=_seconds).extend(file)
    for left, hand in zip(range(workers, 0, -1), hands, strict=True):
        size = (len(items) - sum(map(len, hands[: workers - left]))) // left
        missing = max(size - len(hand), 0)
        hand.extend(quick[:missing])
        del quick[:missing]
    return [item for hand in hands for item in hand] + quick


def _seconds(items: Sequence[pytest.Item]) -> float:
    """An item's folder is its kind, or in a room's: `chaos/`, `bot/contract/`."""
    return sum(max(SECONDS_EACH.get(part, 0.0) for part in item.path.relative_to(TESTS).parts[:2]) for item in items)
