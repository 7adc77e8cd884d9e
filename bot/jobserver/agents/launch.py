"""How an agent is started: its program, its variables, and the files that its HOME begins with."""

import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from bot.jobserver.agents.home import files_below, write_file
from bot.jobserver.agents.named import Agent
from bot.jobserver.agents.options import Wanted
from bot.jobserver.egress.model_door import ModelDoor, OpenedModel
from bot.jobserver.errors import EditError, JobServerError
from bot.jobserver.sandbox.interface import Program
from bot.runtime.settings import read_variable

_NO_SECRETS = ("_URL", "_HOST", "_MODEL", "_PROVIDER", "_MODE", "_REGION", "_RETRIES")
"""How names of variables end whose values may be shown: an address in an error's text is what explains it."""


@dataclass(frozen=True)
class AgentLaunch:
    """What it takes to start an agent. `passed` are the server's variables that it gets, with their values.

    `model` is told at its start, `wanted` is chosen of what it lists for a session.
    `home`: a folder of files that each HOME begins with, its login, say; a file of ours never replaces one of these.
    `door` leads to its model, where it does not log in itself; `relayed` is that door, open for one run.
    """

    agent: Agent
    passed: Mapping[str, str] = field(default_factory=dict, repr=False)
    model: str | None = None
    home: Path | None = None
    door: ModelDoor | None = None
    relayed: OpenedModel | None = None
    wanted: Wanted = field(default_factory=Wanted)

    @asynccontextmanager
    async def opened(self, tell_refused: Callable[[str], None]) -> AsyncIterator["AgentLaunch"]:
        """Gives how the agent is started for one run, with its model relayed where it is; what is refused is told.

        Raises:
            EditError: the relay cannot be started.
        """
        if self.door is None:
            yield self
            return
        async with self.door.opened(tell_refused) as model:
            kept = {name: value for name, value in self.passed.items() if not self.door.hides(name, value)}
            command = model.filled_in(self.agent.command)
            agent = replace(self.agent, command=command)
            yield replace(self, agent=agent, passed={**kept, **model.variables}, relayed=model)

    def program(self) -> Program:
        """Returns the program with its variables, its random passwords made anew."""
        model = {self.agent.model_variable: self.model} if self.agent.model_variable and self.model else {}
        passwords = {name: secrets.token_urlsafe(24) for name in self.agent.random_variables}
        environment = {**self.agent.environment, **self.passed, **model, **passwords}
        return Program(self.agent.command, environment, self.relayed.doors if self.relayed else ())

    def hidden(self, program: Program) -> list[str]:
        """Returns the values that nobody is to see."""
        shown = {*self.agent.environment.items()}
        variables = program.environment.items() - shown
        key = [self.relayed.key] if self.relayed else []
        return [*(value for name, value in variables if not name.endswith(_NO_SECRETS)), *key]

    def fill(self, home: Path) -> None:
        """Writes the files that HOME begins with; called before each start, so that ours are always as we want them.

        Raises:
            EditError: they cannot be written.
        """
        try:
            ours = self.agent.files(self.model, self.passed)
            given = set(files_below(self.home)) if self.home else set()
            for path in given:
                write_file(home, path, (self.home or home).joinpath(path).read_bytes(), replace=False)
            for name, text in ours.items():
                if PurePosixPath(name) not in given:
                    write_file(home, PurePosixPath(name), text.encode())
        except OSError as error:
            raise EditError(f"the files of {self.agent.name}'s HOME cannot be written: {error.strerror}") from error


def passed_variables(
    agent: Agent, names: Sequence[str], environment: Mapping[str, str], *, never: str
) -> dict[str, str]:
    """Returns the variables that an agent gets, each also from the file that `<name>_FILE` names.

    Nothing that holds `never`, the server's own key, is among them.

    Raises:
        ConfigError: such a file cannot be read.
    """
    found = {name: read_variable(name, environment) for name in (*agent.passed, *names)}
    return {name: value for name, value in found.items() if value and not (never and never in value)}


def require_model(agent: Agent, model: str | None, home: Path | None) -> None:
    """Raises JobServerError for an agent that would take a model of its own choice on somebody else's servers."""
    if agent.needs_model and not model and not home:
        raise JobServerError(
            f"{agent.name} needs to be told its model: set PAGEHAND_JOBSERVER_MODEL, as provider/model"
        )
