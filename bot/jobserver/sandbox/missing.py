"""A sandbox that is not there: nothing runs, and whoever asks is told why."""

from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from bot.jobserver.errors import EditError
from bot.jobserver.sandbox.interface import Program, Workspace
from bot.jobserver.sandbox.job_users import ServersUser


@dataclass(frozen=True)
class MissingSandbox:
    """Implements `Sandbox`."""

    reason: str
    users: ServersUser = ServersUser()  # noqa: RUF009 - immutable

    def attachments(self, workspace: Workspace) -> Path:
        """Returns where a program would find the workspace's attachments."""
        return workspace.attachments or workspace.copy

    def prepare(self, program: Program, workspace: Workspace) -> NoReturn:  # noqa: ARG002 - the sandbox's signature
        """Raises EditError: it cannot be run here."""
        raise EditError(self.reason)
