"""Prepares an agent's start: its program, its variables, and the initial files of its HOME."""

import contextlib
import os
import secrets
import stat
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from bot.jobserver.agents.named import Agent
from bot.jobserver.agents.options import Wanted
from bot.jobserver.egress.model_door import ModelDoor, OpenedModel
from bot.jobserver.errors import EditError, JobServerError
from bot.jobserver.sandbox.interface import Program
from bot.runtime.settings import read_variable

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
MOST_FILES = 1000
LARGEST_FILE = 10_000_000
_NO_SECRETS = ("_URL", "_HOST", "_MODEL", "_PROVIDER", "_MODE", "_REGION", "_RETRIES")
"""Suffixes of variables whose values may be shown: an address helps to understand an error."""


def write_file(home: Path, path: PurePosixPath, data: bytes, *, replace: bool = True) -> None:
    """Writes a file below `home` that only the server's user can read; links on the way are replaced, not followed.

    Raises:
        OSError: it cannot be written.
    """
    with contextlib.ExitStack() as stack:
        directory = _opened(stack, os.open(home, os.O_RDONLY | os.O_DIRECTORY))
        for part in path.parent.parts:
            directory = _opened(stack, _folder(directory, part))
        if _exists(directory, path.name):
            if not replace:
                return
            os.unlink(path.name, dir_fd=directory)
        with os.fdopen(os.open(path.name, _NEW_FILE, 0o600, dir_fd=directory), "wb") as stream:
            stream.write(data)


def _opened(stack: contextlib.ExitStack, descriptor: int) -> int:
    stack.callback(os.close, descriptor)
    return descriptor


def _folder(parent: int, name: str) -> int:
    if _exists(parent, name) and not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=parent)
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent)
    return os.open(name, _DIRECTORY, dir_fd=parent)


def _exists(directory: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


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

    `model` is set when it starts, the `wanted` options in its session. `home`: a folder whose files, such as a login,
    each HOME starts with; our own files never replace them. `door` leads to its model, unless it logs in itself;
    `relayed` is that door, open for one run.
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
        """Yields the launch for one run, with its model relayed if it has a door; `tell_refused` gets what is refused.

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
        """Returns the program with its variables and new random passwords."""
        model = {self.agent.model_variable: self.model} if self.agent.model_variable and self.model else {}
        passwords = {name: secrets.token_urlsafe(24) for name in self.agent.random_variables}
        environment = {**self.agent.environment, **self.passed, **model, **passwords}
        return Program(self.agent.command, environment, self.relayed.doors if self.relayed else ())

    def hidden(self, program: Program) -> list[str]:
        """Returns the values that must not be shown."""
        shown = {*self.agent.environment.items()}
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


def passed_variables(
    agent: Agent, names: Sequence[str], environment: Mapping[str, str], *, never: Collection[str]
) -> dict[str, str]:
    """Returns the variables that an agent gets, read from the environment or the file that `<name>_FILE` names.

    Values that contain one of `never`, the server's own keys, are left out.

    Raises:
        ConfigError: such a file cannot be read.
    """
    found = {name: read_variable(name, environment) for name in (*agent.passed, *names)}
    return {name: value for name, value in found.items() if value and not any(key in value for key in never)}


def require_model(agent: Agent, model: str | None, home: Path | None, passed: Mapping[str, str]) -> None:
    """Raises JobServerError for an agent that would otherwise fail, or use a model on third-party servers."""
    if agent.needs_model and not model and not home and agent.model_variable not in passed:
        form = "" if agent.model_variable else ", as provider/model"
        raise JobServerError(f"{agent.name} needs a model: set PAGEHAND_JOBSERVER_MODEL{form}")
