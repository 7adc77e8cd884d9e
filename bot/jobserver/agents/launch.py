"""Prepares an agent's start: its program, its variables, its way to its model, and the initial files of its HOME."""

import os
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from bot.jobapi.models import Mode
from bot.jobserver.agents.connection import Category, Wanted
from bot.jobserver.agents.named import Agent, agent_for
from bot.jobserver.editors.command import passed_variables
from bot.jobserver.editors.interface import EditTask
from bot.jobserver.egress.model_relay import MODEL_KEY, MODEL_URL, RelayedModel, model_relay, relays_models
from bot.jobserver.egress.providers import ModelLogin, login_of, login_with
from bot.jobserver.errors import EditError, JobServerError
from bot.jobserver.sandbox.interface import Program
from bot.jobserver.settings import PREFIX, JobServerSettings
from bot.jobserver.usage import Spent
from bot.runtime.settings import read_variable

MOST_FILES = 1000
LARGEST_FILE = 10_000_000
MODEL, RANDOM = "{model}", "{random}"
_NEEDED = {MODEL: "MODEL", MODEL_URL: "MODEL_API", MODEL_KEY: "MODEL_API"}
_NO_SECRETS = ("_URL", "_HOST", "_MODEL", "_PROVIDER", "_MODE", "_REGION", "_RETRIES")
"""Suffixes of variables whose values may be shown: an address helps to understand an error."""
_ITS_OWN = "default"
"""What agents call their default model in their lists; not the name of a model."""


