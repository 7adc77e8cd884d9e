"""No sandbox: a program runs as the server's user and sees what that user sees."""

import sys
from dataclasses import dataclass
from pathlib import Path

from bot.jobserver.sandbox.bubblewrap import supervised
from bot.jobserver.sandbox.environment import environment_for
from bot.jobserver.sandbox.interface import Program, SandboxedProgram, Workspace
from bot.jobserver.sandbox.job_users import ServersUser
from bot.jobserver.sandbox.limits import RunLimits
from bot.jobserver.sandbox.program_files import locate


@dataclass(frozen=True)
class NoSandbox:
    """Starts programs as they are. On Linux, what they leave behind is ended with them, as far as they let it."""

    limits: RunLimits | None = None
    users: ServersUser = ServersUser()  # noqa: RUF009 - immutable

    def attachments(self, workspace: Workspace) -> Path:
        """Returns where a program finds the workspace's attachments."""
        return workspace.attachments or workspace.copy

    def prepare(self, program: Program, workspace: Workspace) -> SandboxedProgram:
        """Returns what to start in its stead.

        Raises:
            EditError: there is no such program.
        """
        environment = environment_for(program, HOME=str(workspace.home))
        command = (str(locate(program.arguments[0], environment["PATH"])), *program.arguments[1:])
        arguments = supervised(command, self.limits) if sys.platform == "linux" else command
        return SandboxedProgram(arguments, workspace.copy, environment, workspace.copy, workspace.home)
