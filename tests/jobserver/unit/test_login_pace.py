"""How long logins wait while somebody tries keys, and what an address is."""

import asyncio
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.jobserver.pages.login_pace import FREE_IN_ALL, LONGEST_S, LoginPace, WaitingRoom, client_network, pause

COUNTS = st.floats(min_value=0, max_value=1e9)
PROXIES = (ip_network("127.0.0.1"), ip_network("10.0.0.0/8"), ip_network("2001:db8:ffff::/48"))


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@given(COUNTS, COUNTS, COUNTS)
def test_wrong_keys_slow_logins_within_bounds(one: float, more: float, other: float) -> None:
    """Whatever is tried, the right key gets in within two seconds."""
    assert 0 <= pause(one, other) <= pause(one + more, other) <= LONGEST_S
    assert pause(other, one) <= pause(other, one + more) <= LONGEST_S


def test_a_mistyped_key_causes_no_wait() -> None:
    assert [pause(count, count) for count in range(4)] == [0.0] * 4


def test_each_wrong_key_of_a_network_lengthens_its_wait() -> None:
    clock = Clock()
    pace = LoginPace(now=clock)
    waits = []
    for n in range(12):
        waits.append(pace.pause("192.0.2.1"))
        assert pace.pause(f"198.51.100.{n}") == 0.0, "others do not wait for it"
        pace.record_wrong_key("192.0.2.1")
    assert waits == pytest.approx([0, 0, 0, 0, 0.1, 0.3, 0.7, 1.5, 2, 2, 2, 2])
    clock.now += timedelta(minutes=4)
    assert pace.pause("192.0.2.1") == 0.0, "and it is forgotten"
    clock.now -= timedelta(days=1)
    assert pace.pause("192.0.2.1") == LONGEST_S, "a clock that is set back locks nobody out"


def test_too_many_addresses_slow_all_logins_in_bounded_memory() -> None:
    clock = Clock()
    pace = LoginPace(now=clock)
    for n in range(50_000):
        pace.record_wrong_key(f"{n}")
    assert pace.pause("192.0.2.1") == LONGEST_S
    assert len(pace._networks) == 10_000
    clock.now += timedelta(minutes=15)
    assert pace.pause("192.0.2.1") == 0.0


def test_keys_from_many_networks_slow_all_logins_gradually() -> None:
    pace = LoginPace(now=Clock())
    for n in range(int(FREE_IN_ALL) + 50):
        pace.record_wrong_key(f"{n}")
    assert pace.pause("192.0.2.1") == pytest.approx(1.0)


async def test_a_full_waiting_room_releases_the_longest_waiting_at_once() -> None:
    """So however many wait, the next one is admitted, and none waits longer than before."""
    room = WaitingRoom(most=3)
    tasks = [asyncio.create_task(room.wait(3600)) for _ in range(5)]
    done, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.sleep(0)
    assert {task for task in tasks if task.done()} == set(tasks[:2])
    for task in waiting - done:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert not room._waiting


async def test_waiters_leave_on_time_and_others_do_not_wait() -> None:
    room = WaitingRoom(most=1)
    await room.wait(0)
    await room.wait(0.001)


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "network"),
    [
        ("192.0.2.1", (), "192.0.2.1"),
        ("192.0.2.1", ("203.0.113.9",), "192.0.2.1"),  # a stranger sets the header
        ("127.0.0.1", ("203.0.113.9",), "203.0.113.9"),
        ("127.0.0.1", ("198.51.100.7, 203.0.113.9",), "203.0.113.9"),  # the first was sent along
        ("127.0.0.1", ("198.51.100.7", "203.0.113.9, 10.1.2.3"), "203.0.113.9"),
        ("127.0.0.1", ("203.0.113.9:4711",), "203.0.113.9"),
        ("127.0.0.1", ("[2001:db8:1:2:3::4]:4711",), "2001:db8:1:2::/64"),
        ("127.0.0.1", ("2001:db8:1:2:3::4",), "2001:db8:1:2::/64"),
        ("127.0.0.1", ("203.0.113.9, unknown",), "127.0.0.1"),
        ("127.0.0.1", ("",), "127.0.0.1"),
        ("127.0.0.1", (",".join(["10.0.0.1"] * 5000),), "10.0.0.1"),
        ("127.0.0.1", ("203.0.113.9" + ",10.0.0.1" * 20,), "10.0.0.1"),  # more than ten hops are not followed
        ("::ffff:127.0.0.1", ("::ffff:203.0.113.9",), "203.0.113.9"),
        ("2001:db8:ffff::1", ("203.0.113.9",), "203.0.113.9"),
        ("2001:db8::1", ("203.0.113.9",), "2001:db8::/64"),
        ("fe80::1%eth0", (), "fe80::/64"),
        ("", ("203.0.113.9",), ""),
        ("127.0.0.1", ("9" * 8000,), "127.0.0.1"),
    ],
)
def test_only_trusted_proxies_define_the_address(peer: str, forwarded_for: tuple[str, ...], network: str) -> None:
    assert client_network(peer, forwarded_for, PROXIES) == network


def test_without_the_setting_no_header_counts() -> None:
    assert client_network("127.0.0.1", ("203.0.113.9",), ()) == "127.0.0.1"


@given(st.text(), st.lists(st.text(max_size=200), max_size=20))
def test_any_header_gets_a_short_answer(peer: str, headers: list[str]) -> None:
    assert len(client_network("127.0.0.1", headers, PROXIES)) < 50
    assert len(client_network(peer, headers, PROXIES)) < 50
