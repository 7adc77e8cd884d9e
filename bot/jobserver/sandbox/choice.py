"""Opens the sandbox that the settings name, tries it before any job needs it, and keeps the server from programs."""

import ctypes
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, assert_never

from bot.jobserver import subprocesses
from bot.jobserver.errors import EditError, JobServerError
from bot.jobserver.sandbox.bubblewrap import Bubblewrap, locate, supervised
from bot.jobserver.sandbox.interface import Program, Sandbox, SandboxedProgram, Workspace, environment_for
from bot.jobserver.sandbox.limits import RunLimits
from bot.jobserver.sandbox.seccomp import MACHINES
from bot.jobserver.settings import PREFIX, JobServerSettings
from bot.jobserver.settings.sandbox import OPEN, MachineSettings, SandboxSettings

_SECRET_TYPES = ("SecretStr", "Rotating")
_PR_SET_DUMPABLE = 4  # linux/prctl.h
_NOT_AS_ROOT = (
    "programs and agents would run as root, the user of this job server: run it as a user of its own, to whom its data "
    f"directory belongs. Or set {PREFIX}ALLOW_ROOT=true: then whatever leaves its sandbox is root on this machine"
)
_TRIAL_S = 20.0
_WORDS_LIMIT = 4000
_OTHERWISE = (
    "Or set PAGEHAND_JOBSERVER_SANDBOX=none and PAGEHAND_JOBSERVER_EGRESS=open: then programs and agents run as this "
    "user, and can read, change and reach whatever this user can"
)
_NO_ISOLATION = (
    "without a sandbox nothing keeps programs and agents from the network: set PAGEHAND_JOBSERVER_EGRESS=open if they "
    "may reach everything that this machine can reach, or use bubblewrap"
)


def own_user() -> int:
    return 1 if sys.platform == "win32" else os.geteuid()


def require_ordinary_user(settings: MachineSettings, user: int) -> None:
    """Raises JobServerError: programs would run as root, and the settings do not allow it."""
    if user == 0 and not settings.allow_root:
        raise JobServerError(_NOT_AS_ROOT)


def forget_secrets(environ: MutableMapping[str, str]) -> None:
    """Removes the variables of secret settings, and those naming their files, from an environment."""
    for name, field in JobServerSettings.model_fields.items():
        if any(kind in repr(field.annotation) for kind in _SECRET_TYPES):
            environ.pop(f"{PREFIX}{name.upper()}", None)
            environ.pop(f"{PREFIX}{name.upper()}_FILE", None)


def close_to_others() -> None:
    """Hides this process's memory and initial environment from other processes of its user, and disables core dumps.

    Otherwise, removed variables would stay readable in /proc. Linux only.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


@dataclass(frozen=True)
class NoSandbox:
    """Starts programs without isolation, as the server's user.

    On Linux, processes that they leave behind are ended with them, as far as possible.
    """

    def attachments(self, workspace: Workspace) -> Path:
        """Returns where a program finds the workspace's attachments."""
        return workspace.attachments or workspace.copy

    def prepare(self, program: Program, workspace: Workspace) -> SandboxedProgram:
        """Returns the command to start instead of the program.

        Raises:
            EditError: there is no such program, or it must not change the copy, which only a sandbox can ensure.
        """
        if workspace.read_only:
            raise EditError("without a sandbox, nothing keeps a program from changing files")
        environment = environment_for(program, HOME=str(workspace.home))
        command = (str(locate(program.arguments[0], environment["PATH"])), *program.arguments[1:])
        arguments = supervised(command) if sys.platform == "linux" else command
        return SandboxedProgram(arguments, workspace.copy, environment, workspace.copy)


async def open_sandbox(settings: SandboxSettings, data: Path, *, machine: str = platform.machine()) -> Sandbox:
    """Returns the sandbox of the settings; `data` is the server's data directory, which no program may see.

    Raises:
        JobServerError: it cannot be used on this machine; the message says what to do.
    """
    require_ordinary_user(settings, own_user())
    match settings.sandbox:
        case "none":
            if settings.egress != OPEN:
                raise JobServerError(_NO_ISOLATION)
            return NoSandbox()
        case "bubblewrap":
            sandbox = _bubblewrap(settings, data, RunLimits.for_settings(settings), machine)
            await _run_trial(sandbox)
            return sandbox
        case _:
            assert_never(settings.sandbox)


def _bubblewrap(settings: SandboxSettings, data: Path, limits: RunLimits, machine: str) -> Bubblewrap:
    found = shutil.which("bwrap")
    if found is None:
        where = "install the package bubblewrap" if sys.platform == "linux" else "it exists for Linux only"
        raise JobServerError(f"bubblewrap, in which programs and agents run, is not installed: {where}. {_OTHERWISE}")
    if machine not in MACHINES:
        known = " and ".join(MACHINES)
        raise JobServerError(f"its filter of system calls supports {known}, not {machine}. {_OTHERWISE}")
    for folder in (folder.resolve() for folder in settings.sandbox_folders):
        if not folder.is_dir():
            raise JobServerError(f"PAGEHAND_JOBSERVER_SANDBOX_FOLDERS names {folder}, which is not a folder")
        if folder.is_relative_to(data.resolve()) or data.resolve().is_relative_to(folder):
            raise JobServerError(f"PAGEHAND_JOBSERVER_SANDBOX_FOLDERS must not show the data directory: {folder} does")
    return Bubblewrap(found, limits, has_network=settings.egress == OPEN, folders=settings.sandbox_folders)


async def _run_trial(sandbox: Bubblewrap) -> None:
    """Runs a program that creates a folder, and reads it: a container or kernel may forbid what the sandbox needs."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        workspace = Workspace(Path(directory, "copy"), Path(directory, "home"))
        workspace.copy.mkdir()
        workspace.home.mkdir()
        output = subprocesses.FirstBytes(_WORDS_LIMIT)
        try:
            program = sandbox.prepare(Program(("mkdir", "-m", "700", "made")), workspace)
            code = await subprocesses.run(program.command(_TRIAL_S), stdout=output.write)
            if not code:
                list((workspace.copy / "made").iterdir())
        except (OSError, EditError, subprocesses.ProcessTimeoutError) as error:
            raise JobServerError(f"bubblewrap could not be tried: {error}. {_OTHERWISE}") from error
    if code:
        words = output.getvalue().decode(errors="replace").strip().rpartition("\n")[2]
        raise JobServerError(
            f"bubblewrap, in which programs and agents run, does not work here: {words or 'it gives no reason'}. "
            "It needs version 0.8 or newer, and a kernel and a container that allow user namespaces: "
            f"bot/docs/security.md has the remedies. {_OTHERWISE}"
        )


@dataclass(frozen=True)
class MissingSandbox:
    """Implements `Sandbox` if there is none: refuses to run programs, and says why."""

    reason: str

    def attachments(self, workspace: Workspace) -> Path:
        """Returns where a program would find the workspace's attachments."""
        return workspace.attachments or workspace.copy

    def prepare(self, program: Program, workspace: Workspace) -> NoReturn:  # noqa: ARG002 - the sandbox's signature
        """Raises EditError: programs cannot be run here."""
        raise EditError(self.reason)
