"""An agent editor with a scripted agent, for tests."""

import asyncio
import json
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.fakes.job_ports import FakeProgress

from bot.jobserver.agents.connection import Wanted
from bot.jobserver.agents.editor import AgentEditor
from bot.jobserver.agents.launch import AgentLaunch
from bot.jobserver.agents.named import Agent
from bot.jobserver.editors.interface import EditResult, EditTask, TaskFile
from bot.jobserver.egress.proxy import Egress
from bot.jobserver.sandbox.choice import NoSandbox
from bot.jobserver.sandbox.interface import Sandbox, Workspace
from bot.jobserver.sandbox.limits import RunLimits
from bot.jobserver.store.records import EarlierInstruction

ENOUGH = RunLimits(memory=2**31, processes=100, disk=2**30)
PROGRAM = Path(__file__).parents[1] / "servers" / "scripted_agent.py"


@dataclass
class AgentWorld:
    """One job: its folders, its editor, and its reported progress."""

    root: Path
    editor: AgentEditor
    progress: FakeProgress = field(default_factory=FakeProgress)

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.root / "copy", self.root / "home", self.root / "attachments")

    @property
    def copy(self) -> Path:
        return self.workspace.copy

    @property
    def log(self) -> str:
        return (self.root / "log").read_text()

    async def edit(
        self,
        prompt: str,
        conversation: Sequence[EarlierInstruction] = (),
        *,
        session: str | None = None,
        attachments: Sequence[TaskFile] = (),
        **asked: Any,
    ) -> EditResult:
        """Runs one instruction; `session` is the last one reported, unless given. `asked`: its mode, model, effort."""
        known = session or (self.progress.sessions[-1] if self.progress.sessions else None)
        task = EditTask(prompt, self.workspace, self.root / "log", conversation, known, attachments, **asked)
        return await self.editor.edit(task, self.progress)

    def received(self, method: str) -> list[dict[str, Any]]:
        """Returns the parameters of the calls that the agent got."""
        lines = (self.workspace.home / "received.jsonl").read_text().splitlines()
        return [message["params"] for message in map(json.loads, lines) if message.get("method") == method]

    def prompts(self) -> list[str]:
        return [params["prompt"][0]["text"] for params in self.received("session/prompt")]


async def cancel_once(world: AgentWorld, is_time: Callable[[], bool], **asked: Any) -> None:
    """Cancels an edit, which has to end within 5 s."""
    editing = asyncio.create_task(world.edit("go", **asked))
    while not is_time():  # noqa: ASYNC110 - what is awaited happens in another process
        await asyncio.sleep(0.01)
    editing.cancel()
    async with asyncio.timeout(5):
        await asyncio.gather(editing, return_exceptions=True)
    assert editing.cancelled()


def scripted(root: Path, script: str, *arguments: str, **traits: Any) -> Agent:
    """Returns an agent that follows this script."""
    path = root / "script.py"
    path.write_text(textwrap.dedent(script), encoding="utf-8")
    command = (sys.executable, str(PROGRAM), str(path), *arguments)
    return Agent(**{"name": "scripted", "command": command, **traits})


def agent_world(
    root: Path,
    script: str,
    *,
    time_limit: float = 60,
    sandbox: Sandbox | None = None,
    limits: RunLimits = ENOUGH,
    passed: dict[str, str] | None = None,
    wanted: Wanted | None = None,
    **traits: Any,
) -> AgentWorld:
    for name in ("copy", "home"):
        (root / name).mkdir(exist_ok=True)
    launch = AgentLaunch(scripted(root, script, **traits), passed or {}, wanted=wanted or {})
    editor = AgentEditor(launch, sandbox or NoSandbox(), limits, Egress("open"), time_limit=time_limit)
    return AgentWorld(root, editor)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
