"""A real agent's program, driven by the agent editor, with a scripted model and a workspace of its own."""

import os
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from support.agents.packages import program_folder
from support.agents.process_marks import MARK, marked_processes
from support.agents.real_agents import RealAgent
from support.servers.model_server import ModelServer

from bot.jobserver.agents.editor import AgentEditor
from bot.jobserver.agents.launch import AgentLaunch
from bot.jobserver.editors.interface import EditResult, EditTask, Exchange
from bot.jobserver.models import PlanStep
from bot.jobserver.sandbox.interface import Sandbox, Workspace

PAGE = "colours.md"
TIME_LIMIT_S = 60.0


@dataclass
class HeardProgress:
    """Keeps what an editor tells."""

    plans: list[Sequence[PlanStep]] = field(default_factory=list)
    activities: list[str] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)

    def plan(self, steps: Sequence[PlanStep]) -> None:
        self.plans.append(steps)

    def activity(self, title: str) -> None:
        self.activities.append(title)

    def session(self, session_id: str) -> None:
        self.sessions.append(session_id)


@dataclass
class AgentWorld:
    """One job's workspace, as the job server keeps it; every edit starts the program anew."""

    launch: AgentLaunch
    sandbox: Sandbox
    workspace: Workspace
    log: Path
    model: ModelServer
    mark: str
    progress: HeardProgress = field(default_factory=HeardProgress)
    conversation: list[Exchange] = field(default_factory=list)

    async def edit(self, prompt: str) -> EditResult:
        editor = AgentEditor(self.launch, self.sandbox, time_limit=TIME_LIMIT_S)
        session = self.progress.sessions[-1] if self.progress.sessions else None
        task = EditTask(prompt, self.workspace, self.log, tuple(self.conversation), session)
        result = await editor.edit(task, self.progress)
        self.conversation.append(Exchange(prompt, result.summary))
        return result

    @property
    def page(self) -> Path:
        return self.workspace.copy / PAGE

    def seen(self, path: Path) -> str:
        """A path in the copy as the agent's tools have to name it."""
        placed = self.sandbox.prepare(self.launch.program(), self.workspace)
        return str(placed.copy / path.relative_to(self.workspace.copy))

    def running(self) -> list[str]:
        """What still runs of all that the agent started."""
        return marked_processes(self.mark)


@asynccontextmanager
async def agent_world(real: RealAgent, sandbox: Sandbox, folder: Path) -> AsyncIterator[AgentWorld]:
    """A copy with one page, and an empty HOME. Installs the program where that was not done before."""
    programs = program_folder(real.package)
    for name in ("copy", "home", "given"):
        (folder / name).mkdir()
    (folder / "copy" / PAGE).write_text("# Colours\n\nA colour.\n", encoding="utf-8")
    mark = uuid.uuid4().hex
    async with ModelServer().running() as model:
        real.write_home(folder / "given", model.url)
        variables = {**real.variables(model.url), "PATH": f"{programs}:{os.environ['PATH']}", MARK: mark}
        launch = AgentLaunch(real.agent, variables, real.model, folder / "given")
        workspace = Workspace(folder / "copy", folder / "home")
        yield AgentWorld(launch, sandbox, workspace, folder / "job.log", model, mark)
