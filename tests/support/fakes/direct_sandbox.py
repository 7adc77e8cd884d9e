"""A sandbox that is none: for tests of what runs in one."""

import os
from dataclasses import dataclass

from bot.jobserver.sandbox.interface import Program, SandboxedProgram, Workspace


@dataclass(frozen=True)
class DirectSandbox:
    """Starts the program itself, in the copy."""

    def prepare(self, program: Program, workspace: Workspace) -> SandboxedProgram:
        environment = {"PATH": os.environ["PATH"], "HOME": str(workspace.home), **program.environment}
        return SandboxedProgram(program.arguments, workspace.copy, environment, workspace.copy, workspace.home)
