import pytest
from support.fakes.ports import FakeClock

from bot.errors import StoreUnavailable, UnreadableRow
from bot.runtime.health.outages import RECORDING_RECOVERY_SECONDS, WARNING_SECONDS, RecordingHealth


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def recording_health(clock: FakeClock) -> RecordingHealth:
    return RecordingHealth(clock.monotonic)


def test_one_failure_makes_it_unready_and_one_write_ready_again(
    recording_health: RecordingHealth, clock: FakeClock
) -> None:
    assert recording_health.status().ok()
    recording_health.missed(StoreUnavailable("The database's disk is full."))
    clock.advance(1)
    part = recording_health.status()
    assert (part.ok(), part.critical, part.failing_seconds, part.reason) == (
        False,
        True,
        1,
        "The database's disk is full.",
    )
    recording_health.record_success()
    assert recording_health.status().ok()
    clock.advance(RECORDING_RECOVERY_SECONDS - 1)
    assert recording_health.failing(), "the database is probed more often for a while"
    recording_health.missed(StoreUnavailable("The database's disk is full."))
    assert not recording_health.status().ok()
    recording_health.record_success()
    clock.advance(RECORDING_RECOVERY_SECONDS)
    assert not recording_health.failing()


@pytest.mark.parametrize("fault", [UnreadableRow("a damaged row"), KeyError("ours")])
def test_an_error_of_one_request_is_counted_and_is_no_outage(
    recording_health: RecordingHealth, fault: Exception
) -> None:
    recording_health.missed(fault)
    assert recording_health.status().ok()
    assert recording_health.warning().startswith("1 of Slack's requests could not be recorded")


def test_missed_deliveries_are_a_warning_for_an_hour(recording_health: RecordingHealth, clock: FakeClock) -> None:
    assert recording_health.warning() == ""
    for _ in range(3):
        recording_health.missed(StoreUnavailable("locked"))
        clock.advance(60)
    assert recording_health.warning().startswith(
        "3 of Slack's requests could not be recorded when they arrived, the last one 1 "
    )
    clock.advance(WARNING_SECONDS)
    assert recording_health.warning() == ""
    recording_health.missed(StoreUnavailable("locked"))
    assert recording_health.warning().startswith("1 of")
