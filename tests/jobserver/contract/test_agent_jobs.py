"""Jobs done by an agent, with AGENT set and nothing else; and what `pagehand jobserver --check` says about it."""

import asyncio
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pydantic import SecretStr
from support.servers.relayed_model import KEY as MODEL_KEY
from support.servers.relayed_model import broken_off, upstream_server
from support.worlds.agent_world import PROGRAM
from support.worlds.hostile_world import needs_bubblewrap
from support.worlds.jobserver_world import KEY, make_bare, running

from bot.cli.main import main
from bot.jobserver.settings import PREFIX

PAGES = {"docs/start.md": "# Start\n"}
EDITS = """
def turn(agent, text):
    page = Path("docs/start.md").resolve()
    agent.call("1", "Edit docs/start.md", locations=[{"path": str(page)}])
    assert agent.ask("1") == "allow_once"
    page.write_text("# Start\\n\\nNew.\\n")
    agent.say("I added a line.")
"""


def command(directory: Path, script: str) -> str:
    path = directory / "script.py"
    path.write_text(script)
    return shlex.join([sys.executable, str(PROGRAM), str(path)])


async def test_an_agent_edits_once_configured(tmp_path: Path) -> None:
    repository = make_bare(tmp_path / "r.git", PAGES)
    agent = shlex.split(command(tmp_path, EDITS))
    async with running(repository, tmp_path / "data", agent=agent) as world:
        job = await world.done("Add a line")
        assert (job["status"], job["model"]) == ("completed", Path(sys.executable).name)
        assert world.show(f"pagehand/{job['id']}", "docs/start.md") == "# Start\n\nNew.\n"
        assert "[allowed] edit: Edit docs/start.md" in world.log(job["id"])


CALLS_IT_DONE = (
    EDITS.replace(
        "def turn",
        """
import contextlib, json, os, sys, urllib.request

def turn""",
    )
    + """
    body = {"model": "m", "messages": [], "tools": [{"name": "edit", "input_schema": {"type": "object"}}]}
    headers = {"Content-Type": "application/json", "x-api-key": os.environ["ANTHROPIC_API_KEY"]}
    url = sys.argv[2] + "/v1/messages"
    with contextlib.suppress(Exception):
        urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=10).read()
"""
)


@pytest.mark.full
async def test_work_is_kept_of_a_turn_that_the_agent_calls_done_although_its_model_broke_off(tmp_path: Path) -> None:
    await asyncio.to_thread(needs_bubblewrap)
    repository = make_bare(tmp_path / "r.git", PAGES)
    agent = [*shlex.split(command(tmp_path, CALLS_IT_DONE)), "{model_url}"]
    async with upstream_server() as model:
        model.answer = broken_off
        relayed = {"model_api": "anthropic", "model_key": SecretStr(MODEL_KEY), "model_url": model.url}
        settings: dict[str, Any] = {"agent": agent, "sandbox": "bubblewrap", "egress": (), **relayed}
        async with running(repository, tmp_path / "data", **settings) as world:
            job = await world.done("Add a line")
            assert "[end_turn]" in world.log(job["id"])
            assert (job["status"], job["prLink"]) == ("failed", None)
            assert job["details"]["reason"].endswith("failed: its model's answer was cut off")
            assert job["details"]["partialWork"] == {"files": 1}
            assert world.branches() == {"main"}, "it is not proposed by itself"

            model.answer = None
            job = await world.continued(job["id"], "Go on")
            assert (job["status"], job["details"]["partialWork"]) == ("completed", None)
            assert world.show(f"pagehand/{job['id']}", "docs/start.md") == "# Start\n\nNew.\n"


def checked(directory: Path, **given: str) -> tuple[int, list[str]]:
    """Returns what the check says about the editor, after the machine and the repository, if all is well."""
    repository = make_bare(directory / "docs.git", PAGES)
    values = {"REPOSITORY": str(repository), "API_KEY": KEY, "DATA_DIRECTORY": str(directory), "ALLOW_ROOT": "true"}
    environment = {PREFIX + name: value for name, value in (values | given).items()}
    ended = CliRunner().invoke(main, ["jobserver", "--check"], env=environment, catch_exceptions=False)
    lines = ended.output.splitlines()
    (push,) = (at for at, line in enumerate(lines) if line.startswith("ok   push "))
    return ended.exit_code, lines[push + 1 :]


@pytest.mark.parametrize(("sandbox", "egress"), [("none", "open"), ("bubblewrap", "none")])
def test_the_check_confirms_that_an_agent_is_installed_and_answers(tmp_path: Path, sandbox: str, egress: str) -> None:
    if sandbox == "bubblewrap":
        needs_bubblewrap()
    script = "def turn(agent, text):\n    agent.say(text.rpartition(': ')[2])"
    code, lines = checked(tmp_path, AGENT=command(tmp_path, script), SANDBOX=sandbox, EGRESS=egress)
    assert code == 0
    assert any("PAGEHAND_JOBSERVER_MODEL_KEY" in line for line in lines) == (sandbox == "bubblewrap")
    lines = [line for line in lines if not line.startswith("ok   model ")]
    assert lines[:3] == [
        f"ok   installed      {sys.executable}",
        f"ok   sandbox        {sandbox}",
        "ok   starts         scripted 1.2.3",
    ]
    assert lines[3].startswith("ok   answers        “ready”, after ")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("def turn(agent, text):\n    raise Refused(-32000, 'Log in')", "FAIL answers        python"),
        ("def turn(agent, text):\n    pass", "FAIL answers        nothing was said"),
        ("raise SystemExit('no such model')", "FAIL starts         python"),
    ],
)
def test_the_check_exits_with_1_if_an_agent_does_not_work(tmp_path: Path, script: str, said: str) -> None:
    code, lines = checked(tmp_path, AGENT=command(tmp_path, script), SANDBOX="none", EGRESS="open")
    assert code == 1
    assert lines[-1].startswith(said)
    assert not any(line.startswith("FAIL") for line in lines[:-1])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"AGENT": "/nothing/here acp"}, "FAIL installed      there is no program /nothing/here here"),
        ({"AGENT": "a --model={model}"}, "FAIL agent          a is to get {model}: set PAGEHAND_JOBSERVER_MODEL"),
        (
            {"EDITOR": "command", "COMMAND": "/nothing/here"},
            "FAIL installed      there is no program /nothing/here here",
        ),
        ({"EDITOR": "command", "COMMAND": sys.executable}, f"ok   installed      {sys.executable}"),
        ({}, "ok   editor         the demo's, which knows four things. For an agent, set PAGEHAND_JOBSERVER_AGENT"),
    ],
)
def test_the_check_works_without_an_agent(tmp_path: Path, given: dict[str, str], said: str) -> None:
    code, lines = checked(tmp_path, **given)
    assert code == said.startswith("FAIL")
    assert len(lines) == 1
    assert lines[0].startswith(said)
