"""Which lines of a page are new: only their faults are the change's."""

from collections import Counter


def new_lines(before: str | None, after: str) -> frozenset[int]:
    """Returns the numbers, from 1, of the lines whose text the page did not have before; linear in both texts."""
    known = Counter((before or "").splitlines())
    found = set()
    for number, line in enumerate(after.splitlines(), start=1):
        if known[line]:
            known[line] -= 1
        else:
            found.add(number)
    return frozenset(found)
