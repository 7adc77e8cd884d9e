"""Delays logins depending on recent wrong keys, from the same network and in total.

Each delay is short, since otherwise anybody could lock everybody out by sending wrong keys. Right and wrong keys wait
equally long, so the time reveals nothing. The length of a key keeps it safe; the delay slows down guessing and protects
the log and the processor.
"""

import asyncio
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address

from bot.jobserver.settings.pages import Network

LONGEST_S = 2.0
"""The longest delay of any login."""
FREE_OF_NETWORK, FREE_IN_ALL = 3.0, 100.0
"""How many wrong keys cause no delay."""
_FIRST_S = 0.1
_EACH_S = 0.02
_MOST_DOUBLINGS = 30.0
_HALF_LIFE = timedelta(minutes=1)
_MOST_NETWORKS = 10_000
_MOST_WAITING = 100
"""Each occupies one of the server's 400 connections."""
_MOST_HOPS = 10
_WITH_PORT = re.compile(r"\[([0-9A-Fa-f:.]{2,45})\](?::\d{1,5})?|(\d{1,3}(?:\.\d{1,3}){3}):\d{1,5}")
_LONGEST = 64
_NETWORK_BITS = 64


def pause(of_network: float, in_all: float) -> float:
    """Returns the delay of a login in seconds after this many wrong keys."""
    doublings = min(max(0.0, of_network - FREE_OF_NETWORK), _MOST_DOUBLINGS)
    own = _FIRST_S * (math.pow(2.0, doublings) - 1.0)
    shared = _EACH_S * max(0.0, in_all - FREE_IN_ALL)
    return min(LONGEST_S, max(own, shared))


@dataclass(frozen=True)
class WrongKeys:
    """A count of recent wrong keys as of a moment; it halves every minute."""

    count: float
    at: datetime

    def as_of(self, now: datetime) -> float:
        return self.count * math.pow(0.5, max(timedelta(0), now - self.at) / _HALF_LIFE)

    def and_one_more(self, now: datetime) -> "WrongKeys":
        return WrongKeys(self.as_of(now) + 1.0, now)


class LoginPace:
    """Counts wrong keys, in total and of the ten thousand networks that sent the latest ones."""

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        self._now = now
        self._networks: dict[str, WrongKeys] = {}
        self._all = WrongKeys(0.0, now())

    def pause(self, network: str) -> float:
        """Returns the delay of a login from a network, in seconds."""
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
    """Delays up to `most` logins at a time; if there are more, releases the one that has waited longest."""

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


def client_network(peer: str, forwarded_for: Sequence[str], trusted: Sequence[Network]) -> str:
    """Returns the client's address; for IPv6 its network, since a client can use all addresses in it.

    Proxies append their client to X-Forwarded-For. So it is read from the end, as long as each hop is a trusted proxy;
    forged entries are further to the left.
    """
    address = _parsed(peer)
    hops = ",".join(forwarded_for[-_MOST_HOPS:]).rsplit(",", _MOST_HOPS)[-_MOST_HOPS:]
    while address is not None and hops and any(address in network for network in trusted):
        before = _parsed(hops.pop())
        if before is None:
            break
        address = before
    return _network(address)


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    """Parses an address with or without a port; None if it is invalid."""
    text = text.strip()[:_LONGEST]
    found = _WITH_PORT.fullmatch(text)
    try:
        address = ip_address((found[1] or found[2]) if found else text)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _network(address: IPv4Address | IPv6Address | None) -> str:
    if isinstance(address, IPv6Address):
        return f"{IPv6Address(int(address) >> _NETWORK_BITS << _NETWORK_BITS)}/{_NETWORK_BITS}"
    return str(address) if address else ""
