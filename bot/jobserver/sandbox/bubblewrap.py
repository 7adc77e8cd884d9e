"""Bubblewrap: a program sees little of the machine, no other processes, and can write only to its two folders."""

import base64
import os
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bot.jobserver.errors import EditError
from bot.jobserver.sandbox.interface import Door, Program, SandboxedProgram, Workspace, environment_for
from bot.jobserver.sandbox.limits import RunLimits
from bot.jobserver.sandbox.seccomp import filter_for
from bot.jobserver.sandbox.supervise import FILTER_FD

_LINKS = 16
_INTERPRETERS = 3
_BESIDE_BIN = ("bin", "lib", "lib64", "libexec", "pyvenv.cfg")
_FIRST_LINE = 4096
COPY = Path("/workspace/copy")
HOME = Path("/workspace/home")
ATTACHMENTS = Path("/workspace/attachments")
"""The same for all jobs and instructions, since agents store sessions by directory."""
TMP_BYTES = 2**30
_PYTHON = str(Path(sys.executable).resolve())
"""The real interpreter, not that of a virtual environment, whose packages are not needed inside."""
_USER = "1000"  # some agents refuse to work as root
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
# None of these is secret: /etc/ssl/private, for example, is not included.
_ETC = (
    "alternatives", "ca-certificates", "crypto-policies", "gai.conf", "host.conf", "hosts", "ld.so.cache",
    "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types", "nsswitch.conf", "pki/ca-trust/extracted",
    "pki/tls/cert.pem", "pki/tls/certs", "protocols", "resolv.conf", "services", "ssl/cert.pem", "ssl/certs",
    "ssl/openssl.cnf", "timezone",
)  # fmt: skip
_ETC_FILES = Path(__file__).with_name("etc")
_SUPERVISE = Path(__file__).with_name("supervise.py")
_FORWARD = Path(__file__).with_name("forward.py")
_DOORS = Path("/workspace/doors")
"""Where the sockets of doors and the forwarder are mounted."""
_NAMESPACES = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
    "--disable-userns", "--uid", _USER, "--gid", _USER, "--hostname", "pagehand", "--cap-drop", "ALL",
    "--die-with-parent", "--new-session",
)  # fmt: skip
_HOST_FILES = ("kcore", "key-users", "keys", "latency_stats", "sched_debug", "timer_list")
"""Files in /proc that belong to the host, such as the server user's keyrings and information on other processes."""
# These file systems are in memory. /proc is read-only, since files in /proc/sys control the whole machine.
_OWN_FILE_SYSTEMS = (
    "--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev",
    "--perms", "1777", "--size", str(TMP_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev",  # noqa: S108 (its own)
    "--perms", "1777", "--size", str(TMP_BYTES), "--tmpfs", "/tmp",  # noqa: S108 (its own)
)  # fmt: skip


def locate(name: str, search_path: str) -> Path:
    """Returns the path of a program.

    Raises:
        EditError: there is no such program.
    """
    found = shutil.which(name, path=search_path)
    if found is None:
        raise EditError(f"the editor's program cannot be started: there is no program {Path(name).name} on this server")
    return Path(os.path.abspath(found))  # noqa: PTH100 - links must stay as they are


def needed_paths(arguments: tuple[str, ...], search_path: str) -> set[Path]:
    """Returns the files and folders that a command needs.

    A program in a folder `bin` needs its siblings such as `lib`, one in `node_modules` that whole folder; any other
    only its file. Files that the command names by absolute path are included.

    Raises:
        EditError: there is no such program.
    """
    program = locate(arguments[0], search_path)
    # A path may be an argument, or the value of an option such as `--config=/srv/agent.toml`.
    names = (name for argument in arguments[1:] for name in (argument, argument.partition("=")[2]))
    files = (Path(name) for name in names if name.startswith("/"))
    needed = {path for file in files if file.is_file() for path in _links(file)}
    for _ in range(_INTERPRETERS):
        needed.update(found for path in _links(program) for found in _installed_with(path))
        interpreter = _interpreter(program)
        if interpreter is None:
            break
        program = locate(interpreter, search_path)
    return needed


def _links(path: Path) -> Iterator[Path]:
    """Yields a path, then the target of each link in turn."""
    for _ in range(_LINKS):
        yield path
        if not path.is_symlink():
            return
        path = Path(os.path.normpath(path.parent / path.readlink()))


def _installed_with(path: Path) -> Iterable[Path]:
    if "node_modules" in path.parts:
        return [Path(*path.parts[: path.parts.index("node_modules") + 1])]
    if path.parent.name == "bin":
        return [beside for name in _BESIDE_BIN if (beside := path.parent.parent / name).exists()]
    return [path]


def _interpreter(program: Path) -> str | None:
    """Returns the interpreter in the first line of a script."""
    try:
        with program.open("rb") as stream:
            first = stream.readline(_FIRST_LINE)
    except OSError:
        return None
    words = first.removeprefix(b"#!").decode(errors="replace").split() if first.startswith(b"#!") else []
    if len(words) > 1 and Path(words[0]).name == "env":
        return next((word for word in words[1:] if not word.startswith("-") and "=" not in word), None)
    return words[0] if words else None


def supervised(arguments: Iterable[str], *, mode: str = "bare") -> tuple[str, ...]:
    """Returns a command that runs another one and ends whatever it leaves behind; `mode` as in `supervise`."""
    return (sys.executable, "-I", "-S", str(_SUPERVISE), str(os.getpid()), mode, *arguments)


def filtered(arguments: Iterable[str]) -> tuple[str, ...]:
    """Returns a supervised bubblewrap command, with the system call filter open at `FILTER_FD`."""
    return supervised(arguments, mode=base64.b64encode(filter_for(platform.machine())).decode())


@dataclass(frozen=True)
class Bubblewrap:
    """Starts programs with `bwrap`, at least version 0.8. Programs can also read `folders`."""

    bwrap: str
    limits: RunLimits
    has_network: bool = True
    folders: tuple[Path, ...] = ()

    def attachments(self, workspace: Workspace) -> Path:  # noqa: ARG002 - another sandbox needs it
        """Returns where a program finds the workspace's attachments."""
        return ATTACHMENTS

    def prepare(self, program: Program, workspace: Workspace) -> SandboxedProgram:
        """Returns the command to start instead of the program.

        Raises:
            EditError: there is no such program.
        """
        own = {"HOME": str(HOME), "USER": "pagehand", "LOGNAME": "pagehand", "TMPDIR": "/tmp"}  # noqa: S108 (its own)
        environment = environment_for(program, **own)
        arguments = (str(locate(program.arguments[0], environment["PATH"])), *program.arguments[1:])
        needed = needed_paths(arguments, environment["PATH"])
        if program.doors:
            needed |= needed_paths((_PYTHON,), environment["PATH"])
        attachments = workspace.attachments
        has_attachments = attachments is not None and attachments.is_dir()
        options = (
            *_NAMESPACES,
            *("--seccomp", str(FILTER_FD)),
            *(() if self.has_network and not program.doors else ("--unshare-net",)),
            *_system(),
            *_OWN_FILE_SYSTEMS,
            *_hidden(),
            *_read_only({*needed, *self.folders}),
            *("--ro-bind" if workspace.read_only else "--bind", str(workspace.copy), str(COPY)),
            *("--bind", str(workspace.home), str(HOME)),
            *(("--ro-bind", str(attachments), str(ATTACHMENTS)) if has_attachments else ()),
            *_bound_in(program.doors),
            *("--remount-ro", "/", "--chdir", str(COPY)),
        )
        inside = ("--", *self._limited(), *_through_doors(program.doors), *arguments)
        return SandboxedProgram(filtered((self.bwrap, *options, *inside)), workspace.copy, environment, COPY)

    def _limited(self) -> tuple[str, ...]:
        """Returns `prlimit` (util-linux) with limits that take effect at once, unlike those of `RunLimits.exceeded`."""
        prlimit = shutil.which("prlimit", path="/usr/bin:/bin")
        if prlimit is None:
            return ()
        return (prlimit, f"--nproc={self.limits.tasks}", f"--fsize={self.limits.disk}", "--core=0", "--")


def _system() -> Iterator[str]:
    for name in _SYSTEM:
        if Path(name).is_symlink():
            yield from ("--symlink", str(Path(name).readlink()), name)
        elif Path(name).exists():
            yield from ("--ro-bind", name, name)
    for name in _ETC:
        if (path := Path("/etc") / name).exists():
            yield from ("--ro-bind", str(path), str(path))
    for name in ("passwd", "group"):
        yield from ("--ro-bind", str(_ETC_FILES / name), f"/etc/{name}")


def _hidden() -> Iterator[str]:
    for path in (Path("/proc", name) for name in _HOST_FILES):
        if path.exists():
            yield from ("--ro-bind", os.devnull, str(path))


def _bound_in(doors: tuple[Door, ...]) -> Iterator[str]:
    for door in doors:
        yield from ("--ro-bind", str(door.socket), str(_DOORS / f"{door.port}.sock"))
    if doors:
        yield from ("--ro-bind", str(_FORWARD), str(_DOORS / _FORWARD.name))


def _through_doors(doors: tuple[Door, ...]) -> tuple[str, ...]:
    """Returns a command prefix that opens the doors and then executes the program."""
    if not doors:
        return ()
    opened = (f"{door.port}={_DOORS / f'{door.port}.sock'}" for door in doors)
    return (_PYTHON, "-I", "-S", str(_DOORS / _FORWARD.name), *opened, "--")


def _read_only(paths: set[Path]) -> Iterator[str]:
    """Binds outer folders first, since they would hide earlier mounts inside them."""
    for path in sorted(paths):
        if not any(path.is_relative_to(seen) for seen in _SYSTEM):
            yield from ("--ro-bind", str(path), str(path))
