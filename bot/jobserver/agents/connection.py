"""Makes the protocol's calls, sets a session's options, and passes on an agent's updates and requests during a turn."""

import asyncio
import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from acp import PROTOCOL_VERSION, schema
from acp.connection import Connection
from acp.exceptions import RequestError
from acp.meta import AGENT_METHODS, CLIENT_METHODS
from pydantic import BaseModel, ValidationError

from bot import __version__
from bot.jobserver.agents.named import Agent
from bot.jobserver.agents.process import LINE_LIMIT, AgentMessages, AgentProcess, Message
from bot.jobserver.agents.turn import LOGIN_NEEDED, Turn, request_failed
from bot.jobserver.editors.job_log import JobLog
from bot.jobserver.errors import EditError, NotOfferedError
from bot.jobserver.settings import PREFIX
from bot.jobserver.text import one_line

_MOST_VALUES = 10
_MOST_CHARACTERS = 60
"""Length of a value when shown."""
_ANSWER_S = 60.0
"""Time limit of all calls except a turn; agents answer within 2 s on an idle machine."""
_CLOSE_S = 1.0
_LAST_WORDS_S = 0.3
Content = schema.TextContentBlock | schema.ResourceContentBlock
"""A part of a prompt."""
M = TypeVar("M", bound=BaseModel)


