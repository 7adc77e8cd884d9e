"""Chooses the sandbox that the settings name, and tries it before any job needs it."""

import os
import platform
import shutil
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn, assert_never

from bot.jobserver import subprocesses
from bot.jobserver.errors import EditError, JobServerError
from bot.jobserver.sandbox.bubblewrap import Bubblewrap, supervised
from bot.jobserver.sandbox.interface import Program, Sandbox, SandboxedProgram, Workspace, environment_for
from bot.jobserver.sandbox.job_users import JobUsers, ServersUser, job_users
from bot.jobserver.sandbox.limits import RunLimits
from bot.jobserver.sandbox.program_files import closed_to_others, locate
from bot.jobserver.sandbox.seccomp import MACHINES
from bot.jobserver.settings.sandbox import OPEN, SandboxSettings

_TRIAL_S = 20.0
_WORDS_LIMIT = 4000
_OTHERWISE = (
    "Or set PAGEHAND_JOBSERVER_SANDBOX=none and PAGEHAND_JOBSERVER_EGRESS=open: then programs and agents run as this "
    "user, see every file that it can read, change what it can change, and reach what it can reach"
)
_NOT_KEPT = (
    "without a sandbox nothing keeps programs and agents from the network: set PAGEHAND_JOBSERVER_EGRESS=open where "
    "they may reach all that this machine reaches, or use bubblewrap"
)


@dataclass(frozen=True)
class NoSandbox:
    """Starts programs as they are: as the server's user, who sees what that user sees.

    On Linux, what they leave behind is ended with them, as far as they let it.
    """

    limits: RunLimits | None = None
    users: ServersUser = ServersUser()  # noqa: RUF009 - immutable

    def attachments(self, workspace: Workspace) -> Path:
        """Returns where a program finds the workspace's attachments."""
        return workspace.attachments or workspace.copy

    def prepare(self, program: Program, workspace: Workspace) -> SandboxedProgram:
        """Returns what to start instead of it.

        Raises:
            EditError: there is no such program.
        """
        environment = environment_for(program, HOME=str(workspace.home))
        command = (str(locate(program.arguments[0], environment["PATH"])), *program.arguments[1:])
        arguments = supervised(command, self.limits) if sys.platform == "linux" else command
        return SandboxedProgram(arguments, workspace.copy, environment, workspace.copy, workspace.home)


async def open_sandbox(
    settings: SandboxSettings, data: Path, *, groups: Path | None = None, machine: str = platform.machine()
) -> Sandbox:
    """Returns the sandbox of the settings; `data` is the server's data directory, which no program may see.

    `groups` is the server's own folder of control groups, where it has one.

    Raises:
        JobServerError: it cannot be used on this machine, with what to do about it.
    """
    limits = RunLimits.for_settings(settings, groups)
    match settings.sandbox:
        case "none":
            if settings.egress != OPEN:
                raise JobServerError(_NOT_KEPT)
            return NoSandbox(limits)
        case "bubblewrap":
            sandbox = _bubblewrap(settings, data, limits, machine)
            tried = await _tried(sandbox, _users())
            _require_open(tried)
            return tried
        case _:
            assert_never(settings.sandbox)


def _bubblewrap(settings: SandboxSettings, data: Path, limits: RunLimits, machine: str) -> Bubblewrap:
    found = shutil.which("bwrap")
    if found is None:
        where = "install the package bubblewrap" if sys.platform == "linux" else "it exists for Linux only"
        raise JobServerError(f"bubblewrap, in which programs and agents run, is not installed: {where}. {_OTHERWISE}")
    if machine not in MACHINES:
        known = " and ".join(MACHINES)
        raise JobServerError(f"its filter of system calls is there for {known}, not for {machine}. {_OTHERWISE}")
    for folder in (folder.resolve() for folder in settings.sandbox_folders):
        if not folder.is_dir():
            raise JobServerError(f"PAGEHAND_JOBSERVER_SANDBOX_FOLDERS names {folder}, which is not a folder")
        if folder.is_relative_to(data.resolve()) or data.resolve().is_relative_to(folder):
            raise JobServerError(f"PAGEHAND_JOBSERVER_SANDBOX_FOLDERS must not show the data directory: {folder} does")
    return Bubblewrap(found, limits, has_network=settings.egress == OPEN, folders=settings.sandbox_folders)


def _require_open(sandbox: Bubblewrap) -> None:
    if isinstance(sandbox.users, JobUsers) and (closed := closed_to_others(sandbox.folders)):
        raise JobServerError(
            f"PAGEHAND_JOBSERVER_SANDBOX_FOLDERS names {closed}, which only its owner can read, and each job is "
            "another user: let others read it (chmod o+rx)"
        )


def _users() -> JobUsers | ServersUser:
    if sys.platform != "linux":
        return ServersUser()
    return job_users(os.geteuid(), *(Path("/proc/self", name).read_text() for name in ("uid_map", "gid_map")))


async def _tried(sandbox: Bubblewrap, users: JobUsers | ServersUser) -> Bubblewrap:
    """Returns the sandbox with these users; where that does not work, with the server's own, and why."""
    if isinstance(users, JobUsers):
        try:
            await _try(replace(sandbox, users=users))
            return replace(sandbox, users=users)
        except JobServerError as error:
            users = ServersUser(str(error).partition(". ")[0])
    await _try(replace(sandbox, users=users))
    return replace(sandbox, users=users)


async def _try(sandbox: Bubblewrap) -> None:
    """Runs a program that makes a folder, and looks into that: a container or a kernel may forbid what it takes."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        workspace = Workspace(Path(directory, "copy"), Path(directory, "home"))
        workspace.copy.mkdir()
        workspace.home.mkdir()
        output = subprocesses.FirstBytes(_WORDS_LIMIT)
        try:
            program = sandbox.prepare(Program(("mkdir", "-m", "700", "made")), workspace)
            command = subprocesses.Command(program.arguments, program.directory, program.environment, _TRIAL_S)
            code = await subprocesses.run(command, stdout=output)
            if not code:
                list((workspace.copy / "made").iterdir())
        except (OSError, EditError, subprocesses.ProcessTimeoutError) as error:
            raise JobServerError(f"bubblewrap could not be tried: {error}. {_OTHERWISE}") from error
    if code:
        words = output.getvalue().decode(errors="replace").strip().rpartition("\n")[2]
        raise JobServerError(
            f"bubblewrap, in which programs and agents run, does not work here: {words or 'it gives no reason'}. "
            "It needs version 0.8 or newer, and a kernel and a container that allow user namespaces: the job server's "
            f"page says more. {_OTHERWISE}"
        )


@dataclass(frozen=True)
class MissingSandbox:
    """Implements `Sandbox` where there is none: nothing runs, and whoever asks is told why."""

    reason: str
    users: ServersUser = ServersUser()  # noqa: RUF009 - immutable

    def attachments(self, workspace: Workspace) -> Path:
        """Returns where a program would find the workspace's attachments."""
        return workspace.attachments or workspace.copy

    def prepare(self, program: Program, workspace: Workspace) -> NoReturn:  # noqa: ARG002 - the sandbox's signature
        """Raises EditError: it cannot be run here."""
        raise EditError(self.reason)
