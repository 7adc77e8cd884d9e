"""Runs a checker in the sandbox: a supported one, or the team's own command."""

import asyncio
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bot.jobserver import subprocesses
from bot.jobserver.egress.refusals import EgressRefusals
from bot.jobserver.egress.run_egress import Egress
from bot.jobserver.errors import EditError, JobServerError
from bot.jobserver.file_owners import hand_over_contents
from bot.jobserver.sandbox.interface import Program, Sandbox, Workspace
from bot.jobserver.sandbox.limits import ProgramFailedError, RunLimits

_OUTPUT_BYTES = 2_000_000


class CheckCouldNotRunError(JobServerError):
    """The program of a check did not run to its end; the words say why."""


@dataclass(frozen=True)
class Finished:
    """How a program ended, the last 2 MB of what it printed, and what it tried to reach in vain.

    `copy` is the folder that it ran in, as it saw it.
    """

    exit_code: int
    output: str
    refused: tuple[str, ...] = ()
    copy: Path = Path()


@dataclass(frozen=True)
class CheckProgram:
    """Programs run in the sandbox, with a HOME of their own that is thrown away; `time_limit` is in seconds."""

    sandbox: Sandbox
    limits: RunLimits
    egress: Egress
    time_limit: float
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    async def run(self, arguments: tuple[str, ...], copy: Path) -> Finished:
        """Runs a program in the copy.

        Raises:
            CheckCouldNotRunError: it cannot be started, took too long, or used too much.
        """
        with tempfile.TemporaryDirectory(dir=copy.parent, prefix="check-") as home:
            workspace, refusals = Workspace(copy, Path(home)), EgressRefusals()
            await asyncio.to_thread(hand_over_contents, copy)  # what was put back in it, too
            try:
                async with self.egress.opened(refusals) as connected:
                    program = self.sandbox.prepare(connected(Program(arguments, self.environment)), workspace)
                    command = subprocesses.Command(
                        program.arguments, program.directory, program.environment, self.time_limit
                    )
                    output = subprocesses.LastBytes(_OUTPUT_BYTES)
                    code = await self.limits.run(command, workspace, stdout=output)
            except EditError as error:
                raise CheckCouldNotRunError(str(error)) from error
            except ProgramFailedError as error:
                raise CheckCouldNotRunError(f"it {error}") from error
        text = output.getvalue().decode(errors="replace")
        return Finished(code, text, tuple(refusals.in_words), program.copy)
