"""An agent's turns: what it does, what it says, and how it continues."""

import asyncio
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from support.worlds.agent_world import AgentWorld, agent_world, is_running, scripted

from bot.jobapi.models import PlanStep, StepStatus
from bot.jobserver.agents.choice import CHECK_S, check_editor
from bot.jobserver.editors.interface import EditResult, Exchange
from bot.jobserver.errors import EditError
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.usage import Money, Spent

EDITS = """
def turn(agent, text):
    agent.update("agent_thought_chunk", content={"type": "text", "text": "Hm."})
    agent.say("I will look at it.")
    agent.update("plan", entries=[{"content": "Write it", "priority": "high", "status": "in_progress"}])
    agent.call("1", "Write a.md", locations=[{"path": str(Path.cwd() / "a.md")}])
    assert agent.ask("1") == "allow_once"
    Path("a.md").write_text("written")
    agent.update("tool_call_update", toolCallId="1", status="completed")
    agent.say("I wrote ")
    agent.say("`a.md`.")
"""
REMEMBERS = """
def turn(agent, text):
    agent.say(f"Prompt {len(agent.memory())} of {agent.session_id}.")
"""


async def test_an_edit_reports_its_plan_steps_and_answer(tmp_path: Path) -> None:
    world = agent_world(tmp_path, EDITS)
    assert await world.edit("Write a.md") == EditResult(summary="I wrote `a.md`.")
    assert (world.copy / "a.md").read_text() == "written"
    assert world.progress.plans == [(PlanStep(title="Write it", status=StepStatus.IN_PROGRESS),)]
    assert world.progress.activities == ["Write a.md"]
    assert world.progress.sessions == ["session-1"]
    assert "[allowed] edit: Write a.md" in world.log


@pytest.mark.parametrize("prompt", ["/logout", "!touch oops"])
async def test_a_prompt_is_data_and_never_first_in_the_agents_input(tmp_path: Path, prompt: str) -> None:
    world = agent_world(tmp_path, REMEMBERS)
    await world.edit(prompt)
    await world.edit(prompt)
    for told in world.prompts():
        assert told.endswith(f"\n\n{prompt}")
        assert told[0].isalpha()


async def test_a_follow_up_continues_the_jobs_own_session(tmp_path: Path) -> None:
    world = agent_world(tmp_path, REMEMBERS)
    await world.edit("one")
    second = await world.edit("make that shorter", [Exchange("one", "Prompt 1 of session-1.")])
    assert second.summary == "Prompt 2 of session-1."
    assert world.progress.sessions == ["session-1"]
    assert [params["sessionId"] for params in world.received("session/resume")] == ["session-1"]
    assert world.received("session/new")[0]["cwd"] == world.received("session/resume")[0]["cwd"] == str(world.copy)
    assert "Asked:" not in world.prompts()[1]


TELLS_USAGE = """
def turn(agent, text):
    agent.update("usage_update", used=5000, size=200000, cost={"amount": 0.5, "currency": "USD"})
    agent.update("usage_update", used=5000, size=200000, cost={"amount": 1e300, "currency": "<b>"})
    return {"stopReason": "end_turn", "usage": {
        "totalTokens": 36, "inputTokens": 10, "outputTokens": 6, "cachedReadTokens": 15, "cachedWriteTokens": 5}}
"""


@pytest.mark.parametrize(("of_turns", "times"), [(True, 2), (False, 1)])
async def test_reported_usage_is_counted_if_it_is_per_turn(
    tmp_path: Path,
    of_turns: bool,  # noqa: FBT001 - a trait of the agent
    times: int,
) -> None:
    """The protocol counts for the session: in a resumed session, the turn's part is unknown."""
    world = agent_world(tmp_path, TELLS_USAGE, reports_usage_per_turn=of_turns)
    await world.edit("one")
    await world.edit("two")
    assert world.progress.total == Spent(30 * times, 6 * times, Money(0.5 * times, "USD"))


@pytest.mark.parametrize(
    "start",
    [
        "capabilities = {}\n",
        "capabilities = {'loadSession': True}\n",
        "overrides = {'session/resume': lambda *_: (_ for _ in ()).throw(Refused(-32603, 'no'))}\n",
    ],
)
async def test_without_a_session_the_conversation_is_repeated(tmp_path: Path, start: str) -> None:
    """Loading one is not tried: agents replay it, some in the middle of the next turn."""
    world = agent_world(tmp_path, start + REMEMBERS)
    await world.edit("Write about\ncolours")
    second = await world.edit("make that shorter", [Exchange("Write about\ncolours", "I did.")])
    assert second.summary == "Prompt 1 of session-2."
    assert world.progress.sessions == ["session-1", "session-2"]
    assert "> Write about\n> colours\nAnswered:\n> I did." in world.prompts()[1]
    assert world.prompts()[1].endswith("\n\nmake that shorter")


