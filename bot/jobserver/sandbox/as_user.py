"""Runs bubblewrap as another user, for a server that is root: `USER-AND-SOURCES COMMAND…`.

It is started by its path, without the packages around it: only the standard library is at hand. The command becomes
root of a user namespace in which there is nobody but this user, so no user has to be allowed to make namespaces. What
bubblewrap is to bind in may lie where this user cannot come, below /root, say: it is laid out in a /tmp of its own.
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
_BIND = 4096 | 16384  # with what is mounted below
_PR_SET_PDEATHSIG = 1
PLACE = "/tmp"  # noqa: S108 - a file system of its own, and bubblewrap's own choice: it is there everywhere
_CANNOT_BE_STARTED = 127


def laid_out(number: int) -> str:
    """Returns where the source with this number lies."""
    return f"{PLACE}/{number}"


def main(arguments: list[str]) -> None:
    """USER-AND-SOURCES is a JSON list: the user's and group's id, then paths."""
    (user, *sources), command, parent = json.loads(arguments[0]), arguments[1:], os.getppid()
    try:
        _become(user, sources)
        _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # a change of user has ended it
        if os.getppid() == parent:
            os.execvp(command[0], command)  # noqa: S606 - no shell is what is wanted
    except OSError as error:
        words = f"a program cannot be started as another user: {error.filename or 'system call'}: {error.strerror}\n"
        os.write(2, words.encode(errors="replace"))
    os._exit(_CANNOT_BE_STARTED)


def _become(user: int, sources: list[str]) -> None:
    os.setgroups([])
    _after(lambda: _call("unshare", _NEW_USERS), _map_of(os.getpid(), user))
    _call("unshare", _NEW_MOUNTS)
    opened = [os.open(source, os.O_PATH) for source in sources]  # as long as this is the owner of /root
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    _call("mount", b"tmpfs", PLACE.encode(), b"tmpfs", 0, None)
    for number, source in enumerate(opened):
        place = laid_out(number)
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


def _after(first: Callable[[], None], then: Callable[[], None]) -> None:
    """Does the second in a process that the first has no effect on."""
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
