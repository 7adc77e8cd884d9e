"""Agents that misbehave: each ends with an explanation, within bounds, and leaves nothing behind."""

import asyncio
import resource
import sys
from pathlib import Path
from typing import Any

import pytest
from support.worlds.agent_world import agent_world, cancel_once, is_running

from bot.jobserver.agents.process import LINE_LIMIT
from bot.jobserver.editors.job_log import LOG_LIMIT
from bot.jobserver.errors import EditError
from bot.jobserver.sandbox.limits import RunLimits


async def failure(root: Path, script: str, **settings: Any) -> str:
    with pytest.raises(EditError) as caught:
        await agent_world(root, script, **settings).edit("go")
    return str(caught.value)


async def test_a_line_of_100_mb_is_not_held_in_memory(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    endless = """
    def turn(agent, text):
        agent.raw('{"jsonrpc": "2.0", "method": "session/update", "params": {"x": "')
        for _ in range(1600):
            agent.raw("x" * 65536)
        agent.raw('"}}\\n')
    """
    assert await failure(tmp_path, endless) == f"scripted sent a message of more than {LINE_LIMIT // 1_000_000} MB"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < 6 * LINE_LIMIT


GARBAGE = r"""
def turn(agent, text):
    agent.raw("Starting up\n\n\x00\xff{not json\n[1, 2]\n42\n\"text\"\nnull\n")
    agent.raw("[" * 100_000 + "\n")
    agent.raw('{"id": [1], "result": 1}\n{"id": {}, "method": {}}\n{"id": 2, "error": "x"}\n')
    agent.raw('{"id": 1, "error": []}\n{}\n')
    agent.raw('{"jsonrpc": "2.0", "id": 999, "result": {}}\n')
    agent.raw('{"jsonrpc": "2.0", "method": "session/update", "params": [1]}\n')
    agent.raw('{"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": 1, "update": {}}}\n')
    agent.update("from_the_future", content=1)
    agent.update("plan", entries=[{"content": "x", "status": "dreaming", "priority": "low"}])
    agent.update("tool_call_update", toolCallId="nobody knows it", status="completed", content=[{"type": "odd"}])
    agent.notify("_vendor/thing", {})
    agent.notify("session/else", {"_meta": {"self": 1, "session_id": 2}})
    agent.say("Done.")
"""


async def test_lines_that_are_not_messages_are_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = agent_world(tmp_path, GARBAGE)
    assert (await world.edit("go")).summary == "Done."
    assert "[12 lines of its output were not messages]" in world.log
    assert not caplog.records


async def test_requests_for_unoffered_abilities_are_refused(tmp_path: Path) -> None:
    asks = """
    def turn(agent, text):
        methods = ("fs/read_text_file", "fs/write_text_file", "terminal/create", "x", "_x")
        params = {"sessionId": agent.session_id, "path": "/etc/passwd", "content": "x"}
        codes = [agent.request(method, params)["error"]["code"] for method in methods]
        agent.say(str(codes))
        page = {"sessionId": agent.session_id, "mode": "url", "url": "https://evil.example", "message": "Log in"}
        agent.say(agent.request("elicitation/create", page)["result"]["action"])
        agent.say(str(agent.request("session/request_permission", {"_meta": {"options": 1}})["error"]["code"]))
        assert not any(agent.client["fs"].values()) and not agent.client["terminal"]
    """
    result = await agent_world(tmp_path, asks).edit("go")
    assert result.summary == f"{[-32601] * 5}decline-32602"


DEAF = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    results = {"initialize": {"protocolVersion": 1}, "session/new": {"sessionId": "s"}}
    if message["method"] == "session/prompt":
        break
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}), flush=True)
ask = {"sessionId": "s", "toolCall": {"toolCallId": "1", "title": "x" * 1000}, "options": []}
while True:
    print(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session/request_permission", "params": ask}))
"""


@pytest.mark.full
async def test_endless_requests_with_unread_answers_use_bounded_memory(tmp_path: Path) -> None:
    most = 0

    async def others() -> None:
        nonlocal most
        while True:
            await asyncio.sleep(0.01)
            most = max(most, len(asyncio.all_tasks()))

    counting = asyncio.create_task(others())
    await failure(tmp_path, "", command=(sys.executable, "-c", DEAF), time_limit=2)
    counting.cancel()
    assert most < 50


async def test_10_mb_of_standard_error_block_nothing_and_fill_no_disk(tmp_path: Path) -> None:
    noisy = """
    def turn(agent, text):
        import sys
        for _ in range(160):
            sys.stderr.write("e" * 65535 + "\\n")
        agent.say("Done.")
    """
    world = agent_world(tmp_path, noisy)
    assert (await world.edit("go")).summary == "Done."
    assert LOG_LIMIT <= len(world.log) < LOG_LIMIT + 200
    assert "more bytes of output were not kept" in world.log


@pytest.mark.parametrize("how", ["import os; os._exit(3)", "raise SystemExit(3)", "import os; os.kill(os.getpid(), 9)"])
async def test_an_agent_that_dies_during_its_turn_is_reported(tmp_path: Path, how: str) -> None:
    code = "137" if "kill" in how else "3"
    dies = f"def turn(agent, text):\n    import sys\n    print('out of luck', file=sys.stderr, flush=True)\n    {how}"
    said = await failure(tmp_path, dies)
    assert said == f"scripted ended before it was done (exit code {code}): out of luck"


LEAVES_A_CHILD = """
def turn(agent, text):
    import os, subprocess
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    Path("pids").write_text(str(child.pid))
    {ends}
"""


async def test_an_agent_dies_while_a_detached_child_holds_its_output(tmp_path: Path) -> None:
    assert "exit code 3" in await failure(tmp_path, LEAVES_A_CHILD.format(ends="os._exit(3)"))
    assert not is_running(int((tmp_path / "copy" / "pids").read_text()))


async def test_a_program_that_cannot_be_started_is_reported(tmp_path: Path) -> None:
    said = await failure(tmp_path, "", command=("/nothing/here",))
    assert "there is no program here on this server" in said


@pytest.mark.parametrize("command", [("true",), ("echo", "hello"), ("cat",)])
async def test_a_program_that_does_not_speak_the_protocol_is_reported(tmp_path: Path, command: tuple[str, ...]) -> None:
    said = await failure(tmp_path, "", command=command)
    assert "ended before it was done" in said or "did not answer" in said or "Method not found" in said


IGNORES_ALL = """
def turn(agent, text):
    import os, signal, subprocess, sys
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path("pids").write_text(f"{os.getpid()} {child.pid}")
    agent.call("1", "Wait")
    time.sleep(600)
"""


async def test_a_cancelled_edit_ends_within_5_seconds_if_the_agent_ignores_it(tmp_path: Path) -> None:
    world = agent_world(tmp_path, IGNORES_ALL)
    await cancel_once(world, lambda: bool(world.progress.activities))
    assert len(world.received("session/cancel")) == 1
    for pid in (world.copy / "pids").read_text().split():
        assert not is_running(int(pid))


async def test_children_left_behind_end_with_the_turn(tmp_path: Path) -> None:
    world = agent_world(tmp_path, LEAVES_A_CHILD.format(ends='agent.say("Done.")'))
    assert (await world.edit("go")).summary == "Done."
    assert not is_running(int((world.copy / "pids").read_text()))


@pytest.mark.full
@pytest.mark.parametrize(
    ("code", "limits", "said"),
    [
        ("held = bytearray(200_000_000); time.sleep(60)", RunLimits(2**26, 100, 2**30), "64.0 MiB of memory"),
        ("Path('big').write_bytes(bytes(50_000_000)); time.sleep(60)", RunLimits(2**31, 100, 2**24), "16.0 MiB to the"),
    ],
)
async def test_an_agent_that_uses_too_much_is_stopped(tmp_path: Path, code: str, limits: RunLimits, said: str) -> None:
    assert said in await failure(tmp_path, f"def turn(agent, text):\n    {code}", limits=limits)
