"""Runs bubblewrap as another user, for a server that is root: `USER-AND-SOURCES COMMAND…`.

It is run as a script, so only the standard library is available. The command becomes root in a user namespace that
contains only this user, so the user needs no permission to create namespaces. The user may not be able to reach the
paths that bubblewrap binds, below /root for example, so they are mounted in a private /tmp.
"""

import ctypes
import json
import os
import signal
import stat
import sys
from collections.abc import Callable

# From linux/sched.h, linux/mount.h and linux/prctl.h
_NEW_MOUNTS = 0x00020000
_NEW_USERS = 0x10000000
_BIND = 4096 | 16384  # recursive
_PR_SET_PDEATHSIG = 1
_MOUNTS = "/tmp"  # noqa: S108 - a private file system; /tmp exists everywhere, as bubblewrap assumes, too
_CANNOT_BE_STARTED = 127


def mounted_at(number: int) -> str:
    """Returns the path at which the source with this number is mounted."""
    return f"{_MOUNTS}/{number}"


def main(arguments: list[str]) -> None:
    """USER-AND-SOURCES is a JSON list: the id of the user and group, then paths."""
    (user, *sources), command, parent = json.loads(arguments[0]), arguments[1:], os.getppid()
    try:
        _become(user, sources)
        _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # again, since changing the user resets it
        if os.getppid() == parent:
            os.execvp(command[0], command)  # noqa: S606 - no shell is what is wanted
    except OSError as error:
        words = f"a program cannot be started as another user: {error.filename or 'system call'}: {error.strerror}\n"
        os.write(2, words.encode(errors="replace"))
    os._exit(_CANNOT_BE_STARTED)


def _become(user: int, sources: list[str]) -> None:
    os.setgroups([])
    _then_in_child(lambda: _call("unshare", _NEW_USERS), _map_of(os.getpid(), user))
    _call("unshare", _NEW_MOUNTS)
    opened = [os.open(source, os.O_PATH) for source in sources]  # while this process may still read /root
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    _call("mount", b"tmpfs", _MOUNTS.encode(), b"tmpfs", 0, None)
    for number, source in enumerate(opened):
        place = mounted_at(number)
        if stat.S_ISDIR(os.fstat(source).st_mode):
            os.mkdir(place)  # noqa: PTH102 - quick to start
        else:
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY))
        _call("mount", f"/proc/self/fd/{source}".encode(), place.encode(), None, _BIND, None)


def _map_of(process: int, user: int) -> Callable[[], None]:
    def write() -> None:
        for kind in ("gid", "uid"):
            with open(f"/proc/{process}/{kind}_map", "w", encoding="ascii") as stream:  # noqa: PTH123 - quick to start
                stream.write(f"0 {user} 1")

    return write


def _then_in_child(first: Callable[[], None], then: Callable[[], None]) -> None:
    """Calls `first` here, then `then` in a child process that `first` does not affect."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)
        _in_child(then)
    os.close(reading)
    try:
        first()
    finally:
        os.close(writing)
        error = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if error:
        raise OSError(error, os.strerror(error), "its user's id")


def _in_child(act: Callable[[], None]) -> None:
    try:
        act()
    except OSError as error:
        os._exit(error.errno or 1)
    os._exit(0)


def _call(name: str, *arguments: int | bytes | None) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)


if __name__ == "__main__":
    main(sys.argv[1:])
