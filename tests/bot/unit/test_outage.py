import logging

import pytest
from support.fakes.ports import FakeClock

from bot.runtime.health.outages import (
    EXPIRY_SECONDS,
    RECOVERY_SECONDS,
    SERVICE_RECOVERY_SECONDS,
    Outage,
    OutageLogs,
)


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


def test_one_success_is_enough_for_the_health_and_does_not_end_the_outage(outage: Outage, clock: FakeClock) -> None:
    for _ in range(4):
        outage.record_failure("disk full")
        clock.advance(100)
    assert not outage.status("job poller").ok()
    outage.record_success()
    assert outage.status("job poller").ok()
    assert outage.seconds() == 400
    clock.advance(RECOVERY_SECONDS - 1)
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
    clock.advance(EXPIRY_SECONDS)
    outage.end_if_over()
    assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.ERROR]
    outage.record_success()
    assert caplog.records[2].getMessage() == "JobPoller: works again after 130 s"
    outage.record_success()
    assert len(caplog.records) == 3


def test_outages_that_are_further_apart_than_the_recovery_are_two(clock: FakeClock) -> None:
    outage = Outage("Slack", clock.monotonic, recovery=SERVICE_RECOVERY_SECONDS)
    outage.record_failure("status_503")
    clock.advance(310)
    outage.record_success()
    clock.advance(30)
    outage.record_failure("status_503")
    clock.advance(10)
    assert outage.seconds() == 10


def test_an_outage_that_several_see_is_two_lines(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    """It begins with the first failure that anybody sees, and is over when it is over for all."""
    caplog.set_level(logging.INFO)
    logs = OutageLogs()
    outbox, preparer = (Outage(logs["Slack"], clock.monotonic, recovery=20.0) for _ in range(2))
    outbox.record_failure("status_503")
    clock.advance(100)
    preparer.record_failure("no answer in time")
    outbox.record_success()
    clock.advance(20)
    outbox.end_if_over()
    assert len(caplog.records) == 1
    clock.advance(60)
    preparer.record_success()
    clock.advance(20)
    preparer.end_if_over()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "Slack: not working, will keep trying: status_503"),
        ("INFO", "Slack: works again after 180 s"),
    ]


def test_a_success_while_all_is_well_is_nothing(outage: Outage, caplog: pytest.LogCaptureFixture) -> None:
    outage.record_success()
    assert outage.seconds() == 0
    assert not caplog.records