class Category(StrEnum):
    """The protocol's categories under our names, in the order to set: the model determines the efforts and modes."""

    MODEL = "model"
    EFFORT = "thought_level"
    MODE = "mode"

    @property
    def label(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class SessionOption:
    """One option; `current` and `values` are ids that the agent defines."""

    id: str
    current: str
    values: tuple[str, ...]


Options = Mapping[Category, SessionOption]


@dataclass(frozen=True)
class AgentSession:
    """A session of the agent, with its options."""

    id: str
    options: Options


Wanted = Mapping[Category, str]
"""The options to set; others are left to the agent."""


def options_of(
    listed: Sequence[schema.SessionConfigOptionSelect | schema.SessionConfigOptionBoolean] | None,
) -> Options:
    """Returns the options of known categories; as for the agent, the first of a category counts."""
    found: dict[Category, SessionOption] = {}
    for option in listed or ():
        category = next((known for known in Category if known == option.category), None)
        if category and category not in found and isinstance(option, schema.SessionConfigOptionSelect):
            values: list[str] = []
            for entry in option.options:
                group = entry.options if isinstance(entry, schema.SessionConfigSelectGroup) else [entry]
                values += [one.value for one in group]
            found[category] = SessionOption(option.id, option.current_value, tuple(values))
    return found


def option_to_set(agent: str, category: Category, value: str, options: Options) -> SessionOption | None:
    """Returns the option to set; None if it already has the value, or if the model was set at the agent's start.

    Raises:
        NotOfferedError: the agent does not offer the value.
    """
    option = options.get(category)
    if (option is None and category is Category.MODEL) or (option and option.current == value):
        return None
    if option and value in option.values:
        return option
    if category is Category.MODE:
        has = _listed(option) if option else "none that it lists"
        remedy = f"its version may be too old or too new; it has {has}"
    elif option:
        remedy = f"it has {_listed(option)}; set {PREFIX}{category.name} or {PREFIX}{category.name}S to these"
    else:
        remedy = f"it lists none with this model, so leave it out ({PREFIX}{category.name})"
    raise NotOfferedError(f"{agent} has no {category.label} “{_shown(value)}”: {remedy}")


def check_set(agent: str, category: Category, value: str, options: Options) -> None:
    """Raises NotOfferedError if the agent did not set the value."""
    if category not in options or options[category].current != value:
        raise NotOfferedError(f"{agent} did not accept the {category.label} “{_shown(value)}”, though it lists it")


def in_words(options: Options) -> str:
    """Returns each option's value and choices, in one line."""
    chosen = ((category.label, options[category]) for category in Category if category in options)
    return "; ".join(f"{words} {_shown(option.current)} (of {_listed(option)})" for words, option in chosen)


def _listed(option: SessionOption) -> str:
    more = len(option.values) - _MOST_VALUES
    return ", ".join(map(_shown, option.values[:_MOST_VALUES])) + (f" and {more} more" if more > 0 else "")


def _shown(value: str) -> str:
    return one_line(value, _MOST_CHARACTERS)


class AgentConnection:
    """A connection to a running agent. All calls raise EditError with a message for people."""

    def __init__(self, agent: Agent, process: AgentProcess, log: JobLog) -> None:
        self.agent = agent
        self._process = process
        self._log = log
        self.messages = AgentMessages(process.stdout, process.stdin, self._notified)
        self._connection = Connection(self._answer, self.messages)
        self._listener: Turn | None = None

    async def initialize(self) -> schema.InitializeResponse:
        """Announces support for questions, and nothing else: an agent has its own files, and nobody can log in here."""
        capabilities = schema.ClientCapabilities(
            elicitation=schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities()),
            field_meta=dict(self.agent.client_meta) or None,
        )
        request = schema.InitializeRequest(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=capabilities,
            client_info=schema.Implementation(name="pagehand", version=__version__),
        )
        response = await self._request("initialize", request, schema.InitializeResponse)
        if response.protocol_version != PROTOCOL_VERSION:
            raise EditError(
                f"{self.agent.name} uses version {response.protocol_version} of the Agent Client Protocol, "
                f"Pagehand version {PROTOCOL_VERSION}"
            )
        return response

    async def new_session(self, roots: Sequence[str]) -> AgentSession:
        """Starts a session in the first of the folders; agents that support more also get the others."""
        request = schema.NewSessionRequest(cwd=roots[0], additional_directories=list(roots[1:]) or None, mcp_servers=[])
        response = await self._request("session_new", request, schema.NewSessionResponse)
        return AgentSession(response.session_id, options_of(response.config_options))

    async def reopen_session(
        self, session_id: str, roots: Sequence[str], capabilities: schema.InitializeResponse
    ) -> AgentSession | None:
        """Resumes an earlier session; None if the agent cannot, or does not know it.

        `roots` as for `new_session`. Loading a session is not tried: it replays all of it, some into the next turn.
        """
        offered = capabilities.agent_capabilities
        if not (offered and offered.session_capabilities and offered.session_capabilities.resume is not None):
            return None
        request = schema.ResumeSessionRequest(
            session_id=session_id, cwd=roots[0], additional_directories=list(roots[1:]) or None, mcp_servers=[]
        )
        try:
            answer = await self._send("session_resume", request, _ANSWER_S)
        except RequestError as error:
            if error.code == LOGIN_NEEDED:
                raise self._failed(error) from None
            return None
        with contextlib.suppress(ValidationError):  # some agents leave the response empty
            response = schema.ResumeSessionResponse.model_validate(answer)
            return AgentSession(session_id, options_of(response.config_options))
        return AgentSession(session_id, {})

    async def set_option(self, session_id: str, option: SessionOption, value: str) -> AgentSession:
        """Sets an option, which may change the other options."""
        request = schema.SetSessionConfigOptionSelectRequest(session_id=session_id, config_id=option.id, value=value)
        response = await self._request("session_set_config_option", request, schema.SetSessionConfigOptionResponse)
        return AgentSession(session_id, options_of(response.config_options))

    async def prompt(self, session_id: str, content: Sequence[Content], listener: Turn) -> schema.PromptResponse:
        """Runs a turn, however long the agent works; `listener` gets its messages."""
        request = schema.PromptRequest(session_id=session_id, prompt=list(content))
        self._listener = listener
        try:
            return await self._request("session_prompt", request, schema.PromptResponse, limit=None)
        finally:
            self._listener = None

    async def cancel(self, session_id: str) -> None:
        """Asks the agent to stop the turn. Does nothing if the agent cannot be reached."""
        with contextlib.suppress(ConnectionError):
            await self._connection.send_notification(
                AGENT_METHODS["session_cancel"], _as_json(schema.CancelNotification(session_id=session_id))
            )

    async def close(self) -> None:
        """Call it after the process has been killed: before, it can hang."""
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(_CLOSE_S):
                await self._connection.close()

    async def _request(
        self, method: str, request: BaseModel, response: type[M], *, limit: float | None = _ANSWER_S
    ) -> M:
        try:
            return response.model_validate(await self._send(method, request, limit))
        except RequestError as error:
            raise self._failed(error) from None
        except ValidationError:
            raise EditError(
                f"{self.agent.name} answered in a way that Pagehand does not understand; "
                "its version may be too new or too old"
            ) from None

    async def _send(self, method: str, request: BaseModel, limit: float | None) -> Any:
        try:
            async with asyncio.timeout(limit):
                return await self._connection.send_request(AGENT_METHODS[method], _as_json(request))
        except TimeoutError:
            raise EditError(f"{self.agent.name} did not answer within {limit:g} s") from None
        except ConnectionError:
            raise await self._ended_early() from None

    def _failed(self, error: RequestError) -> EditError:
        words = request_failed(self.agent.name, error.code, str(error), error.data, login=self.agent.login)
        return EditError(words)

    async def _ended_early(self) -> EditError:
        if self.messages.too_long:
            return EditError(f"{self.agent.name} sent a message of more than {LINE_LIMIT // 1_000_000} MB")
        await asyncio.wait({self._process.exited}, timeout=_LAST_WORDS_S)
        how = f"exit code {self._process.exited.result()}" if self._process.exited.done() else "it closed its output"
        # The program's last output says more than its exit code.
        words = self._log.last_words()
        return EditError(f"{self.agent.name} ended before it was done ({how}){': ' if words else ''}{words}")

    def _notified(self, message: Message) -> None:
        if self._listener is None or message["method"] != CLIENT_METHODS["session_update"]:
            return
        # Kinds of updates that the SDK does not know yet are ignored.
        with contextlib.suppress(ValidationError):
            self._listener.updated(schema.SessionNotification.model_validate(message.get("params")))

    async def _answer(self, method: str, params: Any, is_notification: bool) -> Any:  # noqa: FBT001 - the SDK's own
        listener = None if is_notification else self._listener
        if listener and method == CLIENT_METHODS["session_request_permission"]:
            return listener.permission(schema.RequestPermissionRequest.model_validate(params))
        if listener and method == CLIENT_METHODS["elicitation_create"]:
            try:
                request = schema.CreateFormSessionElicitationRequest.model_validate(params)
            except ValidationError:  # a page to open, or an unknown kind of form
                return schema.DeclineElicitationResponse(action="decline")
            return await listener.elicited(request)
        raise RequestError.method_not_found(method)