async def test_a_lost_session_is_started_anew(tmp_path: Path) -> None:
    world = agent_world(tmp_path, REMEMBERS)
    result = await world.edit("shorter", [Exchange("one", "first")], session="session-of-another-home")
    assert result.summary == "Prompt 1 of session-1."
    assert "> one" in world.prompts()[0]


ASKS_FOR_MORE = """
def turn(agent, text):
    agent.call("1", "npm test", kind="execute", rawInput={"command": "npm test"})
    if agent.ask("1") == "allow_once":
        Path("tested.md").write_text("x")
    agent.call("2", "Read", kind="read", rawInput={"file_path": "/etc/passwd"})
    assert agent.ask("2").startswith("reject")
"""


async def test_access_outside_the_copy_is_refused(tmp_path: Path) -> None:
    world = agent_world(tmp_path, ASKS_FOR_MORE)
    result = await world.edit("go")
    assert (result.question, result.summary) == ("", "")
    assert result.reason.startswith("It wanted to do what is not allowed here: `npm test`, `Read: ")
    assert not list(world.copy.iterdir())
    assert "[refused] execute: npm test" in world.log


async def test_the_check_of_a_hanging_model_times_out(tmp_path: Path) -> None:
    """The operator waits half a minute and is told the possible reason."""
    agent = scripted(tmp_path, "def turn(agent, text):\n    agent.cancelled.wait(60)\n")
    settings = JobServerSettings(
        repository=str(tmp_path), api_key="planted-key-of-sixteen", data_directory=tmp_path / "data", sandbox="none",
        egress="open", allow_root=True, agent=shlex.join(agent.command),
    )  # fmt: skip
    found = [finding async for finding in check_editor(settings, os.environ, answer_within=2.0)]
    assert [(finding.name, finding.is_ok) for finding in found[-2:]] == [("starts", True), ("answers", False)]
    assert found[-1].message.startswith("nothing came from its model within 2 s: check its address")
    assert CHECK_S == 30.0


RUNS_ONE = ASKS_FOR_MORE[: ASKS_FOR_MORE.index('    agent.call("2"')]


@pytest.mark.parametrize(("reply", "is_allowed"), [("Yes, please.", True), ("yesterday's page", False), ("no", False)])
async def test_a_person_is_asked_and_a_yes_allows_exactly_that_call_once(
    tmp_path: Path,
    reply: str,
    is_allowed: bool,  # noqa: FBT001
) -> None:
    world = agent_world(tmp_path, RUNS_ONE, may_ask=True)
    first = await world.edit("go")
    assert first.question.startswith("May I do this?\n\n- `npm test`\n")
    second = await world.edit(reply)
    assert (world.copy / "tested.md").exists() is is_allowed
    assert bool(second.question) is not is_allowed
    assert ("Allowed now" in world.prompts()[1]) is is_allowed
    third = await world.edit("yes" if is_allowed else "go on")
    assert "`npm test`" in third.question


async def test_the_servers_own_requests_answer_no_question(tmp_path: Path) -> None:
    world = agent_world(tmp_path, RUNS_ONE, may_ask=True)
    await world.edit("go")
    await world.edit("yes, mend this", is_from_person=False)
    assert not (world.copy / "tested.md").exists()
    await world.edit("yes")
    assert (world.copy / "tested.md").exists()


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("agent.say('Two fit.\\n\\nWhich **one**?')", ("Two fit.\n\nWhich **one**?", "Which **one**?")),
        ("agent.say('Which one? I took none.')", ("Which one? I took none.", "")),
    ],
)  # fmt: skip
async def test_the_question_that_ends_an_answer_is_found(
    tmp_path: Path, script: str, expected: tuple[str, str]
) -> None:
    result = await agent_world(tmp_path, f"def turn(agent, text):\n    {script}").edit("go")
    assert (result.summary, result.closing_question) == expected


async def test_the_answer_is_the_last_message_and_bounded(tmp_path: Path) -> None:
    script = """
    def turn(agent, text):
        agent.say("First.")
        agent.call("1", "Look")
        agent.say("x" * 200_000)
    """
    assert (await agent_world(tmp_path, script).edit("go")).summary == "x" * 100_000 + "…"
    last_is_a_call = "def turn(agent, text):\n    agent.say('First.'); agent.call('1', 'Look')"
    assert (await agent_world(tmp_path, last_is_a_call).edit("go")).summary == "First."


