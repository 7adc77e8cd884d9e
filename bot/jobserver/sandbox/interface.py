"""The interface of sandboxes."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bot.jobserver import subprocesses

_PASSED = ("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TERM", "TZ")
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class Workspace:
    """The folders of a program, the same for all instructions of a job.

    `copy`: the files to edit, without a git directory. `home`: the program's HOME, kept between the instructions of a
    job. Both are writable. `attachments`: the files that came with the instructions; read-only, and only if there are
    any. `read_only`: whether the copy must not be changed.
    """

    copy: Path
    home: Path
    attachments: Path | None = None
    read_only: bool = False


@dataclass(frozen=True)
class Door:
    """A connection out of a sandbox without network: 127.0.0.1 at this port leads to this Unix socket of the server."""

    port: int
    socket: Path


@dataclass(frozen=True)
class Program:
    """A program to run without a shell. It gets `environment` in addition to PATH, HOME and the language.

    With `doors`, it has no other network access, whatever the settings say; only a sandbox supports them.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    doors: tuple[Door, ...] = ()


@dataclass(frozen=True)
class SandboxedProgram:
    """What to start instead of a program: these arguments, in this directory, with exactly this environment.

    `copy` is the folder as the program sees it.
    """

    arguments: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str] = field(repr=False)
    copy: Path

    def command(self, time_limit: float, stdin: bytes = b"") -> subprocesses.Command:
        """Returns the command for one run; `time_limit` is in seconds."""
        return subprocesses.Command(self.arguments, self.directory, self.environment, time_limit, stdin)


class Sandbox(Protocol):
    """Wraps programs so that they run isolated."""

    def attachments(self, workspace: Workspace) -> Path:
        """Returns where a program finds the workspace's attachments."""

    def prepare(self, program: Program, workspace: Workspace) -> SandboxedProgram:
        """Returns the command to start instead of the program.

        SIGTERM ends it at once, with all its descendants; SIGKILL may leave some behind without bubblewrap.

        Raises:
            EditError: there is no such program.
        """


def environment_for(program: Program, **own: str) -> dict[str, str]:
    """Returns PATH, the language and the time zone, overridden by the sandbox's variables, then by the program's."""
    passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
    return {"PATH": _DEFAULT_PATH, **passed, "GIT_TERMINAL_PROMPT": "0", **own, **program.environment}
