"""Model, mode and effort are chosen from an agent's own list, in each session, and checked before the first job."""

import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from support.worlds.agent_world import agent_world, scripted

from bot.jobserver.agents.choice import check_editor
from bot.jobserver.agents.connection import Wanted
from bot.jobserver.errors import EditError
from bot.jobserver.settings import JobServerSettings

LISTS = """
def select(category, current, *values):
    return {"id": f"the-{category}", "name": "X", "category": category, "type": "select", "currentValue": current,
            "options": [{"value": value, "name": value} for value in values]}

options = [select("mode", "auto", "auto", "default"), select("model", "opus", "opus", "haiku"),
           select("thought_level", "low", "low", "high")]

def turn(agent, text):
    agent.update("config_option_update", configOptions=options)
    agent.say("Done.")
"""
IGNORES = LISTS + "overrides = {'session/set_config_option': lambda *_: {'configOptions': options}}\n"
CHOSEN = [("the-model", "haiku"), ("the-thought_level", "high"), ("the-mode", "default")]


async def test_options_are_set_in_new_and_resumed_sessions(tmp_path: Path) -> None:
    """A restarted program may have forgotten them."""
    wanted = Wanted("haiku", "high", "default")
    world = agent_world(tmp_path, LISTS, wanted=wanted)
    for times in (1, 2):
        assert (await world.edit("go")).summary == "Done."
        told = world.received("session/set_config_option")
        assert [(one["configId"], one["value"]) for one in told] == CHOSEN * times
    assert world.progress.sessions == ["session-1"]
    assert "[model haiku, effort high, mode default]" in world.log


async def test_an_option_with_the_wanted_value_is_not_set_again(tmp_path: Path) -> None:
    world = agent_world(tmp_path, LISTS, wanted=Wanted("opus", "low", "auto"))
    await world.edit("go")
    assert world.received("session/set_config_option") == []


async def test_an_unlisted_value_fails_the_job_before_its_turn(tmp_path: Path) -> None:
    world = agent_world(tmp_path, LISTS, wanted=Wanted("sonet"))
    with pytest.raises(EditError, match="has no model “sonet”: set PAGEHAND_JOBSERVER_MODEL to one of opus, haiku"):
        await world.edit("go")
    assert world.received("session/prompt") == []


async def test_an_agent_that_stays_in_another_mode_gets_no_prompt(tmp_path: Path) -> None:
    """In that mode it may ask nobody."""
    world = agent_world(tmp_path, IGNORES, wanted=Wanted(mode="default"))
    with pytest.raises(EditError, match="did not accept the mode “default”"):
        await world.edit("go")
    assert world.received("session/prompt") == []


@pytest.mark.parametrize("answer", ["None", "{'configOptions': 'x'}", "[]"])
async def test_a_resumed_session_without_options_continues(tmp_path: Path, answer: str) -> None:
    script = f"{LISTS}\noverrides = {{'session/resume': lambda agent, params: agent._resume(params) and {answer}}}\n"
    world = agent_world(tmp_path, script, wanted=Wanted("haiku"))
    await world.edit("go")
    assert (await world.edit("go on")).summary == "Done."
    assert world.progress.sessions == ["session-1"]


async def findings(tmp_path: Path, **given: Any) -> list[tuple[str, bool | None, str]]:
    settings = JobServerSettings(
        repository=str(tmp_path), api_key="planted-key-of-sixteen", data_directory=tmp_path / "data", sandbox="none",
        egress="open", allow_root=True, agent=shlex.join(scripted(tmp_path, LISTS).command), **given,
    )  # fmt: skip
    return [(one.name, one.is_ok, one.message) async for one in check_editor(settings, os.environ)]


async def test_the_check_shows_the_chosen_options_and_the_alternatives(tmp_path: Path) -> None:
    found = await findings(tmp_path, model="haiku")
    assert [name for name, *_ in found] == ["installed", "sandbox", "starts", "options", "answers"]
    options = "model haiku (of opus, haiku); effort low (of low, high); mode auto (of auto, default)"
    assert found[3] == ("options", True, options)


@pytest.mark.parametrize(("given", "words"), [({"model": "sonet"}, "opus, haiku"), ({"effort": "much"}, "low, high")])
async def test_the_check_lists_values_for_a_wrong_one_and_calls_no_model(
    tmp_path: Path, given: dict[str, str], words: str
) -> None:
    found = await findings(tmp_path, **given)
    name, is_good, said = found[-1]
    assert (name, is_good) == ("options", False)
    assert said.endswith(f"to one of {words}")
