"""Coding agents from their registry, driven by the agent editor; only their model is the tests' own.

They run in bubblewrap where it works, without a network, and reach their model through the relay. A test is skipped
with a reason if its program cannot be installed.
"""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from pydantic import SecretStr
from support.agents.real_agents import EXAMPLE_AGENTS, KEY, REAL_AGENTS, tried
from support.servers.model_script import BreakOff, Hang, Refuse, RunCommand, Say, Speaker, Step, ToolCall, WriteFile
from support.worlds.hostile_world import needs_bubblewrap
from support.worlds.real_agent_world import PAGE, RealAgentWorld, path_with, real_agent_world

from bot.jobapi.models import Mode, ProposedPage
from bot.jobserver.agents.choice import agent_editor
from bot.jobserver.agents.connection import Started
from bot.jobserver.editors.interface import EditResult, EditTask
from bot.jobserver.egress.proxy import Egress
from bot.jobserver.errors import EditError, JobServerError
from bot.jobserver.sandbox.choice import NoSandbox, open_sandbox
from bot.jobserver.sandbox.interface import Sandbox, Workspace
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.settings.sandbox import SandboxSettings

pytestmark = pytest.mark.promise("real agents")

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""An image of one pixel."""
AMERICAN = "# Colors\n\nA color.\n"
SHORTER = "# Colors\n"
STOPS_WITHIN_S = 5.0
_QUESTION = {"question": "Which spelling?", "header": "Spelling", "options": [
    {"label": "American", "description": "color"}, {"label": "British", "description": "colour"},
]}  # fmt: skip
QUESTIONS = {
    "claude": ToolCall("AskUserQuestion", {"questions": [{**_QUESTION, "multiSelect": False}]}),
    "codex": ToolCall("request_user_input", {"questions": [{**_QUESTION, "id": "spelling"}]}),
}
TELL_THEIR_FOLDERS = {"claude": "Additional working directories:\n  - {}\n", "codex": "<root>{}</root>"}
"""For their model, if they accept more than one."""


@pytest.fixture
async def sandbox(tmp_path: Path) -> Sandbox:
    try:
        return await open_sandbox(SandboxSettings(egress=(), allow_root=True), tmp_path / "data")
    except JobServerError:
        return NoSandbox()


@pytest.fixture
async def world(name: str, sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[RealAgentWorld]:
    async with real_agent_world(REAL_AGENTS[name], sandbox, tmp_path) as world:
        yield world
        await nothing_runs(world)
        assert isinstance(sandbox, NoSandbox) or not await asyncio.to_thread(world.files_holding, KEY)


async def nothing_runs(world: RealAgentWorld) -> None:
    """A killed process may be visible for a moment."""
    async with asyncio.timeout(STOPS_WITHIN_S):
        while world.running():  # noqa: ASYNC110 (other processes tell nobody that they ended)
            await asyncio.sleep(0.01)


async def stopped(world: RealAgentWorld, editing: asyncio.Task[object]) -> None:
    """Cancels an edit, and waits until all of it has ended."""
    async with asyncio.timeout(STOPS_WITHIN_S):
        editing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await editing
        await nothing_runs(world)


@tried()
async def test_an_edit_and_a_follow_up_that_remembers_it(name: str, world: RealAgentWorld) -> None:
    world.model.script.on("Make it American", WriteFile(world.path(PAGE), AMERICAN), Say("I made **it** American."))
    world.model.script.on("Make that shorter", WriteFile(world.path(PAGE), SHORTER), Say("Only the title is left."))

    first = await world.edit("Make it American")
    assert world.page.read_text(encoding="utf-8") == AMERICAN
    assert first.summary == "I made **it** American."
    assert first.question == first.reason == ""
    assert world.progress.activities
    assert world.progress.total.sent > 0 < world.progress.total.answered  # of the relay's counting
    assert {request.key for request in world.model.requests} == {KEY}
    assert not any(request.holds(first.summary) for request in world.model.requests), "nobody asked for the rest"
    if effort := REAL_AGENTS[name].effort:
        assert {request.effort for request in world.model.requests} == {effort}

    before = len(world.model.requests)
    world.restart()
    second = await world.edit("Make that shorter")
    assert world.page.read_text(encoding="utf-8") == SHORTER
    assert second.summary == "Only the title is left."
    asked = world.model.requests[before]
    assert asked.effort == world.model.requests[0].effort
    assert asked.holds("Make it American")
    assert asked.holds(first.summary)
    # Reported by the agent from its own session as the model's message, not quoted by the editor.
    assert any(part.speaker is Speaker.MODEL and first.summary in part.text for part in asked.parts)
    assert len(world.progress.sessions) == 1


@pytest.mark.full
@tried()
async def test_an_agent_works_with_the_model_that_it_chooses(name: str, sandbox: Sandbox, tmp_path: Path) -> None:
    """Its newest one, with whatever is new in its requests."""
    async with real_agent_world(REAL_AGENTS[name], sandbox, tmp_path, model=None, effort=None) as world:
        world.model.script.on("Make it American", WriteFile(world.path(PAGE), AMERICAN), Say("It is American."))
        result = await world.edit("Make it American")
        assert world.page.read_text(encoding="utf-8") == AMERICAN
        assert "It is American." in result.summary


@pytest.mark.full
@tried()
async def test_an_attached_image_is_copied_into_the_docs(name: str, world: RealAgentWorld) -> None:
    """The agent is told its path; a plain copy is allowed when the agent asks."""
    file, target = world.attached("point.png", PNG, "image/png"), world.path("point.png")
    world.model.script.on("Add it", RunCommand(f"cp {world.attachment('point.png')} {target}"), Say("It is there."))
    result = await world.edit("Add it", [file])
    assert result.summary == "It is there."
    assert (world.workspace.copy / "point.png").read_bytes() == PNG
    assert any(request.holds(world.attachment("point.png")) for request in world.model.requests)
    if name in TELL_THEIR_FOLDERS:
        folder = TELL_THEIR_FOLDERS[name].format(Path(world.attachment("point.png")).parent)
        assert any(request.holds(folder) for request in world.model.requests)


@pytest.mark.full
@tried(*QUESTIONS)
async def test_an_agents_multiple_choice_question_is_answered_while_it_works(name: str, world: RealAgentWorld) -> None:
    """With its own tool; free text, and no answer, are passed to its model, too."""
    world.model.script.on("Fix the spelling", QUESTIONS[name], Say("I know now. Anything else?"))
    for reply in ("American", "Canadian, please", ""):
        world.progress.reply = reply
        before = len(world.model.requests)
        result = await world.edit("Fix the spelling")
        question = world.progress.questions[-1]
        assert "Which spelling?" in question.text
        assert [option.label for option in question.fields[0].options] == ["American", "British"]
        assert question.fields[0].own_words
        told = world.model.requests[before + 1]
        assert told.holds(reply or QUESTIONS[name].name)
        assert result.question == ("" if reply else question.text)
        assert result.question_fields == (() if reply else question.fields)


PLAN = f"I would write *color*.\n\n- {PAGE}: it says colour"
PLANS: dict[str, Step] = {"claude": ToolCall("ExitPlanMode", {"plan": PLAN}), "codex": Say(PLAN)}
"""Claude leaves its plan mode with it, Codex has its own read-only mode only where its own sandbox can start."""


@pytest.mark.full
@tried()
async def test_a_plan_changes_nothing_and_its_session_carries_it_out(name: str, world: RealAgentWorld) -> None:
    """Also if it was interrupted, and by a new process each time. What is interrupted before Claude has written its
    first session to the disk is planned in another one.
    """
    await asyncio.to_thread(needs_bubblewrap)
    before, script = world.page.read_text(encoding="utf-8"), world.model.script
    script.on("Plan it", Hang())
    editing = asyncio.create_task(world.edit("Plan it", mode=Mode.PLAN))
    await world.model.until_hanging()
    await stopped(world, editing)
    world.restart()

    script.on("Plan it", RunCommand(f"echo x > {PAGE}"), WriteFile(world.path(PAGE), AMERICAN), PLANS[name])
    planned = await world.edit("Plan it", mode=Mode.PLAN)
    assert (planned.proposal, planned.reason) == (PLAN, "")
    assert planned.proposed_pages == (ProposedPage(path=PAGE, reason="it says colour"),)
    assert world.page.read_text(encoding="utf-8") == before
    sessions = list(world.progress.sessions)

    world.restart()
    script.on("Do it", WriteFile(world.path(PAGE), AMERICAN), Say("It is American."))
    done = await world.edit("Do it")
    assert world.page.read_text(encoding="utf-8") == AMERICAN
    assert (done.summary, done.proposal) == ("It is American.", "")
    assert world.progress.sessions == sessions
    assert any(
        part.speaker is Speaker.MODEL and "it says colour" in part.text for part in world.model.requests[-1].parts
    )


READS: dict[str, Callable[[str], Step]] = {
    "claude": lambda path: ToolCall("Read", {"file_path": path}),
    "codex": lambda path: RunCommand(f"cat {path}"),
}


@pytest.mark.full
@tried()
async def test_an_answer_changes_nothing_and_tells_what_was_read(name: str, world: RealAgentWorld) -> None:
    await asyncio.to_thread(needs_bubblewrap)
    before, path = world.page.read_text(encoding="utf-8"), world.path(PAGE)
    world.model.script.on("Which one", READS[name](path), WriteFile(path, AMERICAN), Say("The British one."))
    answered = await world.edit("Which one is it?", mode=Mode.ASK)
    assert answered == EditResult("The British one.", pages_read=(PAGE,))
    assert world.page.read_text(encoding="utf-8") == before


@pytest.mark.full
@pytest.mark.parametrize(("name", "model", "then"), [("claude", "sonnet", ""), ("codex", "gpt-5.6-sol", "gpt-5.6-sol")])
async def test_an_instructions_model_and_effort_are_for_its_run(
    name: str, model: str, then: str, sandbox: Sandbox, tmp_path: Path
) -> None:
    """For another model, Codex has the one before sum up the session, by an API that only OpenAI has."""
    async with real_agent_world(REAL_AGENTS[name], sandbox, tmp_path, models=(model,)) as world:
        world.model.script.on("Go on", Say("Done."))
        assert (await world.edit("Go on", model=model, effort="low")).summary == "Done."
        assert {request.effort for request in world.model.requests} == {"low"}
        world.restart()
        assert (await world.edit("Go on", model=then)).summary == "Done."
        assert world.model.requests[-1].effort == REAL_AGENTS[name].effort


@pytest.mark.full
@tried()
async def test_a_cancelled_turn_ends_in_time_and_leaves_nothing_running(world: RealAgentWorld) -> None:
    world.model.script.on("Think about it", Hang())
    editing = asyncio.create_task(world.edit("Think about it"))
    await world.model.until_hanging()
    assert world.running()
    await stopped(world, editing)


@pytest.mark.full
@tried()
async def test_a_key_the_model_rejects_fails_with_that_reason(name: str, world: RealAgentWorld) -> None:
    world.model.script.on("Make it American", Refuse(401, "this key is not known here"))
    with pytest.raises(EditError) as failed:
        await world.edit("Make it American")
    reason = str(failed.value)
    assert name in reason
    assert "key is not valid" in reason
    assert "set " in reason, "it says what to do"
    assert KEY not in reason
    assert KEY not in world.log.read_text(encoding="utf-8")


@pytest.mark.full
@tried("codex")
async def test_a_failed_turn_is_a_failure_even_if_the_agent_calls_it_done(name: str, world: RealAgentWorld) -> None:
    """Codex has its own wording, and tries again for 20 s first."""
    world.model.script.on("Make it American", Refuse(500, "the model is out of order"))
    with pytest.raises(EditError, match="high demand"):
        await world.edit("Make it American")
    assert "[end_turn]" in world.log.read_text(encoding="utf-8")


BROKEN = {
    "claude": "Internal error: API Error: Connection to the API was lost",
    "codex": "stream disconnected before completion",
}
"""In the agent's own words, after its own retries."""


