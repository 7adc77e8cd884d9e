"""What every sandbox offers: bubblewrap, or none."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bot.jobserver.sandbox.job_users import JobUsers, ServersUser

_PASSED = ("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TERM", "TZ")
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class Workspace:
    """The folders of a program, the same for all instructions of a job.

    `copy`: the files to edit, without a git directory. `home`: the program's HOME, kept between the instructions of a
    job. It may write to these two. `attachments`: files that came with the instructions, to be read; there only where
    there are any.
    """

    copy: Path
    home: Path
    attachments: Path | None = None


@dataclass(frozen=True)
class Door:
    """What a program without a network reaches all the same: who connects to 127.0.0.1 at this port inside its sandbox
    is connected to this Unix socket of the server's.
    """

    port: int
    socket: Path


@dataclass(frozen=True)
class Program:
    """A program to run, without a shell. `environment` is what it gets besides PATH, HOME and the language.

    With `doors` it has no network but these, whatever the settings say; only a sandbox can give them.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    doors: tuple[Door, ...] = ()


@dataclass(frozen=True)
class SandboxedProgram:
    """What to start instead of the program: these arguments, in this directory, with exactly this environment.

    `copy` and `home` are the two folders as the program sees them.
    """

    arguments: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str] = field(repr=False)
    copy: Path
    home: Path


class Sandbox(Protocol):
    """Puts a program into its place."""

    @property
    def users(self) -> JobUsers | ServersUser:
        """Whose programs are outside."""
        ...

    def attachments(self, workspace: Workspace) -> Path:
        """Returns where a program finds the workspace's attachments."""
        ...

    def prepare(self, program: Program, workspace: Workspace) -> SandboxedProgram:
        """Returns what to start instead of the program.

        SIGTERM ends it with all that it started, at once; SIGKILL may leave something behind without bubblewrap.

        Raises:
            EditError: there is no such program.
        """
        ...


def environment_for(program: Program, **own: str) -> dict[str, str]:
    """Returns PATH, the language and the time zone, then the sandbox's own variables, then the program's."""
    passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
    return {"PATH": _DEFAULT_PATH, **passed, "GIT_TERMINAL_PROMPT": "0", **own, **program.environment}
