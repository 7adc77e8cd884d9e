"""The editor that drives a coding agent over the Agent Client Protocol: one turn for each instruction."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from acp import schema

from bot.jobapi.models import Hide, Mode
from bot.jobserver.agents.connection import (
    AgentConnection,
    Category,
    Content,
    Started,
    in_words,
    started,
    with_options,
)
from bot.jobserver.agents.launch import MODEL, AgentLaunch
from bot.jobserver.agents.pages import pages_read, proposed_pages
from bot.jobserver.agents.permissions import CopyPaths, PermissionPolicy
from bot.jobserver.agents.process import AgentProcess, uninterrupted
from bot.jobserver.agents.questions import Questions
from bot.jobserver.agents.turn import Turn, TurnEnd, check, result
from bot.jobserver.editors.interface import (
    EditProgress,
    EditResult,
    EditTask,
    attachments_in_words,
    with_conversation,
)
from bot.jobserver.editors.job_log import JobLog, open_log, told_refusals
from bot.jobserver.egress.proxy import Egress, EgressRefusals
from bot.jobserver.errors import EditError
from bot.jobserver.sandbox.interface import Sandbox, SandboxedProgram
from bot.jobserver.sandbox.limits import RunLimits
from bot.jobserver.store.records import EarlierInstruction
from bot.jobserver.usage import Spent
from bot.runtime.secrets.masking import SecretMasker
from bot.runtime.tasks import watched

_RULES = {
    Mode.EDIT: """\
You work on the documentation in the current directory, for somebody who reads your answer in a chat and cannot see \
your screen. Change files in this directory only, and leave version control alone: what you leave is committed for \
you. End with a short answer in Markdown that says what you changed. Where you cannot go on without an answer, change \
nothing and ask: with your tool for questions, if you have one, else at the end of your answer.""",
    Mode.PLAN: """\
You plan a change of the documentation in the current directory, for people who read your answer in a chat, cannot see \
your screen and are no engineers. Change nothing: nobody has agreed yet, and what you write here is not kept. End with \
the plan in Markdown, by leaving your plan mode with it, if you have one: what will be different for readers, and why; \
the pages that you would change, in a list of lines `- path: reason`; and what you will not do. Where something is \
unclear, ask with your tool for questions, if you have one; else say in the plan what you assume.""",
    Mode.ASK: """\
You answer a question about the documentation in the current directory, for somebody who reads your answer in a chat \
and cannot see your screen. Change nothing, even if you find a fault: what you write here is not kept. End with a \
short answer in Markdown that names the pages on which it rests, or says that they do not tell.""",
}
_CHANGED_MEANWHILE = """\
This continues your earlier work. The files may have changed since: what is on the disk counts."""
_REQUEST = "This is the instruction now:"
_CANCEL_S = 1.5
"""Time for an agent to stop on request; agents that do take up to 75 ms."""


def first_prompt(prompt: str, conversation: Sequence[EarlierInstruction], files: str, mode: Mode) -> str:
    """Returns the prompt of a new session. `conversation`: the job's earlier exchanges, oldest first.

    Like `next_prompt`, it begins with our own words, since agents take a prompt that begins with a slash or certain
    other characters for a command. `files` describes the attachments.
    """
    asked = with_conversation(prompt, conversation) if conversation else f"{_REQUEST}\n\n{prompt}"
    return "\n\n".join([_RULES[mode], *([files] if files else []), asked])


def next_prompt(prompt: str, files: str, mode: Mode) -> str:
    """Returns the prompt of a session that remembers the earlier conversation, perhaps under other rules."""
    return "\n\n".join([_CHANGED_MEANWHILE, _RULES[mode], *([files] if files else []), _REQUEST, prompt])


@dataclass(frozen=True)
class _Run:
    """The context of one instruction. `attachments`: the folder of the job's attached files, as the agent sees it."""

    task: EditTask
    progress: EditProgress
    log: JobLog
    redact: Hide
    attachments: Path
    questions: Questions
    launch: AgentLaunch

    def directories(self, capabilities: schema.InitializeResponse) -> list[str]:
        """Returns that folder, if it exists, for an agent that accepts additional directories. Blocking."""
        agent, folder = capabilities.agent_capabilities, self.task.workspace.attachments
        sessions = agent.session_capabilities if agent else None
        takes_more = sessions is not None and sessions.additional_directories is not None
        return [str(self.attachments)] if takes_more and folder is not None and folder.is_dir() else []

    def content(self, text: str) -> list[Content]:
        """Returns the whole prompt, with a link to each file."""
        links = [
            schema.ResourceContentBlock(
                type="resource_link",
                name=file.name,
                uri=(self.attachments / file.name).as_uri(),
                mime_type=file.mimetype,
                size=file.size,
            )
            for file in self.task.attachments
        ]
        return [schema.TextContentBlock(type="text", text=text), *links]


