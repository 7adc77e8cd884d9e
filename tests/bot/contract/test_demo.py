"""The demo: what it starts and prints, with an agent, with and without its key."""

import asyncio
import shlex
import sys
from pathlib import Path

import pytest
from support.worlds.agent_world import PROGRAM
from support.worlds.hostile_world import needs_bubblewrap
from support.worlds.jobserver_world import git

from bot.cli.demo import TOUR, ThreadPrinter, Tour, TourStep, guide, is_done, run_scenario
from bot.cli.demo_services import CHANNEL, manifest, running_demo, settings_with_agent
from bot.errors import CannotStart
from bot.jobserver.agents.named import NAMED
from bot.notices.said import ButtonId
from bot.workspace.model.entities import Message
from bot.workspace.server import WorkspaceServer

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


@pytest.mark.full
async def test_the_demos_agent_handles_open_ended_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEHAND_JOBSERVER_ALLOW_ROOT", "true")
    await asyncio.to_thread(needs_bubblewrap)
    script, printed = tmp_path / "script.py", list[str]()
    script.write_text(EDITS)
    agent = shlex.join([sys.executable, str(PROGRAM), str(script)])
    async with running_demo(tmp_path / "demo", 0, agent) as demo:
        assert len(demo.merge_key) >= 16
        link = await run_scenario(demo, "Make the intro shorter", (), printed.append, limit=60)
    assert "/pulls/1" in link
    assert "Shorter, in /workspace/copy." in "\n".join(printed)


@pytest.mark.full
@pytest.mark.parametrize(
    ("asked", "link", "said"),
    [
        ('plan: Replace "colour" with "color"', "/pulls/1", "Added the page `docs/faq.md`"),
        ("ask: Where is the word colour used?", "only asked for an answer", "Pages read: README.md"),
    ],
)
async def test_a_plan_or_an_answer_is_shown_to_its_end(tmp_path: Path, asked: str, link: str, said: str) -> None:
    printed = list[str]()
    async with running_demo(tmp_path, 0) as demo:
        assert link in await run_scenario(demo, asked, (TOUR.follow_up,), printed.append, limit=60)
    assert said in "\n".join(printed)
    assert ("(Ana Silva presses Start)" in "\n".join(printed)) is asked.startswith("plan")


@pytest.mark.full
async def test_a_job_of_the_demo_leaves_time_to_stop_it(tmp_path: Path) -> None:
    async with running_demo(tmp_path, 0) as demo:
        ana, changes = demo.workspace.people["ana"], demo.workspace.changes
        await ana.command(CHANNEL, "/docs", TOUR.slow_task)

        def shows(words: str) -> list[Message]:
            return [message for message in demo.workspace.channels.messages(CHANNEL) if words in message.text]

        (card,) = await changes.wait_for(lambda: shows("in which you can press Stop"), 30)
        assert (await ana.press(CHANNEL, card.ts, ButtonId.STOP_JOB)).ok
        await changes.wait_for(lambda: shows("Stopped by"), 30)
        assert is_done(demo.workspace, TourStep.STOP)
        assert not git(demo.repository, "branch", "--list", "pagehand/*")


async def test_the_printed_thread_hides_misleading_characters() -> None:
    workspace, printed = WorkspaceServer(manifest()), list[str]()
    await workspace.start()
    try:
        ts = (await workspace.people["ana"].say(CHANNEL, "see \u202egnp.exe\u202c @ben \u200bthere")).ts
        ThreadPrinter(workspace, printed.append).print(ts)
    finally:
        await workspace.stop()
    (line,) = printed
    assert line.endswith(": see gnp.exe @Ben Okafor there")


async def test_the_next_step_is_printed_after_the_previous_is_done() -> None:
    """One that was done out of turn is not proposed again."""
    workspace, printed = WorkspaceServer(manifest()), list[str]()
    await workspace.start()
    guiding = asyncio.create_task(guide(workspace, Tour("Do it", "More", "Rest"), printed.append))
    try:
        ana = workspace.people["ana"]
        await asyncio.sleep(0)
        assert printed == ["Next: In #docs, type /docs Do it, or press Try it."]
        await ana.say(CHANNEL, "no step at all")
        card = workspace.state.post(_notice(workspace, "t1/card"))
        await workspace.changes.wait_for(lambda: len(printed) == 2)
        await ana.say(CHANNEL, "More", thread_ts=card.ts)
        workspace.state.post(_notice(workspace, "t1/r0/completed", card.ts))
        await workspace.changes.wait_for(lambda: len(printed) == 3)
        workspace.state.post(_notice(workspace, "t1/pull_request/0f/failed/0f", card.ts))
        workspace.state.post(_notice(workspace, "t1/pull_request/0f/changes/0f", card.ts))
        await workspace.changes.wait_for(lambda: len(printed) == 4)
        workspace.state.post(_notice(workspace, "t1/pull_request/0f/merged", card.ts))
        await workspace.changes.wait_for(lambda: len(printed) == 5)
        workspace.state.post(_notice(workspace, "t2/r0/stopped"))
        await workspace.changes.wait_for(lambda: len(printed) == 6)
        assert printed[1:] == [
            f"Next: {TourStep.SEE_THE_END.value}",
            f"Next: {TourStep.REVIEW.value}",
            f"Next: {TourStep.MERGE.value}",
            "Next: Stop a job: type /docs Rest in #docs, and press Stop on its card.",
            f"Next: {TourStep.MENTION.value}",
        ]
    finally:
        guiding.cancel()
        await workspace.stop()


def _notice(workspace: WorkspaceServer, key: str, thread_ts: str | None = None) -> Message:
    metadata = {"event_type": "pagehand_notice", "event_payload": {"key": key}}
    return Message(
        workspace.channels[CHANNEL].id,
        workspace.state.timestamps.next(),
        workspace.app.bot_user_id,
        "a notice",
        thread_ts=thread_ts,
        metadata=metadata,
    )
