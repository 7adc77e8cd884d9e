import logging

import pytest
from support.fakes.ports import FakeClock

from bot.runtime.health.outages import (
    EXPIRY_SECONDS,
    RECOVERY_SECONDS,
    SERVICE_RECOVERY_SECONDS,
    Outage,
)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def outage(clock: FakeClock) -> Outage:
    return Outage("JobPoller", clock.monotonic)


def seconds(outage: Outage) -> float:
    return outage.status("").failing_seconds


def test_a_flapping_part_is_one_outage_with_two_log_lines(
    outage: Outage, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(112):
        outage.record_failure("disk full")
        clock.advance(1)
        outage.record_success()
        clock.advance(29)
    assert seconds(outage) == 111 * 30 + 1
    outage.record_success()
    clock.advance(RECOVERY_SECONDS)
    outage.record_success()
    assert seconds(outage) == 0
    assert [record.getMessage() for record in caplog.records] == [
        "JobPoller: not working, will keep trying: disk full",
        f"JobPoller: works again after {111 * 30 + 1} s",
    ]


def test_one_success_restores_the_health_without_ending_the_outage(outage: Outage, clock: FakeClock) -> None:
    for _ in range(4):
        clock.advance(100)
        outage.record_failure("disk full")
    clock.advance(10)
    assert not outage.status("job poller").ok()
    outage.record_success()
    assert outage.status("job poller").ok()
    clock.advance(RECOVERY_SECONDS - 1)
    assert (seconds(outage), outage.status("").reason) == (310, "disk full")
    clock.advance(1)
    assert seconds(outage) == 0


def test_recovery_time_does_not_count_as_failing(outage: Outage, clock: FakeClock) -> None:
    """Otherwise an outage of four minutes would count as one of over five after its end."""
    for _ in range(8):
        outage.record_failure("restarting")
        clock.advance(30)
    outage.record_success()
    clock.advance(RECOVERY_SECONDS - 1)
    assert seconds(outage) == 240
    outage.record_failure("restarting again")
    assert seconds(outage) == 240 + RECOVERY_SECONDS - 1


def test_the_next_outage_is_logged_like_the_first(
    outage: Outage, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    outage.record_failure("first")
    clock.advance(EXPIRY_SECONDS + 1)
    assert seconds(outage) == 0
    outage.record_failure("second")
    assert seconds(outage) == 0
    clock.advance(10)
    assert seconds(outage) == 10
    clock.advance(EXPIRY_SECONDS)
    outage.end_if_over()
    assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.ERROR]
    outage.record_success()
    assert caplog.records[2].getMessage() == "JobPoller: works again after 130 s"
    outage.record_success()
    assert len(caplog.records) == 3


def test_outages_further_apart_than_the_recovery_are_separate(clock: FakeClock) -> None:
    outage = Outage("Slack", clock.monotonic, recovery=SERVICE_RECOVERY_SECONDS)
    outage.record_failure("status_503")
    clock.advance(310)
    outage.record_success()
    clock.advance(30)
    outage.record_failure("status_503")
    clock.advance(10)
    assert seconds(outage) == 10


def test_an_outage_seen_by_several_workers_is_two_log_lines(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    """It begins with the first failure of any worker, and ends when it has ended for all."""
    caplog.set_level(logging.INFO)
    slack = Outage("Slack", clock.monotonic, recovery=20.0, levels=(logging.WARNING, logging.INFO))
    slack.record_failure("status_503", by="outbox")
    clock.advance(100)
    slack.record_failure("no answer in time", by="preparer")
    slack.record_success(by="outbox")
    clock.advance(1)
    assert slack.status("", by="outbox").ok(0.0)
    assert slack.status("").reason == "no answer in time"
    clock.advance(19)
    slack.end_if_over()
    assert len(caplog.records) == 1
    clock.advance(60)
    slack.record_success(by="preparer")
    clock.advance(20)
    slack.end_if_over()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "Slack: not working, will keep trying: status_503"),
        ("INFO", "Slack: works again after 180 s"),
    ]


def test_a_success_without_an_outage_logs_nothing(outage: Outage, caplog: pytest.LogCaptureFixture) -> None:
    outage.record_success()
    assert seconds(outage) == 0
    assert not caplog.records
