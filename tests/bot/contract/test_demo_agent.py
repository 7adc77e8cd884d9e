"""The demo with an agent, with and without its key, and the examples that it offers as buttons."""

import asyncio
import shlex
import sys
from pathlib import Path

import pytest
from support.worlds.agent_world import PROGRAM
from support.worlds.hostile_world import needs_bubblewrap

from bot.cli.demo_agent import agent_offer, settings_with_agent
from bot.cli.demo_scenario import run_scenario
from bot.cli.demo_services import CHANNEL, Ports, running_demo
from bot.errors import CannotStart
from bot.jobserver.agents.named import NAMED
from bot.slack.rendering.blocks import SEND_EXAMPLES
from bot.workspace.model.entities import Message

KEY = "sk-planted-key-of-the-model"
EDITS = """
def turn(agent, text):
    page = Path("README.md").resolve()
    agent.call("1", "Edit README.md", locations=[{"path": str(page)}])
    assert agent.ask("1") == "allow_once"
    page.write_text("# Lumo\\n")
    agent.say(f"Shorter, in {Path.cwd()}.")
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with an installed agent, but without a key."""
    program = tmp_path / "claude-agent-acp"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in NAMED["claude"].passed:
        monkeypatch.delenv(name, raising=False)


def settings(tmp_path: Path, agent: str = "claude") -> str:
    made = settings_with_agent(agent, api_key="x" * 20, repository=str(tmp_path), data_directory=tmp_path / "data")
    assert (made.sandbox, made.egress, made.private_pages) == ("bubblewrap", (), False)
    return next(iter(made.reviewers.ever_held))


@pytest.mark.usefixtures("installed")
def test_without_a_key_the_demo_lists_the_keys_it_accepts(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="no key that the relay could use: set ANTHROPIC_API_KEY"):
        settings(tmp_path)
    with pytest.raises(CannotStart, match=r"there is no program codex-acp here; npm install .* installs it"):
        settings(tmp_path, "codex")


@pytest.mark.usefixtures("installed")
def test_the_demo_passes_on_a_model_key_and_nothing_that_opens_the_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    for name, value in {"EGRESS": "open", "SANDBOX": "none", "REPOSITORY": "https://x.example/r.git"}.items():
        monkeypatch.setenv(f"PAGEHAND_JOBSERVER_{name}", value)
    one, other = settings(tmp_path), settings(tmp_path)
    assert one != other, "each demo has a key of its own for merging"


def test_a_demo_without_an_agent_says_how_to_get_one() -> None:
    assert all(name in agent_offer() for name in NAMED)
    assert "pagehand demo --agent claude" in agent_offer()


async def test_the_demos_agent_handles_open_ended_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEHAND_JOBSERVER_ALLOW_ROOT", "true")
    await asyncio.to_thread(needs_bubblewrap)
    script, printed = tmp_path / "script.py", list[str]()
    script.write_text(EDITS)
    agent = shlex.join([sys.executable, str(PROGRAM), str(script)])
    async with running_demo(tmp_path / "demo", Ports(0, 0), agent) as demo:
        assert len(demo.merge_key) >= 16
        link = await run_scenario(demo, "Make the intro shorter", (), printed.append, limit=60)
    assert "/pulls/1" in link
    assert "Shorter, in /workspace/copy." in "\n".join(printed)


async def test_a_natural_prompt_in_the_demo_leads_on_by_a_button(tmp_path: Path) -> None:
    """Pressed twice, one is carried out once, and its person is told."""
    async with running_demo(tmp_path, Ports(0, 0)) as demo:
        ana, thread = demo.workspace.people["ana"], demo.workspace.channels.thread
        await ana.command(CHANNEL, "/docs", "Make the intro shorter")

        def offered() -> Message | None:
            channel = demo.workspace.channels.messages(CHANNEL)
            said = [message for card in channel for message in thread(CHANNEL, card.ts)]
            return next((message for message in said if SEND_EXAMPLES[0] in str(message.blocks)), None)

        await demo.workspace.changes.wait_for(offered, 30)
        message = offered()
        assert message is not None
        for _ in range(2):
            assert (await ana.press(CHANNEL, message.ts, SEND_EXAMPLES[0])).ok
        root = message.thread_ts or ""
        await demo.workspace.changes.wait_for(
            lambda: any("Replaced" in each.text for each in thread(CHANNEL, root)), 30
        )
        await demo.workspace.changes.wait_for(lambda: any("No need" in m.text for m in ana.ephemerals(CHANNEL)), 30)
        done = [each for each in thread(CHANNEL, root) if "Replaced" in each.text]
        assert len(done) == 1
