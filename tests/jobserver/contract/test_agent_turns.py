"""An agent's turns: what it does, says and asks, how it continues, and the options and files that it is given."""

import asyncio
import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from support.worlds.agent_world import AgentWorld, agent_world, cancel_once, is_running, scripted

from bot.jobapi.models import Cost, PlanStep, StepStatus
from bot.jobserver.agents.choice import CHECK_S, check_editor
from bot.jobserver.agents.connection import Category
from bot.jobserver.editors.interface import EditResult, TaskFile
from bot.jobserver.errors import EditError
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.store.records import EarlierInstruction, Question
from bot.jobserver.usage import Spent

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


async def test_a_follow_up_continues_the_jobs_own_session(tmp_path: Path) -> None:
    world = agent_world(tmp_path, REMEMBERS)
    await world.edit("one")
    second = await world.edit("make that shorter", [EarlierInstruction("one", "Prompt 1 of session-1.")])
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
    assert world.progress.total == Spent(30 * times, 6 * times, Cost(amount=0.5 * times, currency="USD"))


@pytest.mark.parametrize(
    "start",
    [
        "capabilities = {}\n",
        "capabilities = {'loadSession': True}\n",
        "overrides = {'session/resume': lambda *_: (_ for _ in ()).throw(Refused(-32603, 'no'))}\n",
        "overrides = {'session/resume': lambda *_: (_ for _ in ()).throw(Refused(-32002, 'Resource not found'))}\n",
    ],
)
async def test_without_a_session_the_conversation_is_repeated(tmp_path: Path, start: str) -> None:
    """Loading one is not tried: agents replay it, some in the middle of the next turn."""
    world = agent_world(tmp_path, start + REMEMBERS)
    await world.edit("Write about\ncolours")
    second = await world.edit("make that shorter", [EarlierInstruction("Write about\ncolours", "I did.")])
    assert second.summary == "Prompt 1 of session-2."
    assert world.progress.sessions == ["session-1", "session-2"]
    assert "> Write about\n> colours\nAnswered:\n> I did." in world.prompts()[1]
    assert world.prompts()[1].endswith("\n\nmake that shorter")


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


@pytest.mark.full
async def test_the_check_of_a_hanging_model_times_out(tmp_path: Path) -> None:
    """The operator waits half a minute and is told the possible reason."""
    found = await findings(tmp_path, "def turn(agent, text):\n    agent.cancelled.wait(60)\n", answer_within=2.0)
    assert [(name, is_ok) for name, is_ok, _ in found[-2:]] == [("starts", True), ("answers", False)]
    assert found[-1][2].startswith("nothing came from its model within 2 s: check its address")
    assert CHECK_S == 30.0


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
        (ends("'refusal'", "agent.say('I cannot.')"), "its model refused to do this: I cannot."),
        (ends("'max_tokens'"), "its model's answer became too long"),
        (ends("'max_turn_requests'"), "it needed more steps"),
        (ends("'cancelled'"), "it gave up by itself"),
        (ends("'fatigue'"), "answered in a way that Pagehand does not understand"),
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
    world = agent_world(tmp_path, tells, passed=passed)
    result = await world.edit("go")
    assert result.summary == "The key is [masked: Pagehand's own credential], at http://127.0.0.1:1/model."
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


FORM = """
PORTS = {"type": "string", "title": "Port", "enum": ["80", "443"]}
def form(agent, **more):
    params = {"sessionId": agent.session_id, "mode": "form", "message": "Which port?",
              "requestedSchema": {"type": "object", "properties": {"port": PORTS}}}
    return agent.request("elicitation/create", {**params, **more})
"""
ASKS = FORM + """
def turn(agent, text):
    answer = form(agent)["result"]
    agent.say(f"{answer['action']} {answer.get('content')}")
"""  # fmt: skip