def refused(code: int, message: str, data: str = "None") -> str:
    return f"def turn(agent, text):\n    raise Refused({code}, {message!r}, {data})"


def ends(stop: str, before: str = "pass") -> str:
    return f"def turn(agent, text):\n    {before}\n    return {stop}"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (refused(-32000, "Log in"), "not logged in, or its key is not valid (Log in); set A_KEY"),
        (refused(-32603, "Internal error", "{'details': 'on fire'}"), "scripted failed: on fire"),
        (refused(429, "slow down"), "accepts no more requests at the moment (slow down); try again later"),
        (ends("'refusal'", "agent.say('I cannot.')"), "its model refused to do this: I cannot."),
        (ends("'max_tokens'"), "its model's answer became too long"),
        (ends("'max_turn_requests'"), "it needed more steps"),
        (ends("'cancelled'"), "it gave up by itself"),
    ],
)  # fmt: skip
async def test_a_failure_has_a_readable_reason(tmp_path: Path, script: str, said: str) -> None:
    world = agent_world(tmp_path, script, login="set A_KEY")
    with pytest.raises(EditError) as caught:
        await world.edit("go")
    assert said in str(caught.value)


async def test_a_missing_login_is_reported_before_the_prompt(tmp_path: Path) -> None:
    for method in ("session/new", "session/resume"):
        no_login = f"overrides = {{{method!r}: lambda *_: (_ for _ in ()).throw(Refused(-32000, 'Log in'))}}\n"
        world = agent_world(tmp_path, no_login + REMEMBERS)
        with pytest.raises(EditError, match="not logged in"):
            await world.edit("go", session="session-1")


async def test_an_agent_that_gives_up_after_a_refusal_has_not_failed(tmp_path: Path) -> None:
    script = ASKS_FOR_MORE + "    return 'cancelled'"
    assert "not allowed here" in (await agent_world(tmp_path, script).edit("go")).reason


async def test_an_agents_secrets_are_masked_in_its_texts(tmp_path: Path) -> None:
    tells = """
    def turn(agent, text):
        import os, sys
        secret = os.environ["A_KEY"]
        print("key", secret, file=sys.stderr, flush=True)
        agent.update("plan", entries=[{"content": secret, "priority": "high", "status": "pending"}])
        agent.call("1", f"curl {secret}", kind="execute")
        agent.ask("1")
        agent.say(f"The key is {secret}, at {os.environ['A_URL']}.")
        if "fail" in text:
            raise Refused(-32603, secret)
    """
    passed = {"A_KEY": "planted-secret-of-the-agent", "A_URL": "http://127.0.0.1:1/model"}
    world = agent_world(tmp_path, tells, passed=passed, may_ask=True)
    result = await world.edit("go")
    assert result.summary == "The key is [secret], at http://127.0.0.1:1/model."
    with pytest.raises(EditError) as caught:
        await world.edit("fail")
    everything = (result, caught.value, world.log, world.progress.plans, world.progress.activities, world.editor)
    assert "planted-secret" not in repr([str(part) for part in everything])


WAITS = """
def turn(agent, text):
    agent.call("1", "Run", kind="execute")
    agent.ask("1")
    agent.cancelled.wait()
    agent.say(agent.ask("1"))
    Path("cancelled").write_text("x")
    return "cancelled"
"""


async def cancel_once(world: AgentWorld, is_time: Callable[[], bool]) -> None:
    editing = asyncio.create_task(world.edit("go"))
    while not is_time():  # noqa: ASYNC110 - what is awaited happens in another process
        await asyncio.sleep(0.01)
    editing.cancel()
    async with asyncio.timeout(5):
        await asyncio.gather(editing, return_exceptions=True)
    assert editing.cancelled()


async def test_a_cancel_reaches_the_agent_and_withdraws_its_requests(tmp_path: Path) -> None:
    world = agent_world(tmp_path, WAITS)
    await cancel_once(world, lambda: bool(world.progress.activities))
    assert world.received("session/cancel") == [{"sessionId": "session-1"}]
    assert (world.copy / "cancelled").exists()
    answers = (world.workspace.home / "received.jsonl").read_text().splitlines()
    assert any('"outcome":{"outcome":"cancelled"}' in answer for answer in answers)


async def test_a_cancel_before_the_turn_ends_the_agent_too(tmp_path: Path) -> None:
    starts = """
    def started(agent):
        import os
        Path("pid").write_text(str(os.getpid()))
        time.sleep(600)
    """
    world = agent_world(tmp_path, starts)
    await cancel_once(world, (world.copy / "pid").exists)
    assert not is_running(int((world.copy / "pid").read_text()))