@dataclass(frozen=True)
class AgentEditor:
    """Runs the agent in the sandbox for one turn; `time_limit` is in seconds.

    `mask` removes this server's secrets from the log.
    """

    launch: AgentLaunch
    sandbox: Sandbox
    limits: RunLimits
    egress: Egress
    time_limit: float
    mask: Callable[[str], str] = str

    async def edit(self, task: EditTask, progress: EditProgress) -> EditResult:
        seen = self.sandbox.attachments(task.workspace)
        async with told_refusals(task.log) as refusals:
            async with self._opened(task, refusals, progress.spent) as (launch, prepared, log, redact):
                try:
                    async with asyncio.timeout(self.time_limit) as limit:
                        questions = Questions(progress, redact, limit)
                        run = _Run(task, progress, log, redact, seen, questions, launch)
                        result = await self._edit(run, prepared)
                except TimeoutError:
                    raise EditError(f"{self.launch.agent.name} took longer than {self.time_limit:g} s") from None
            return replace(result, notes=refusals.in_words)

    async def started(self, task: EditTask) -> Started:
        """Starts the agent and sets the wanted options, in a session without a turn.

        Raises:
            EditError: it cannot be started, or does not speak the protocol.
        """
        async with self._opened(task, EgressRefusals()) as (launch, prepared, log, redact):
            async with self._connected(prepared, log) as (_, connection):
                start = await started(connection, launch.wanted, launch.dispensable, str(prepared.copy))
            return Started(start.version, redact(start.options), redact(start.refusal))

    @contextlib.asynccontextmanager
    async def _opened(
        self, task: EditTask, refusals: EgressRefusals, spent: Callable[[Spent], None] = lambda _: None
    ) -> AsyncIterator[tuple[AgentLaunch, SandboxedProgram, JobLog, Hide]]:
        """Prepares a run: its ways to the model and other hosts, its HOME, its log; for an edit, a writable copy."""
        workspace = replace(task.workspace, read_only=task.mode is not Mode.EDIT)
        of_task = self.launch.for_task(task)
        async with self.egress.opened(refusals) as connected, of_task.opened(refusals.note, spent) as launch:
            program = launch.program()
            redact = SecretMasker(launch.hidden(program)).mask_own
            with open_log(task.log, lambda text: self.mask(redact(text))) as log:
                try:
                    await asyncio.to_thread(launch.fill, workspace.home)
                    yield launch, self.sandbox.prepare(connected(program), workspace), log, redact
                except EditError as error:
                    raise EditError(redact(str(error))) from None

    async def _edit(self, run: _Run, prepared: SandboxedProgram) -> EditResult:
        workspace, mode = run.task.workspace, run.task.mode
        paths = CopyPaths(prepared.copy, workspace.copy)
        permissions = PermissionPolicy(paths, run.attachments if workspace.attachments else None, mode)
        async with self._connected(prepared, run.log) as (process, connection):
            turn = self._take_turn(connection, run, permissions, str(prepared.copy))
            end = await watched(turn, self.limits.watch(self.launch.agent.name, workspace, process.pid))
        run.log.line(f"[{end.response.stop_reason}]")
        relayed = run.launch.relayed
        check(end, self.launch.agent, permissions.refused, relayed.fault if relayed else None)
        refused, questions = list(map(run.redact, permissions.refused)), run.questions
        found = result(end, refused, questions.unanswered, was_answered=questions.has_answer, mode=mode)
        return await asyncio.to_thread(_with_pages, found, paths, end) if mode is not Mode.EDIT else found

    async def _take_turn(
        self, connection: AgentConnection, run: _Run, permissions: PermissionPolicy, directory: str
    ) -> TurnEnd:
        session_id, prompt = await self._open_session(connection, run, directory)
        turn = Turn(session_id, run.progress, permissions, run.questions, run.log, run.redact)
        response = await _prompted(connection, session_id, prompt, turn)
        if self.launch.agent.reports_usage_per_turn or session_id != run.task.session:
            run.progress.spent(turn.spent(None if self.launch.login else response.usage))
        return turn.ended(response)

    @contextlib.asynccontextmanager
    async def _connected(
        self, prepared: SandboxedProgram, log: JobLog
    ) -> AsyncIterator[tuple[AgentProcess, AgentConnection]]:
        """Starts the agent, and ends it with all its processes, whatever happens."""
        try:
            process = await AgentProcess.start(prepared, log.write)
        except OSError as error:
            reason = error.strerror or "unknown reason"
            raise EditError(f"{self.launch.agent.name} cannot be started: {reason}") from error
        connection = AgentConnection(self.launch.agent, process, log)
        at_once = True
        try:
            yield process, connection
            at_once = False
        finally:
            await uninterrupted(_end(process, connection, at_once=at_once))
            if ignored := connection.messages.ignored:
                log.line(f"[{ignored} lines of its output were not messages]")

    async def _open_session(self, connection: AgentConnection, run: _Run, directory: str) -> tuple[str, list[Content]]:
        """Returns the session and the prompt; a resumed session needs less context."""
        task = run.task
        files = attachments_in_words(task.attachments, run.attachments) if task.attachments else ""
        capabilities = await connection.initialize()
        roots = [directory, *await asyncio.to_thread(run.directories, capabilities)]
        session = None
        if task.session:
            session = await connection.reopen_session(task.session, roots, capabilities)
            if session is None:
                run.log.line("[the earlier session cannot be opened: the conversation is given again]")
        if is_new := session is None:
            session = await connection.new_session(roots)
        if task.model and Category.MODEL not in session.options and not run.launch.names_model:
            words = f"lists no models, and {MODEL} is not in its settings: it cannot be told which one to use"
            raise EditError(f"{run.launch.agent.name} {words}")
        session = await with_options(connection, session, run.launch.wanted, run.launch.dispensable)
        if session.options:
            run.log.line(f"[{in_words(session.options)}]")
        if is_new:
            run.progress.session(session.id)
            text = first_prompt(task.prompt, task.conversation, files, task.mode)
        else:
            text = next_prompt(task.prompt, files, task.mode)
        return session.id, run.content(text)