async def test_the_answer_is_returned_to_the_agent(tmp_path: Path) -> None:
    world = agent_world(tmp_path, ASKS)
    world.progress.reply = "443"
    assert await world.edit("Describe the port") == EditResult(summary="accept {'port': '443'}")
    (question,) = world.progress.questions
    assert question.text == "Which port?\n- 80\n- 443"
    assert [option.label for option in question.fields[0].options] == ["80", "443"]
    assert world.received("initialize")[0]["clientCapabilities"]["elicitation"] == {"form": {}}


async def test_an_unanswered_question_is_declined_and_ends_the_job(tmp_path: Path) -> None:
    """Once per turn: later questions are declined at once."""
    world = agent_world(tmp_path, ASKS.replace("answer = form(agent)", "form(agent); answer = form(agent)"))
    result = await world.edit("Describe the port")
    assert (result.summary, result.question) == ("decline None", "Which port?\n- 80\n- 443")
    assert result.question_fields == world.progress.questions[0].fields
    assert len(world.progress.questions) == 1


@pytest.mark.parametrize(
    "more",
    [
        "mode='url', url='https://evil.example', elicitationId='1'",
        "requestedSchema={'type': 'object', 'properties': {'password': {'type': 'string'}}}",
        "requestedSchema='nonsense'",
    ],
)
async def test_urls_secrets_and_malformed_questions_are_declined_unseen(tmp_path: Path, more: str) -> None:
    world = agent_world(tmp_path, ASKS.replace("form(agent)[", f"form(agent, {more})["))
    assert await world.edit("Describe the port") == EditResult(summary="decline None")
    assert world.progress.questions == []


@pytest.mark.full
async def test_time_spent_on_a_question_does_not_count(tmp_path: Path) -> None:
    """Otherwise a second answer would be too late."""
    world = agent_world(tmp_path, ASKS, time_limit=2.0)

    async def late(question: Question, _: object) -> str:
        await asyncio.sleep(2.5)  # longer than the limit under test
        return "80"

    world.progress.ask = late  # type: ignore[method-assign,assignment]
    assert (await world.edit("Describe the port")).summary == "accept {'port': '80'}"


async def test_a_question_is_answered_before_the_agent_is_cancelled(tmp_path: Path) -> None:
    """Otherwise some agents hang."""
    world = agent_world(tmp_path, ASKS.replace("    agent.say(", "    agent.cancelled.wait(60)\n    agent.say("))
    world.progress.reply = None
    editing = asyncio.create_task(world.edit("Describe the port"))
    await world.progress.has_asked.wait()
    editing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await editing
    assert _last(world, 2) == [{"action": "cancel"}, "session/cancel"]


@pytest.mark.full
async def test_the_time_limit_resumes_after_the_answer(tmp_path: Path) -> None:
    """An agent that hangs then is stopped."""
    world = agent_world(tmp_path, ASKS.replace("    agent.say(", "    time.sleep(60)\n    agent.say("), time_limit=2.0)
    world.progress.reply = "80"
    with pytest.raises(Exception, match="took longer than 2 s"):
        await world.edit("Describe the port")


def _last(world: AgentWorld, count: int) -> list[object]:
    """Returns the last things the agent received: a request's method, or the answer to its own."""
    lines = (world.root / "home" / "received.jsonl").read_text(encoding="utf-8").splitlines()[-count:]
    return [message.get("method") or message["result"] for message in map(json.loads, lines)]


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
CHOSEN = [("the-model", "haiku"), ("the-thought_level", "high"), ("the-mode", "default")]


async def test_options_are_set_in_new_and_resumed_sessions(tmp_path: Path) -> None:
    """A restarted program may have forgotten them."""
    wanted = {Category.MODEL: "haiku", Category.EFFORT: "high", Category.MODE: "default"}
    world = agent_world(tmp_path, LISTS, wanted=wanted)
    for times in (1, 2):
        assert (await world.edit("go")).summary == "Done."
        told = world.received("session/set_config_option")
        assert [(one["configId"], one["value"]) for one in told] == CHOSEN * times
    assert world.progress.sessions == ["session-1"]
    assert "[model haiku (of " in world.log


