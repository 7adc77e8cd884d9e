"""Work on long texts, which would hold up everything else in the event loop for seconds."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LONG = 10_000
"""Characters. Masking secrets in the worst text of that length takes some 40 ms."""


async def beside_the_loop(characters: int, work: Callable[[], T]) -> T:
    """Runs pure work on texts of so many characters: in a thread where they are long."""
    return await asyncio.to_thread(work) if characters > LONG else work()
