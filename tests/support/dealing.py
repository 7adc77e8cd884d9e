"""Distributes the tests over the workers of pytest-xdist, each of which starts with an equal part of the list."""

from collections.abc import Callable, Sequence
from itertools import groupby

import pytest

SLOW = 0.1
"""Seconds. Files whose average test takes longer are distributed first."""


def deal(items: Sequence[pytest.Item], workers: int, seconds_of: Callable[[pytest.Item], float]) -> list[pytest.Item]:
    """Orders the tests so that each worker has its share of the slow files, the longest first. Half of the workers
    begin with those, the others with quick tests, so that tests that wait run beside tests that compute. Files with
    tests that use a browser go to one worker, because starting a browser takes longer than most of them.
    """

    def total(items: Sequence[pytest.Item]) -> float:
        return sum(map(seconds_of, items))

    files = _together([list(group) for _, group in groupby(items, key=lambda item: item.path)])
    slow = sorted((file for file in files if total(file) >= SLOW * len(file)), key=total, reverse=True)
    quick = [item for file in files if total(file) < SLOW * len(file) for item in file]
    hands: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for file in slow:
        min(hands, key=total).extend(file)
    for left, hand in zip(range(workers, 0, -1), hands, strict=True):
        size = (len(items) - sum(map(len, hands[: workers - left]))) // left
        missing = max(size - len(hand), 0)
        place = 0 if left % 2 else len(hand)
        hand[place:place] = quick[:missing]
        del quick[:missing]
    return [item for hand in hands for item in hand] + quick


def _together(files: Sequence[list[pytest.Item]]) -> list[list[pytest.Item]]:
    """Returns the files, those that use a browser as one."""
    browser, others = list[pytest.Item](), list[list[pytest.Item]]()
    for file in files:
        if any(item.get_closest_marker("browser") for item in file):
            browser += file
        else:
            others.append(file)
    return [browser, *others] if browser else others