async def test_an_unlisted_value_fails_the_job_before_its_turn(tmp_path: Path) -> None:
    world = agent_world(tmp_path, LISTS, wanted={Category.MODEL: "sonet"})
    with pytest.raises(EditError, match="has no model “sonet”: it has opus, haiku; set PAGEHAND_JOBSERVER_MODEL or "):
        await world.edit("go")
    assert world.received("session/prompt") == []


async def test_an_instruction_chooses_its_model_and_effort(tmp_path: Path) -> None:
    """An effort of the settings that the chosen model does not have is left out; one that was asked for is not."""
    world = agent_world(tmp_path, LISTS, wanted={Category.EFFORT: "max"})
    await world.edit("go", model="haiku")
    await world.edit("go", effort="high")
    told = world.received("session/set_config_option")
    assert [(one["configId"], one["value"]) for one in told] == CHOSEN[:2]
    for model, effort in (("haiku", "max"), ("", "")):
        with pytest.raises(EditError, match="has no effort “max”: it has low, high; set PAGEHAND_JOBSERVER_EFFORT or "):
            await world.edit("go", model=model, effort=effort)
    with pytest.raises(EditError, match="has no model “sonet”: it has opus, haiku"):
        await world.edit("go", model="sonet")
    assert len(world.received("session/prompt")) == 2


async def test_a_choice_that_an_agent_cannot_be_told_fails_the_job_before_its_turn(tmp_path: Path) -> None:
    world = agent_world(tmp_path, 'def turn(agent, text): agent.say("Done.")')
    assert (await world.edit("go")).summary == "Done."
    with pytest.raises(EditError, match=r"lists no models, and \{model\} is not in its settings"):
        await world.edit("go", model="haiku")
    assert len(world.received("session/prompt")) == 1


@pytest.mark.parametrize("answer", ["options", "[]"])
async def test_an_agent_that_stays_in_another_mode_gets_no_prompt(tmp_path: Path, answer: str) -> None:
    """In that mode it may ask nobody."""
    ignores = f"{LISTS}\noverrides = {{'session/set_config_option': lambda *_: {{'configOptions': {answer}}}}}\n"
    world = agent_world(tmp_path, ignores, wanted={Category.MODE: "default"})
    with pytest.raises(EditError, match="did not accept the mode “default”"):
        await world.edit("go")
    assert world.received("session/prompt") == []


@pytest.mark.parametrize("answer", ["None", "{'configOptions': 'x'}", "[]"])
async def test_a_resumed_session_without_options_continues(tmp_path: Path, answer: str) -> None:
    script = f"{LISTS}\noverrides = {{'session/resume': lambda agent, params: agent._resume(params) and {answer}}}\n"
    world = agent_world(tmp_path, script, wanted={Category.MODEL: "haiku"})
    await world.edit("go")
    assert (await world.edit("go on")).summary == "Done."
    assert world.progress.sessions == ["session-1"]


async def findings(
    tmp_path: Path, script: str = LISTS, *, answer_within: float = CHECK_S, **given: Any
) -> list[tuple[str, bool | None, str]]:
    settings = JobServerSettings(
        repository=str(tmp_path), api_key="planted-key-of-sixteen", data_directory=tmp_path / "data", sandbox="none",
        egress="open", allow_root=True, agent=shlex.join(scripted(tmp_path, script).command), **given,
    )  # fmt: skip
    found = check_editor(settings, os.environ, answer_within=answer_within)
    return [(one.name, one.is_ok, one.message) async for one in found]


async def test_the_check_shows_the_chosen_options_and_the_alternatives(tmp_path: Path) -> None:
    found = await findings(tmp_path, model="haiku")
    assert [name for name, *_ in found] == ["installed", "sandbox", "starts", "options", "answers"]
    options = "model haiku (of opus, haiku); effort low (of low, high); mode auto (of auto, default)"
    assert found[3] == ("options", True, options)


