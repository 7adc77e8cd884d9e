import os
from bot.jobserver.sandbox.interface import Program, SandboxedProgram, Workspace
class NoSandbox:
    def prepare(self, program: Program, workspace: Workspace) -> SandboxedProgram:
        return SandboxedProgram(program.arguments, workspace.copy, {"PATH": os.environ["PATH"], "HOME": str(workspace.home), "LANG": "C.UTF-8", **program.environment}, workspace.copy, workspace.home)
