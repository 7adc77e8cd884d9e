import logging

import pytest
from support.fakes.ports import FakeClock

from bot.runtime.health.outages import EXPIRY_SECONDS, RECOVERY_SECONDS, Outage


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def outage(clock: FakeClock) -> Outage:
    return Outage("JobPoller", clock.monotonic)


def test_what_fails_and_works_by_turns_is_one_outage_and_two_lines(
    outage: Outage, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(112):
        outage.record_failure("disk full")
        clock.advance(1)
        outage.record_success()
        clock.advance(29)
    assert outage.seconds() == 111 * 30 + 1
    outage.record_success()
    clock.advance(RECOVERY_SECONDS)
    outage.record_success()
    assert outage.seconds() == 0
    assert [record.getMessage() for record in caplog.records] == [
        "JobPoller: not working, will keep trying: disk full",
        f"JobPoller: works again after {111 * 30 + 1} s",
    ]


def test_one_success_ends_nothing(outage: Outage, clock: FakeClock) -> None:
    outage.record_failure("disk full")
    outage.record_success()
    clock.advance(RECOVERY_SECONDS - 1)
    assert outage.seconds() > 0
    assert outage.reason == "disk full"
    clock.advance(1)
    assert outage.seconds() == 0


def test_going_well_again_adds_nothing_to_how_long_it_failed(outage: Outage, clock: FakeClock) -> None:
    """Or an outage of four minutes would count as one of over five after its end."""
    for _ in range(8):
        outage.record_failure("restarting")
        clock.advance(30)
    outage.record_success()
    clock.advance(RECOVERY_SECONDS - 1)
    assert outage.seconds() == 240
    outage.record_failure("restarting again")
    assert outage.seconds() == 240 + RECOVERY_SECONDS - 1


def test_the_next_outage_is_told_like_the_first(
    outage: Outage, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    outage.record_failure("first")
    clock.advance(EXPIRY_SECONDS + 1)
    assert outage.seconds() == 0
    outage.record_failure("second")
    assert outage.seconds() == 0
    clock.advance(10)
    assert outage.seconds() == 10
    assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.ERROR]


def test_a_success_while_all_is_well_is_nothing(outage: Outage, caplog: pytest.LogCaptureFixture) -> None:
    outage.record_success()
    assert outage.seconds() == 0
    assert not caplog.records
