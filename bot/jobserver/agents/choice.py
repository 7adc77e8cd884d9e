"""Sets up the agent that the settings name, and checks that it works."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import assert_never

from bot.jobapi.models import PlanStep
from bot.jobserver.agents.editor import AgentEditor
from bot.jobserver.agents.launch import AgentLaunch, agent_launch
from bot.jobserver.agents.named import NAMED
from bot.jobserver.editors.interface import EditTask
from bot.jobserver.egress.model_relay import check_budget, relays_models
from bot.jobserver.egress.proxy import Egress, egress_for
from bot.jobserver.errors import EditError, JobServerError
from bot.jobserver.findings import SetupFinding, installed
from bot.jobserver.sandbox.choice import open_sandbox
from bot.jobserver.sandbox.interface import Sandbox, Workspace
from bot.jobserver.sandbox.limits import RunLimits
from bot.jobserver.settings import PREFIX, JobServerSettings
from bot.jobserver.store.records import Question
from bot.jobserver.text import one_line
from bot.jobserver.usage import Spent

CHECK_S = 30.0
"""Time limit of the trial turn: agents retry for minutes, and a model that hangs says nothing."""
_HUNG = "check its address, and that it can be reached from here; if it was only slow, try again"
_NOT_RELAYED = "without the relay: its login is in the sandbox, and EGRESS has to list its hosts"
_SIGNED = "For Bedrock, Vertex or Azure set a gateway's address and key, or name their hosts in EGRESS"
_PROMPT = "Change nothing. Answer with the word: ready"


def agent_editor(
    settings: JobServerSettings,
    sandbox: Sandbox,
    environment: Mapping[str, str],
    egress: Egress,
    *,
    time_limit: float | None = None,
    mask: Callable[[str], str] = str,
) -> AgentEditor:
    """Returns the editor that drives the agent; `time_limit`, in seconds, overrides that of the settings.

    `mask` removes this server's secrets from the log.

    Raises:
        JobServerError: the agent cannot be used with these settings.
    """
    launch = agent_launch(settings, environment)
    check_budget(settings, launch.login)
    return AgentEditor(
        launch,
        sandbox,
        RunLimits.for_settings(settings),
        egress,
        time_limit=time_limit or settings.time_limit.total_seconds(),
        mask=mask,
    )


async def check_editor(
    settings: JobServerSettings,
    environment: Mapping[str, str],
    *,
    answer_within: float = CHECK_S,
) -> AsyncIterator[SetupFinding]:
    """Yields findings until something is missing that the other checks need. It runs an agent's turn with its model."""
    match settings.editor:
        case "builtin":
            words = f"the demo's, which knows four things. For an agent, set {PREFIX}AGENT"
            yield SetupFinding("editor", is_ok=True, message=words)
        case "command":
            yield installed(settings.command, "")
        case "agent":
            async for finding in _check_agent(settings, environment, answer_within):
                yield finding
        case _:
            assert_never(settings.editor)


async def _check_agent(
    settings: JobServerSettings, environment: Mapping[str, str], limit: float
) -> AsyncIterator[SetupFinding]:
    try:
        launch = agent_launch(settings, environment)
        found = installed(launch.agent.command, launch.agent.install)
        yield found
        if not found.is_ok:
            return
        if relays_models(settings):
            yield model_finding(launch, settings)
        sandbox = await open_sandbox(settings, settings.data_directory)
        yield SetupFinding("sandbox", is_ok=True, message=settings.sandbox)
        editor = agent_editor(settings, sandbox, environment, egress_for(settings), time_limit=limit)
        with tempfile.TemporaryDirectory(prefix="pagehand-check-") as directory:
            async for finding in _run_trial(editor, settings.models, Path(directory), limit):
                yield finding
    except JobServerError as error:
        yield SetupFinding("agent", is_ok=False, message=one_line(str(error), 1000))


def model_finding(launch: AgentLaunch, settings: JobServerSettings) -> SetupFinding:
    """Says how an agent without network access reaches its model."""
    if (login := launch.login) is not None:
        key = f"{PREFIX}MODEL_KEY" if settings.model_api else login.key_variable
        return SetupFinding("model", is_ok=True, message=f"by the relay, which calls {login.upstream} with {key}")
    if launch.agent.name not in NAMED:
        return SetupFinding("model", is_ok=True, message=f"none: {PREFIX}MODEL_API and {PREFIX}MODEL_KEY give it one")
    if settings.agent_home is not None or settings.egress:
        return SetupFinding("model", is_ok=True, message=_NOT_RELAYED)
    return SetupFinding(
        "model", is_ok=False, message=f"there is no key that the relay could use: {launch.agent.login}. {_SIGNED}"
    )


async def _run_trial(
    editor: AgentEditor, models: Sequence[str], directory: Path, limit: float
) -> AsyncIterator[SetupFinding]:
    task = EditTask(_PROMPT, Workspace(directory / "copy", directory / "home"), directory / "log")
    task.workspace.copy.mkdir()
    task.workspace.home.mkdir()
    try:
        started = await editor.started(task)
    except EditError as error:
        yield SetupFinding("starts", is_ok=False, message=str(error))
        return
    yield SetupFinding("starts", is_ok=True, message=started.version)
    if started.refusal:
        yield SetupFinding("options", is_ok=False, message=started.refusal)
        return
    if started.options:
        yield SetupFinding("options", is_ok=True, message=started.options)
    for model in models:
        chosen = await editor.started(replace(task, model=model))
        if chosen.refusal:
            yield SetupFinding("models", is_ok=False, message=chosen.refusal)
    now = asyncio.get_running_loop().time
    began = now()
    try:
        answer = (await editor.edit(task, _Unheard())).summary
    except EditError as error:
        is_hung = now() - began >= limit
        words = f"nothing came from its model within {limit:g} s: {_HUNG}" if is_hung else str(error)
        yield SetupFinding("answers", is_ok=False, message=words)
        return
    words = f"“{one_line(answer, 60)}”, after {now() - began:.1f} s" if answer else "nothing was said"
    yield SetupFinding("answers", is_ok=bool(answer), message=words)


class _Unheard:
    def plan(self, steps: Sequence[PlanStep]) -> None: ...

    def activity(self, title: str) -> None: ...

    def session(self, session_id: str) -> None: ...

    def spent(self, spent: Spent) -> None: ...

    async def ask(self, question: Question, is_answer: Callable[[str], bool]) -> str | None: ...
