"""What an agent's program says it can do, at its start and in a turn: a row of the job server's README."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from acp.schema import (
    Cost,
    CreateElicitationResponse,
    CreateFormSessionElicitationRequest,
    DeclineElicitationResponse,
    DeniedOutcome,
    InitializeResponse,
    PromptResponse,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionNotification,
    TextContentBlock,
    UsageUpdate,
)
from support.agents.packages import package_of, program_folder
from support.agents.real_agents import RealAgent
from support.servers.model_script import Say, ToolCall
from support.servers.model_server import ModelServer

from bot.jobserver.agents.choice import agent_launch
from bot.jobserver.agents.connection import AgentConnection, with_options
from bot.jobserver.agents.log import open_log
from bot.jobserver.agents.options import AgentSession, Category
from bot.jobserver.agents.process import AgentProcess
from bot.jobserver.sandbox.choice import NoSandbox
from bot.jobserver.sandbox.interface import Workspace
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.settings.sandbox import OPEN

_PROMPT = "Fix the spelling"
_QUESTION = {"question": "Which spelling?", "header": "Spelling", "options": [
    {"label": "American", "description": "color"}, {"label": "British", "description": "colour"},
]}  # fmt: skip
QUESTIONS = {
    "claude": ToolCall("AskUserQuestion", {"questions": [{**_QUESTION, "multiSelect": False}]}),
    "codex": ToolCall("request_user_input", {"questions": [{**_QUESTION, "id": "spelling"}]}),
}
_LIKE_A_QUESTION = re.compile(r"ask_?user|question|user_input|elicit", re.IGNORECASE)
"""How a model calls a tool to ask a question."""


class _Listener:
    """Allows nothing and declines questions."""

    def __init__(self) -> None:
        self.is_asked = False
        self.is_told_money = False

    def updated(self, notification: SessionNotification) -> None:
        match notification.update:
            case UsageUpdate(cost=Cost()):
                self.is_told_money = True
            case _:
                pass

    def permission(self, _: RequestPermissionRequest) -> RequestPermissionResponse:
        return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))

    async def elicited(self, _: CreateFormSessionElicitationRequest) -> CreateElicitationResponse:
        self.is_asked = True
        return DeclineElicitationResponse(action="decline")


@dataclass(frozen=True)
class Abilities:
    """What a program said about itself and a session, how its turn ended, and what was heard meanwhile."""

    real: RealAgent
    said: InitializeResponse
    session: AgentSession
    end: PromptResponse
    heard: _Listener

    def row(self) -> str:
        """Returns the line of the table."""
        offered = self.said.agent_capabilities
        sessions = offered.session_capabilities if offered else None
        cells = (
            f"`{self.real.agent.name}`",
            package_of(self.real.agent).version,
            _yes(offered and offered.load_session),
            _yes(sessions and sessions.resume is not None),
            _those((category.label, category in self.session.options) for category in Category),
            _yes(self.heard.is_asked),
            _yes(sessions and sessions.additional_directories is not None),
            _those([("tokens", self.end.usage is not None), ("money", self.heard.is_told_money)]),
        )
        return f"| {' | '.join(cells)} |"


def _yes(answer: object) -> str:
    return "yes" if answer else "no"


def _those(found: Iterable[tuple[str, bool]]) -> str:
    return ", ".join(name for name, is_there in found if is_there) or "no"


async def abilities_of(real: RealAgent, folder: Path) -> Abilities:
    """Starts the program and runs a turn in which its model asks a question, if it has a tool for that.

    Raises:
        NotInstalled: it cannot be had here.
    """
    workspace = Workspace(folder / "copy", folder / "home")
    for directory in (workspace.copy, workspace.home):
        directory.mkdir()
    programs = program_folder(package_of(real.agent))
    settings = JobServerSettings(
        repository=str(folder), api_key="planted-key-of-the-job-server", agent=(real.agent.name,), model=real.model,
        pass_environment=("PATH",), sandbox="none", egress=OPEN,
    )  # fmt: skip
    async with ModelServer().running() as model:
        model.script.on(_PROMPT, *filter(None, (QUESTIONS.get(real.agent.name),)), Say("Done."))
        path = f"{programs}:{os.environ['PATH']}"
        launch = agent_launch(settings, {**real.variables(model.url), "PATH": path})
        launch.fill(workspace.home)
        placed = NoSandbox().prepare(launch.program(), workspace)
        with open_log(folder / "log", str) as log:
            process = await AgentProcess.start(placed, log.errors)
            connection = AgentConnection(launch.agent, process, log)
            try:
                said = await connection.initialize()
                session = await with_options(
                    connection, await connection.new_session([str(placed.copy)]), launch.wanted
                )
                heard = _Listener()
                prompt = [TextContentBlock(type="text", text=_PROMPT)]
                end = await connection.prompt(session.id, prompt, heard)
            finally:
                await process.kill()
                await connection.close()
        tools = {tool for request in model.requests for tool in request.tools}
    asking = {tool for tool in tools if _LIKE_A_QUESTION.search(tool)}
    known = QUESTIONS.get(real.agent.name)
    assert asking == ({known.name} if known else set()), "a tool with which the model asks, and that nobody tried"
    return Abilities(real, said, session, end, heard)