def _with_pages(found: EditResult, paths: CopyPaths, end: TurnEnd) -> EditResult:
    """Adds the pages that a plan lists, or that were read for an answer. Blocking."""
    read = () if found.proposal else pages_read(paths, end.read)
    return replace(found, proposed_pages=proposed_pages(paths, found.proposal), pages_read=read)


async def _prompted(
    connection: AgentConnection, session_id: str, prompt: Sequence[Content], turn: Turn
) -> schema.PromptResponse:
    """Runs the turn; when cancelled, asks the agent to stop and gives it a moment to do so."""
    asking = asyncio.create_task(connection.prompt(session_id, prompt, turn))
    try:
        return await asyncio.shield(asking)
    except EditError as error:
        raise EditError(turn.with_last_words(str(error))) from None
    except asyncio.CancelledError:
        await _stop(connection, session_id, turn, asking)
        raise
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def _stop(
    connection: AgentConnection, session_id: str, turn: Turn, asking: asyncio.Task[schema.PromptResponse]
) -> None:
    # Open questions are answered first: some agents wait for these answers forever.
    await turn.withdraw()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_CANCEL_S):
            await connection.cancel(session_id)
            await asyncio.wait({asking})


async def _end(process: AgentProcess, connection: AgentConnection, *, at_once: bool) -> None:
    await (process.kill() if at_once else process.end())
    await connection.close()
