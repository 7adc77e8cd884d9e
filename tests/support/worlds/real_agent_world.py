"""An agent's program from its registry, driven by the agent editor, with the test's own model."""

import os
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.agents.packages import NotInstalled, package_of, program_folder
from support.agents.real_agents import MARK, RealAgent, marked_processes
from support.fakes.job_ports import FakeProgress
from support.servers.model_server import ModelServer

from bot.jobserver.agents.choice import agent_editor
from bot.jobserver.agents.editor import AgentEditor
from bot.jobserver.agents.named import Agent, agent_for
from bot.jobserver.editors.interface import EditResult, EditTask, TaskFile
from bot.jobserver.egress.proxy import egress_for
from bot.jobserver.pipeline.job_folders import drop_caches
from bot.jobserver.sandbox.choice import NoSandbox
from bot.jobserver.sandbox.interface import Program, Sandbox, Workspace
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.settings.sandbox import OPEN
from bot.jobserver.store.records import EarlierInstruction

PAGE = "colours.md"
SERVER_KEY = "planted-key-of-the-job-server"


@dataclass
class RealAgentWorld:
    """One job's workspace, as the job server keeps it. Every edit starts a new process of the program.

    `environment` is the server's, `mark` the value of a variable that all processes of the agent have.
    """

    settings: JobServerSettings
    environment: Mapping[str, str]
    sandbox: Sandbox
    workspace: Workspace
    model: ModelServer
    mark: str
    progress: FakeProgress = field(default_factory=FakeProgress)
    conversation: list[EarlierInstruction] = field(default_factory=list)
    editor: AgentEditor = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Drops what the server kept in memory, and what it removes from a HOME after each instruction."""
        drop_caches(self.workspace.home, agent_for(self.settings.agent).caches)
        self.editor = agent_editor(self.settings, self.sandbox, self.environment, egress_for(self.settings))

    async def edit(self, prompt: str, attachments: Sequence[TaskFile] = (), **asked: Any) -> EditResult:
        session = self.progress.sessions[-1] if self.progress.sessions else None
        task = EditTask(
            prompt, self.workspace, self.log, tuple(self.conversation), session, tuple(attachments), **asked
        )
        result = await self.editor.edit(task, self.progress)
        self.conversation.append(EarlierInstruction(prompt, result.summary))
        return result

    @property
    def page(self) -> Path:
        return self.workspace.copy / PAGE

    @property
    def log(self) -> Path:
        return self.workspace.copy.parent / "job.log"

    def attached(self, name: str, content: bytes, mimetype: str) -> TaskFile:
        """Puts a file into the folder of attachments."""
        folder = self.workspace.attachments
        assert folder is not None
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
        return TaskFile(name, name, mimetype, len(content))

    def attachment(self, name: str) -> str:
        """The path of an attachment for the agent's tools."""
        return str(self.sandbox.attachments(self.workspace) / name)

    def path(self, name: str) -> str:
        """A path, relative to the copy, for the agent's tools."""
        return str(self.sandbox.prepare(Program(("true",)), self.workspace).copy / name)

    def files_holding(self, text: str) -> list[Path]:
        """Returns the files with a text that the agent could have kept or found."""
        folders = (self.workspace.copy, self.workspace.home)
        files = (path for folder in folders for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
        return [path for path in files if text.encode() in path.read_bytes()]

    def running(self) -> list[str]:
        """Returns the processes of the agent that are still running."""
        return marked_processes(self.mark)


def path_with(agent: Agent) -> str:
    """Returns a PATH with the agent's program. Installs it if needed; skips the test if it cannot be had here."""
    try:
        return f"{program_folder(package_of(agent))}:{os.environ['PATH']}"
    except NotInstalled as reason:
        pytest.skip(str(reason))


@asynccontextmanager
async def real_agent_world(
    real: RealAgent, sandbox: Sandbox, folder: Path, **settings: Any
) -> AsyncIterator[RealAgentWorld]:
    """Opens a copy with one page, and an empty HOME. Skips the test if the program cannot be had here."""
    path = path_with(real.agent)
    workspace = Workspace(folder / "copy", folder / "home", folder / "attachments")
    for directory in (workspace.copy, workspace.home):
        directory.mkdir()
    (workspace.copy / PAGE).write_text("# Colours\n\nA colour.\n", encoding="utf-8")
    mark = uuid.uuid4().hex
    async with ModelServer().running() as model:
        environment = {**real.variables(model.url), "PATH": path, MARK: mark}
        values: dict[str, Any] = {
            "repository": str(folder / "repository"),
            "api_key": SERVER_KEY,
            **real.settings(model.url),
            "pass_environment": ("PATH", MARK),
            "allow_root": True,
            **({"sandbox": "none", "egress": OPEN} if isinstance(sandbox, NoSandbox) else {"egress": ()}),
        }
        configured = JobServerSettings(**(values | settings))
        yield RealAgentWorld(configured, environment, sandbox, workspace, model, mark)
