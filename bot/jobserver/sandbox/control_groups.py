"""Control groups (version 2): if some are delegated to the server, the kernel limits what a run uses.

See the kernel's Documentation/admin-guide/cgroup-v2.rst, and systemd's CGROUP_DELEGATION.md on their ownership.
"""

import contextlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_SERVER_GROUP = "server"
"""The group that the server moves to: a group with children may not contain processes itself."""
_CONTROLLERS = ("memory", "pids")
_ESCAPED = re.compile(r"\\([0-7]{3})")
IsMarked = Callable[[Path], bool]


@dataclass(frozen=True)
class ControlGroups:
    """A group for each run can be created in `folder`."""

    folder: Path

    def __str__(self) -> str:
        return "the kernel limits memory and processes of each run, by control groups"


@dataclass(frozen=True)
class NoControlGroups:
    """`reason` says why there are none."""

    reason: str
    folder: None = None

    def __str__(self) -> str:
        return f"the kernel does not limit what a run uses, it is checked periodically: {self.reason}"


@dataclass(frozen=True)
class OwnGroup:
    """The group of a process, and the topmost group that it can see."""

    folder: Path
    top: Path


def is_marked_as_delegated(folder: Path) -> bool:
    """Whether systemd has delegated this group to its service (`Delegate=yes`)."""
    with contextlib.suppress(OSError, AttributeError):
        return os.getxattr(folder, "user.delegate") == b"1"
    return False


def open_control_groups(
    process: Path = Path("/proc/self"), is_marked: IsMarked = is_marked_as_delegated
) -> ControlGroups | NoControlGroups:
    """Prepares the server's own part for runs; leaves alone what may belong to others."""
    try:
        own = own_group((process / "cgroup").read_text(), (process / "mountinfo").read_text())
        if own is None:
            return NoControlGroups("version 2 of control groups is not mounted here")
        folder = _delegated(own, is_marked)
        if folder is None:
            return NoControlGroups(
                "no control groups are delegated to this process; with systemd, Delegate=yes does that"
            )
        if set(_CONTROLLERS) - set((folder / "cgroup.controllers").read_text().split()):
            return NoControlGroups(f"the controllers {' and '.join(_CONTROLLERS)} are not delegated to {folder}")
        _divide(folder, own.folder)
    except OSError as error:
        return NoControlGroups(f"control groups cannot be used: {error.filename}: {error.strerror}")
    _sweep(folder)
    return ControlGroups(folder)


def own_group(groups: str, mounts: str) -> OwnGroup | None:
    """Finds a process's group from its /proc/…/cgroup and /proc/…/mountinfo."""
    path = next((line[3:] for line in groups.splitlines() if line.startswith("0::")), None)
    mounted = (line.split(" ") for line in mounts.splitlines() if " - cgroup2 " in line)
    for fields in mounted:
        root, top = (_unescaped(field) for field in fields[3:5])
        if path is not None and ".." not in Path(path).parts and Path(path).is_relative_to(root):
            return OwnGroup(Path(top) / Path(path).relative_to(root), Path(top))
    return None


def _unescaped(field: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), field)


def _delegated(own: OwnGroup, is_marked: IsMarked) -> Path | None:
    """Returns the group that may be divided: systemd has marked it, or it is the topmost one of a container.

    The machine's own topmost group has no type. A server may have been started in the group that it would move to.
    """
    parent = own.folder.parent
    if is_marked(own.folder) or _is_of_container(own.folder, own.top):
        return own.folder
    is_moved = own.folder.name == _SERVER_GROUP and _is_of_container(parent, own.top)
    return parent if own.folder != own.top and (is_marked(parent) or is_moved) else None


def _is_of_container(folder: Path, top: Path) -> bool:
    return folder == top and (folder / "cgroup.type").exists() and os.access(folder, os.W_OK)


def _divide(folder: Path, own: Path) -> None:
    """Enables the controllers for the children of this group.

    Raises:
        OSError: it cannot be done, for example because of other processes in it; nothing has changed then.
    """
    servers = folder / _SERVER_GROUP
    if own == folder:
        servers.mkdir(exist_ok=True)
        _write(servers / "cgroup.procs", str(os.getpid()))
    try:
        _write(folder / "cgroup.subtree_control", " ".join(f"+{name}" for name in _CONTROLLERS))
    except OSError:
        if own == folder:
            _write(folder / "cgroup.procs", str(os.getpid()))
            servers.rmdir()
        raise


def _write(path: Path, text: str) -> None:
    """Writes at once, since the kernel reads each write separately; its errors come without the file name."""
    try:
        path.write_text(text, encoding="ascii")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def _sweep(folder: Path) -> None:
    """Removes the groups of runs that died with their server; the kernel refuses for groups with processes."""
    for group in folder.glob("run-*"):
        with contextlib.suppress(OSError):
            group.rmdir()