def _as_json(model: BaseModel) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


@dataclass(frozen=True)
class Started:
    """What an agent reports before any turn, for people: its name and version, the options that are set and the others
    on offer, or why an option cannot be set.
    """

    version: str
    options: str = ""
    refusal: str = ""


async def started(
    connection: AgentConnection, wanted: Wanted, dispensable: Collection[Category], directory: str
) -> Started:
    """Starts a session and sets the wanted options.

    Raises:
        EditError: the agent does not speak the protocol.
    """
    info = (await connection.initialize()).agent_info
    version = one_line(f"{info.name} {info.version}") if info else "it does not report its version"
    try:
        session = await connection.new_session([directory])
        session = await with_options(connection, session, wanted, dispensable)
        return Started(version, options=in_words(session.options))
    except NotOfferedError as error:
        return Started(version, refusal=str(error))
    except EditError:  # such as a missing login, which the turn reports, too
        return Started(version)


async def with_options(
    connection: AgentConnection, session: AgentSession, wanted: Wanted, dispensable: Collection[Category] = ()
) -> AgentSession:
    """Sets the wanted options that have other values.

    Raises:
        NotOfferedError: the agent does not offer a value that is not `dispensable`.
    """
    for category in filter(wanted.__contains__, Category):
        value = wanted[category]
        try:
            option = option_to_set(connection.agent.name, category, value, session.options)
        except NotOfferedError:
            if category in dispensable:
                continue
            raise
        if option:
            session = await connection.set_option(session.id, option, value)
            check_set(connection.agent.name, category, value, session.options)
    return session
