import logging

import pytest

from bot.runtime.health.report import ComponentStatus, Health


def test_a_momentary_failure_is_shown_and_keeps_the_bot_healthy() -> None:
    state = Health(
        lambda: [ComponentStatus("request sender"), ComponentStatus("outbox", 10.0, "no connection")]
    ).report()
    assert state["ok"] is True
    assert state["parts"] == {"request sender": "works", "outbox": "has not worked for 10 s: no connection"}


def test_vital_parts_decide_readiness_and_warnings_are_separate() -> None:
    parts = [
        ComponentStatus("recording", critical=True, grace_seconds=0.0),
        ComponentStatus("slack connection", 1.0, "lost", critical=True),
        ComponentStatus("watch"),
    ]
    words = ["", "the scope im:history is missing"]
    health = Health(lambda: parts, [lambda word=word: word for word in words])  # type: ignore[misc]  # mypy can't tell
    assert health.readiness() == {
        "ok": False,
        "parts": {"recording": "works", "slack connection": "has not worked for 1 s: lost"},
    }
    assert health.report()["ok"] is True
    assert health.report()["warnings"] == ["the scope im:history is missing"]
    parts[:2] = [
        ComponentStatus("recording", 1.0, "disk full", critical=True, grace_seconds=0.0),
        ComponentStatus("slack connection", critical=True),
    ]
    assert health.readiness()["ok"] is False
    assert health.report()["ok"] is False


def test_a_momentary_failure_is_not_logged_as_lasting(caplog: pytest.LogCaptureFixture) -> None:
    Health(lambda: [ComponentStatus("recording", 1.0, "disk full", critical=True, grace_seconds=0.0)]).log_changes()
    assert not caplog.records


def test_a_failure_of_five_minutes_and_its_recovery_are_logged_once_each(caplog: pytest.LogCaptureFixture) -> None:
    parts = [ComponentStatus("outbox", 300.0, "token_revoked")]
    health = Health(lambda: parts)
    with caplog.at_level(logging.WARNING):
        health.log_changes()
        health.log_changes()
    assert health.report()["ok"] is False
    assert [record.message for record in caplog.records] == ["outbox has not worked for 5 minutes: token_revoked"]
    parts[:] = [ComponentStatus("outbox")]
    health.log_changes()
    health.log_changes()
    assert [record.message for record in caplog.records][1:] == ["outbox works again"]