@pytest.mark.full
@tried()
async def test_a_turn_whose_model_broke_off_is_a_failure(name: str, world: RealAgentWorld) -> None:
    """What it did before is still there."""
    world.model.script.on("Make it American", WriteFile(world.path(PAGE), AMERICAN), BreakOff())
    with pytest.raises(EditError, match=f"{name} failed: {BROKEN[name]}"):
        await world.edit("Make it American")
    assert world.page.read_text(encoding="utf-8") == AMERICAN


@pytest.mark.full
@tried("claude", default=("claude",))
async def test_nothing_outside_the_copy_is_written_and_no_shell_is_run(world: RealAgentWorld, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    steps = WriteFile(str(outside), "x\n"), RunCommand(f"echo x > {outside}"), Say("I was not allowed to.")
    world.model.script.on("Write it elsewhere", *steps)
    result = await world.edit("Write it elsewhere")
    assert not outside.exists()
    assert world.model.requests
    assert result.reason.startswith("It wanted to do what is not allowed here")


@pytest.mark.full
@tried("codex")
async def test_a_shell_in_the_sandbox_reads_the_copy_and_writes_nowhere_else(
    world: RealAgentWorld, tmp_path: Path
) -> None:
    """Codex asks for nothing there: it reads files only by its shell, and its own sandbox cannot start in ours."""
    await asyncio.to_thread(needs_bubblewrap)
    outside = tmp_path / "outside.md"
    steps = RunCommand(f"cat {PAGE}"), RunCommand(f"echo x > {outside}"), WriteFile(str(outside), "x\n"), Say("Read.")
    world.model.script.on("Read the page", *steps)
    assert (await world.edit("Read the page")).summary == "Read."
    results = [part.text for part in world.model.requests[-1].parts if part.speaker is Speaker.TOOL]
    assert "A colour." in results[0]
    assert len(results) == 3
    assert not outside.exists()


@pytest.mark.full
@tried("codex")
async def test_a_command_that_runs_on_ends_with_its_turn(world: RealAgentWorld) -> None:
    world.model.script.on("Watch the page", RunCommand(f"tail -f {PAGE}"), Say("I watched it."))
    editing = asyncio.create_task(world.edit("Watch the page"))
    async with asyncio.timeout(60):
        while not any(line.startswith("tail -f") for line in world.running()):
            assert not editing.done()
            await asyncio.sleep(0.02)
    await stopped(world, editing)


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "model", "wrong"),
    [("claude", "haiku", "haikku"), ("codex", "gpt-5.5", "gpt-5,5")],
)
async def test_a_model_comes_from_the_programs_list_and_a_wrong_one_shows_it(
    name: str, model: str, wrong: str, sandbox: Sandbox, tmp_path: Path
) -> None:
    """At its maker's own address, which is not called before a turn."""
    key = {"claude": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY"}[name]
    await asyncio.to_thread(needs_bubblewrap)
    environment = {"PATH": path_with(REAL_AGENTS[name].agent), key: KEY}
    told = [await started(sandbox, environment, tmp_path / asked, name, asked) for asked in (model, wrong)]
    assert f"model {model} (of " in told[0].options
    assert told[0].refusal == told[1].options == ""
    assert told[1].refusal.startswith(f"{name} has no model “{wrong}”: it has ")
    assert model in told[1].refusal


async def started(sandbox: Sandbox, environment: dict[str, str], folder: Path, agent: str, model: str) -> Started:
    workspace = Workspace(folder / "copy", folder / "home")
    for directory in (workspace.copy, workspace.home):
        directory.mkdir(parents=True)
    settings = JobServerSettings(
        repository=str(folder), api_key=SecretStr("planted-key-of-the-job-server"), agent=(agent,), model=model,
        pass_environment=("PATH",), egress=(),
    )  # fmt: skip
    log = folder / "log"
    return await agent_editor(settings, sandbox, environment, Egress()).started(EditTask("", workspace, log))


@pytest.mark.full
@pytest.mark.parametrize("name", EXAMPLE_AGENTS)
async def test_an_agent_works_with_the_documented_settings_and_without_the_key(
    name: str, sandbox: Sandbox, tmp_path: Path
) -> None:
    """In the sandbox: it edits, continues, writes nowhere else, and its model's errors are its failures."""
    await asyncio.to_thread(needs_bubblewrap)
    outside = tmp_path / "outside.md"
    async with real_agent_world(EXAMPLE_AGENTS[name], sandbox, tmp_path) as world:
        page, script = world.path(PAGE), world.model.script
        script.on("Make it American", WriteFile(page, AMERICAN), Say("I made **it** American."))
        script.on("Go on", RunCommand(f"echo x > {outside}"), WriteFile(str(outside), "x\n"), Say("There."))
        script.on("Once more", Refuse(401, "this key is not known here"))
        first = await world.edit("Make it American")
        assert world.page.read_text(encoding="utf-8") == AMERICAN
        assert first.summary == "I made **it** American."
        assert world.progress.total.sent > 0 < world.progress.total.answered, "as the relay counts them"
        assert {request.key for request in world.model.requests} == {KEY}

        world.restart()
        await world.edit("Go on")
        assert world.model.requests[-1].holds("Make it American")
        assert world.model.requests[-1].holds(first.summary)
        assert not outside.exists()

        with pytest.raises(EditError, match="key is not valid"):
            await world.edit("Once more")
        assert not await asyncio.to_thread(world.files_holding, KEY)
        assert KEY not in world.log.read_text(encoding="utf-8")
        assert not world.running()
