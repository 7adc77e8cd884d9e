"""How a bounded amount of room is given out, so that one that is huge takes nothing from the others."""

from collections.abc import Sequence


def fair_shares(wanted: Sequence[int], *, each: int, total: int) -> list[int]:
    """Returns the room for each: the smallest come first, none gets more than `each`, all together at most `total`."""
    shares = [0] * len(wanted)
    for index in sorted(range(len(wanted)), key=wanted.__getitem__):
        shares[index] = min(wanted[index], each, total)
        total -= shares[index]
    return shares
