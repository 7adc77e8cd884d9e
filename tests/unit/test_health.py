import logging

import pytest

from bot.health import Health, Part


def test_a_moments_trouble_is_shown_and_leaves_the_bot_healthy() -> None:
    state = Health(lambda: [Part("intake"), Part("outbox", 10.0, "no connection")]).state()
    assert state["ok"] is True
    assert state["parts"] == {"intake": "works", "outbox": "has not worked for 10 s: no connection"}


def test_five_minutes_of_trouble_are_logged_once_and_so_is_the_recovery(caplog: pytest.LogCaptureFixture) -> None:
    parts = [Part("outbox", 300.0, "token_revoked")]
    health = Health(lambda: parts)
    with caplog.at_level(logging.WARNING):
        health.look()
        health.look()
    assert health.state()["ok"] is False
    assert [record.message for record in caplog.records] == ["outbox has not worked for 5 minutes: token_revoked"]
    parts[:] = [Part("outbox")]
    health.look()
    health.look()
    assert [record.message for record in caplog.records][1:] == ["outbox works again"]
