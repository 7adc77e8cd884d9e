"""What whoever watches over the bot sees of an outage: the health over HTTP, and the log."""

import json
import logging
from typing import Any

import aiohttp
import pytest
from chaos.faults.world import World
from ledger import refusing
from ports import free_port

from bot import health

pytestmark = pytest.mark.chaos


async def test_an_outage_is_in_the_health_and_in_the_log_till_it_ends(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(health, "TOO_LONG", 0.5)
    monkeypatch.setattr(health, "LOOK_EVERY", 0.05)
    caplog.set_level(logging.INFO)
    port = free_port()
    await world.start(PAGEHAND_HEALTH_PORT=str(port))
    (job,) = await world.begin("Running")
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        assert await _ask(session) == (200, True, _all_well())

        world.ledger.fail(refusing(503), times=None)
        await world.until_true(lambda: _is(session, 503))
        status, ok, parts = await _ask(session)
        assert (status, ok) == (503, False)
        assert parts["watch"].startswith("has not worked for ")
        assert parts["watch"].endswith(" s: The job API failed (503).")
        assert {**parts, "watch": "works"} == _all_well()
        await world.until_true(lambda: _logged(caplog, "ERROR", "watch has not worked for"))

        world.ledger.heal()
        await world.hurry()
        await world.until_true(lambda: _is(session, 200))
        await world.until_true(lambda: _logged(caplog, "WARNING", "watch works again"))
        assert await _ask(session) == (200, True, _all_well())
    world.complete(job)
    await world.hurry()
    await world.until_said("Running", "started", "completed")
    assert [record.levelname for record in _of_health(caplog)] == ["ERROR", "WARNING"]
    await world.settled()
    await world.check()


def _all_well() -> dict[str, str]:
    return dict.fromkeys(("intake", "watch", "outbox", "slack connection"), "works")


async def _ask(session: aiohttp.ClientSession) -> tuple[int, bool, dict[str, Any]]:
    async with session.get("/health") as answer:
        told = json.loads(await answer.text())
        return answer.status, told["ok"], told["parts"]


async def _is(session: aiohttp.ClientSession, status: int) -> bool:
    return (await _ask(session))[0] == status


async def _logged(caplog: pytest.LogCaptureFixture, level: str, words: str) -> bool:
    return any(record.levelname == level and words in record.getMessage() for record in _of_health(caplog))


def _of_health(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """What the health has logged of trouble."""
    return [record for record in caplog.records if record.name == health.__name__ and record.levelno > logging.INFO]