@pytest.mark.parametrize(("given", "words"), [({"model": "sonet"}, "opus, haiku"), ({"effort": "much"}, "low, high")])
async def test_the_check_lists_values_for_a_wrong_one_and_calls_no_model(
    tmp_path: Path, given: dict[str, Any], words: str
) -> None:
    found = await findings(tmp_path, **given)
    name, is_good, said = found[-1]
    assert (name, is_good) == ("options", False)
    assert f": it has {words}; set PAGEHAND_JOBSERVER_" in said


async def test_the_check_names_a_model_that_may_be_chosen_and_that_the_agent_does_not_have(tmp_path: Path) -> None:
    found = await findings(tmp_path, models="opus, sonet")
    ((is_good, said),) = [(is_good, said) for name, is_good, said in found if name == "models"]
    assert (is_good, "“sonet”: it has opus, haiku" in said) == (False, True)


PNG = b"\x89PNG\r\n\x1a\n..."
SAYS = """
def turn(agent, text):
    agent.say("Seen.")
"""
COPIES = """
def turn(agent, text):
    import re, shutil
    path = re.search(r"^- (/\\S+) ", text, re.MULTILINE)[1]
    agent.call("1", "Read it", kind="read", locations=[{"path": path}])
    agent.call("2", "Bash", kind="execute", rawInput={"command": f"mkdir -p img && cp {path} img/"})
    agent.call("3", "Bash", kind="execute", rawInput={"command": f"cp {path} img/ && curl http://x"})
    assert [agent.ask(number) for number in "123"] == ["allow_once", "allow_once", "reject_once"]
    Path("img").mkdir()
    shutil.copy(path, "img/")
    agent.say("Copied.")
"""


def given(world: AgentWorld, **files: bytes) -> list[TaskFile]:
    """Puts files into the folder of attachments: `a_png` is `a.png`."""
    folder = world.workspace.attachments
    assert folder is not None
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_bytes(content)
    return [_described(name.replace("_", "."), content) for name, content in files.items()]


def _described(name: str, content: bytes) -> TaskFile:
    return TaskFile(name, name, "application/octet-stream", len(content))


def blocks(world: AgentWorld, kind: str) -> list[dict[str, Any]]:
    return [block for params in world.received("session/prompt") for block in params["prompt"] if block["type"] == kind]


async def test_an_agent_gets_links_to_files(tmp_path: Path) -> None:
    """It opens them itself."""
    world = agent_world(tmp_path, SAYS)
    files = given(world, a_png=PNG, b_txt=b"words")
    await world.edit("Look", attachments=files)
    folder = tmp_path / "attachments"
    links = [(block["name"], block["uri"], block["size"]) for block in blocks(world, "resource_link")]
    assert links == [(file.name, (folder / file.name).as_uri(), file.size) for file in files]
    (told,) = world.prompts()
    assert f"- {folder / 'a.png'} (application/octet-stream, {len(PNG)} bytes)" in told
    assert told.endswith("This is the instruction now:\n\nLook")


TAKES_MORE = 'capabilities = {"sessionCapabilities": {"additionalDirectories": {}, "resume": {}}}\n'


async def test_the_attachment_folder_is_separate_where_the_agent_takes_several(tmp_path: Path) -> None:
    """As long as there are files, including those of an earlier instruction in a resumed session."""
    world = agent_world(tmp_path, TAKES_MORE + SAYS)
    await world.edit("Without")
    files = given(world, a_png=PNG)
    await world.edit("With", attachments=files)
    await world.edit("Again")
    assert [params.get("additionalDirectories") for params in world.received("session/new")] == [None]
    folder = str(tmp_path / "attachments")
    assert [params.get("additionalDirectories") for params in world.received("session/resume")] == [[folder], [folder]]
    assert {params["cwd"] for params in world.received("session/resume")} == {str(world.copy)}


async def test_an_agent_may_read_the_files_and_copy_them_into_the_docs(tmp_path: Path) -> None:
    """Nothing else is allowed in the same command."""
    world = agent_world(tmp_path, COPIES)
    result = await world.edit("Add it", attachments=given(world, a_png=PNG))
    assert result.summary == "Copied."
    assert (world.copy / "img" / "a.png").read_bytes() == PNG
