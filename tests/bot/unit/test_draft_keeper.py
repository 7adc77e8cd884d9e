"""Drafts: the newest text is kept, in any order of typing, saving and submitting."""

import asyncio

import pytest
from support.worlds.listening_world import ListeningWorld, listening

from bot.errors import StoreUnavailable
from bot.slack.receiving.modals.draft_keeper import DraftKeeper, DraftKey

ANA, BEN = DraftKey("U0ANA", "job/C1"), DraftKey("U0BEN", "job/C1")


def keeper_of(world: ListeningWorld) -> DraftKeeper:
    return DraftKeeper(world.service, world.app._recorder)


def saved(world: ListeningWorld) -> list[tuple[str, ...]]:
    return [call[1:] for call in world.service.calls if call[0] == "save_draft"]


async def test_text_typed_while_saving_is_saved_once_in_its_final_form() -> None:
    """Not letter by letter."""
    async with listening() as world:
        keeper, world.service.gate = keeper_of(world), asyncio.Event()
        keeper.keep(ANA, "F", view_id="V1")
        await world.service.reached.wait()
        for text in ("Fi", "Fix", "Fix it"):
            keeper.keep(ANA, text, view_id="V1")
        keeper.keep(BEN, "Other", view_id="V2")
        assert await keeper.text(ANA) == "Fix it"
        world.service.gate.set()
        await world.app.drain(5)
        assert await keeper.text(ANA) == "Fix it"
        assert sorted(saved(world)) == [
            ("U0ANA", "job/C1", "F"),
            ("U0ANA", "job/C1", "Fix it"),
            ("U0BEN", "job/C1", "Other"),
        ]


async def test_a_submitted_draft_is_deleted_even_if_typing_is_saved_later() -> None:
    """Another modal for the same place starts empty."""
    async with listening() as world:
        keeper = keeper_of(world)
        keeper.keep(ANA, "Fix i", view_id="V1")
        keeper.forget(ANA, view_id="V1")
        keeper.keep(ANA, "Fix it", view_id="V1")
        await world.app.drain(5)
        assert saved(world)[-1] == ("U0ANA", "job/C1", "")
        keeper.keep(ANA, "And now", view_id="V2")
        await world.app.drain(5)
        assert saved(world)[-1] == ("U0ANA", "job/C1", "And now")


async def test_a_draft_that_cannot_be_saved_is_logged_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    """The next one is tried again."""
    async with listening() as world:
        keeper, world.service.fault = keeper_of(world), StoreUnavailable("away")
        keeper.keep(ANA, "Between us", view_id="V1")
        await world.app.drain(5)
        world.service.fault = None
        keeper.keep(ANA, "Between us two", view_id="V1")
        await world.app.drain(5)
        assert saved(world) == [("U0ANA", "job/C1", "Between us two")]
    assert "StoreUnavailable" in caplog.text
    assert "Between us" not in caplog.text
