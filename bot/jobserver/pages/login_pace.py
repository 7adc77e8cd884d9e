"""How long a login waits: the longer, the more wrong keys came lately, from its network and in all.

Nobody is locked out, or whoever can send wrong keys could keep everybody away: each wait has an end. Right and wrong
keys wait alike, so the time that an answer takes tells nothing. What makes a key safe is its length; the pace keeps
guessing slow, and the log and the processor free.
"""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

LONGEST_S = 2.0
"""For any login, whatever others try meanwhile."""
FREE_OF_NETWORK, FREE_IN_ALL = 3.0, 100.0
"""Wrong keys that cost nobody any time."""
_FIRST_S = 0.1
_EACH_S = 0.02
_MOST_DOUBLINGS = 30.0
_HALF_LIFE = timedelta(minutes=1)
_MOST_NETWORKS = 10_000
_MOST_WAITING = 100
"""Each holds a connection, of which the server has 400."""


def pause(of_network: float, in_all: float) -> float:
    """Returns the seconds that a login waits after so many wrong keys."""
    doublings = min(max(0.0, of_network - FREE_OF_NETWORK), _MOST_DOUBLINGS)
    own = _FIRST_S * (math.pow(2.0, doublings) - 1.0)
    shared = _EACH_S * max(0.0, in_all - FREE_IN_ALL)
    return min(LONGEST_S, max(own, shared))


@dataclass(frozen=True)
class WrongKeys:
    """How many came lately, as of a time: what came before counts half after a minute, a quarter after two."""

    count: float
    at: datetime

    def as_of(self, now: datetime) -> float:
        return self.count * math.pow(0.5, max(timedelta(0), now - self.at) / _HALF_LIFE)

    def and_one_more(self, now: datetime) -> "WrongKeys":
        return WrongKeys(self.as_of(now) + 1.0, now)


class LoginPace:
    """Counts wrong keys. Of the networks it keeps the ten thousand that tried last; the others count in all."""

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        self._now = now
        self._networks: dict[str, WrongKeys] = {}
        self._all = WrongKeys(0.0, now())

    def pause(self, network: str) -> float:
        """Returns the seconds that a login from there waits."""
        now = self._now()
        own = self._networks.get(network)
        return pause(own.as_of(now) if own else 0.0, self._all.as_of(now))

    def record_wrong_key(self, network: str) -> None:
        now = self._now()
        before = self._networks.pop(network, WrongKeys(0.0, now))
        while len(self._networks) >= _MOST_NETWORKS:
            del self._networks[next(iter(self._networks))]
        self._networks[network] = before.and_one_more(now)
        self._all = self._all.and_one_more(now)


class WaitingRoom:
    """Holds logins back, `most` at a time: where there are more, the one that has waited longest waits no longer."""

    def __init__(self, *, most: int = _MOST_WAITING) -> None:
        self._most = most
        self._waiting: dict[asyncio.Event, None] = {}

    async def wait(self, seconds: float) -> None:
        if seconds <= 0:
            return
        if len(self._waiting) >= self._most:
            longest = next(iter(self._waiting))
            del self._waiting[longest]
            longest.set()
        called = asyncio.Event()
        self._waiting[called] = None
        try:
            async with asyncio.timeout(seconds):
                await called.wait()
        except TimeoutError:
            pass
        finally:
            self._waiting.pop(called, None)