def write_file(home: Path, path: PurePosixPath, data: bytes, *, replace: bool = True) -> None:
    """Writes a file below `home` that only the server's user can read; links on the way are replaced, not followed.

    Call it only while no program runs that could change `home`.

    Raises:
        OSError: it cannot be written.
    """
    folder = home
    for part in path.parent.parts:
        folder /= part
        if folder.is_symlink() or not folder.is_dir():
            folder.unlink(missing_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    file = home / path
    if os.path.lexists(file):
        if not replace:
            return
        file.unlink()
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as stream:
        stream.write(data)


def files_below(template: Path) -> Iterator[PurePosixPath]:
    """Yields the relative paths of the files in AGENT_HOME.

    Raises:
        OSError: the folder cannot be read, or is too large.
    """
    found = 0
    for folder, _, names in os.walk(template, onerror=_raise):
        for name in sorted(names):
            path = Path(folder, name)
            found += 1
            if found > MOST_FILES or path.stat().st_size > LARGEST_FILE:
                raise OSError(0, f"it has more than {MOST_FILES} files, or one over {LARGEST_FILE} bytes")
            yield PurePosixPath(path.relative_to(template))


def _raise(error: OSError) -> None:
    raise error


@dataclass(frozen=True)
class AgentLaunch:
    """How to start an agent. `passed`: the server's variables that it gets, with their values.

    `variables` are those of AGENT_ENVIRONMENT; in them and in the command, `placeholders` are replaced, and `RANDOM` by
    a new password. `model` is set when it starts, the `wanted` options in its session, except for those `dispensable`
    ones that it does not offer. `home`: a folder whose files, such as a login, each HOME starts with; our own files
    never replace them. `login` is the relay's for its model, unless it logs in itself; `relayed` is that relay, for one
    run. `is_at_its_makers`: its model is not at another address, whose models it would not know.
    """

    agent: Agent
    passed: Mapping[str, str] = field(default_factory=dict, repr=False)
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    placeholders: Mapping[str, str] = field(default_factory=dict, repr=False)
    model: str | None = None
    home: Path | None = None
    login: ModelLogin | None = None
    relayed: RelayedModel | None = None
    wanted: Wanted = field(default_factory=dict)
    dispensable: Collection[Category] = ()
    is_at_its_makers: bool = False

    def choosing(self, model: str | None, effort: str | None) -> "AgentLaunch":
        """Returns the launch with these in the place of its own; what is empty stays."""
        chosen = {Category.MODEL: model, Category.EFFORT: effort}
        wanted = {**self.wanted, **{category: value for category, value in chosen.items() if value}}
        # The effort of the settings is for their model; another one may have none, or others.
        dispensable = (Category.EFFORT,) if model and not effort else ()
        launch = replace(self, wanted=wanted, dispensable=dispensable)
        if not model:
            return launch
        is_listed = self.is_at_its_makers and self.agent.listed_models and self.agent.listed_models.fullmatch(model)
        return replace(
            launch,
            model=None if is_listed else model,
            placeholders={**self.placeholders, MODEL: model},
        )

    @property
    def names_model(self) -> bool:
        """Whether the agent is told its model when it starts, or is known to list models in its session."""
        told = (*self.agent.command, *self.variables.values())
        return bool(self.agent.listed_models) or any(MODEL in text for text in told)

    def for_task(self, task: EditTask) -> "AgentLaunch":
        """Returns the launch for an instruction, with the model and effort that it asks for."""
        launch = self.choosing(task.model, task.effort)
        if task.mode is Mode.PLAN and self.agent.plan_mode:
            return replace(launch, wanted={**launch.wanted, Category.MODE: self.agent.plan_mode})
        return launch

    @asynccontextmanager
    async def opened(
        self, refused: Callable[[str], None], spent: Callable[[Spent], None] = lambda _: None
    ) -> AsyncIterator["AgentLaunch"]:
        """Yields the launch for one run, with its model relayed if it has a login for that, as `model_relay` does."""
        if self.login is None:
            yield self
            return
        async with model_relay(self.login, refused, spent) as model:
            passed, variables = map(model.login.removed_from, (self.passed, self.variables))
            placeholders = {**self.placeholders, MODEL_URL: model.address, MODEL_KEY: model.token}
            passed |= model.variables
            yield replace(self, passed=passed, variables=variables, placeholders=placeholders, relayed=model)

    def program(self) -> Program:
        """Returns the program with its variables."""
        model = {self.agent.model_variable: self.model} if self.agent.model_variable and self.model else {}
        given = {name: self._filled(value) for name, value in self.variables.items()}
        environment = {**self.agent.environment, **self.passed, **model, **given}
        command = tuple(map(self._filled, self.agent.command))
        return Program(command, environment, self.relayed.doors if self.relayed else ())

    def check_placeholders(self) -> None:
        """Raises JobServerError for a placeholder without a value."""
        known = {**self.placeholders, **dict.fromkeys((MODEL_URL, MODEL_KEY) if self.login else (), "")}
        for placeholder, setting in _NEEDED.items():
            used = any(placeholder in text for text in (*self.agent.command, *self.variables.values()))
            if used and placeholder not in known:
                raise JobServerError(f"{self.agent.name} is to get {placeholder}: set {PREFIX}{setting}")

    def _filled(self, text: str) -> str:
        for placeholder, value in {**self.placeholders, RANDOM: secrets.token_urlsafe(24)}.items():
            text = text.replace(placeholder, value)
        return text

    def hidden(self, program: Program) -> list[str]:
        """Returns the values that must not be shown."""
        shown = {*self.agent.environment.items(), *self.variables.items()}
        variables = program.environment.items() - shown
        key = [self.relayed.key] if self.relayed else []
        return [*(value for name, value in variables if not name.endswith(_NO_SECRETS)), *key]

    def fill(self, home: Path) -> None:
        """Writes the initial files of HOME before each start, so that own_files are always up to date.

        Raises:
            EditError: they cannot be written.
        """
        try:
            own_files = self.agent.files(self.model, self.passed)
            given = set(files_below(self.home)) if self.home else set()
            for path in given:
                write_file(home, path, (self.home or home).joinpath(path).read_bytes(), replace=False)
            for name, text in own_files.items():
                if PurePosixPath(name) not in given:
                    write_file(home, PurePosixPath(name), text.encode())
        except OSError as error:
            raise EditError(f"the files of {self.agent.name}'s HOME cannot be written: {error.strerror}") from error


def agent_launch(settings: JobServerSettings, environment: Mapping[str, str]) -> AgentLaunch:
    """Returns how the agent is started. Raises JobServerError as `agent_editor` does."""
    agent = agent_for(settings.agent)
    if settings.sandbox != "none":
        agent = replace(agent, mode=agent.mode_in_sandbox or agent.mode)
    names = (*agent.keys, *agent.address_variables, *agent.passed, *settings.pass_environment)
    passed = passed_variables(names, environment, never=settings.api_key.values)
    own, placeholders = _without_relay(settings)

    def read(name: str) -> str:
        return read_variable(name, environment)

    own_login = login_with(agent.api, agent.keys, read) if agent.api else None
    login = login_of(settings) or own_login
    relayed = login if relays_models(settings) else None
    if relayed is not None:
        relayed.check_address()
        own_variables = frozenset((*agent.keys, *agent.address_variables))
        model = None if settings.model == _ITS_OWN else settings.model
        relayed = replace(relayed, own=own_variables, model=model, choices=settings.models)
    launch = AgentLaunch(
        agent,
        {**passed, **own},
        settings.agent_environment,
        placeholders,
        home=settings.agent_home,
        login=relayed,
        wanted={Category.MODE: agent.mode} if agent.mode else {},
        is_at_its_makers=own_login is not None and not own_login.address,
    ).choosing(settings.model, settings.effort)
    launch.check_placeholders()
    return launch


def _without_relay(settings: JobServerSettings) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Returns the variables and placeholders of the MODEL_ settings for an agent that has network access."""
    if (login := login_of(settings)) is None or relays_models(settings):
        return {}, {}
    login.check_address()
    address, key = login.plain_address, login.key()
    return login.variables(address, key), {MODEL_URL: address, MODEL_KEY: key}
