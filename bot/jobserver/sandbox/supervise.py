"""Runs a program as its child, and ends everything that the program started.

It is run as a script, so only the standard library is available. All processes that the program starts remain its
descendants, even after setsid or the death of their parent, since it adopts orphans (PR_SET_CHILD_SUBREAPER). It kills
all of them when the program ends, on SIGTERM, and when the server dies.
"""

import base64
import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path

# From linux/prctl.h
_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_HIGHEST_CAPABILITY = 63
_CANNOT_BE_STARTED = 127
FILTER_FD = 20
"""The descriptor of the system call filter, which the program (bubblewrap) applies."""
_PAUSE_S = 0.005


class _AskedToEnd(BaseException):
    """SIGTERM arrived, from the server or because the server died."""


def main(arguments: list[str]) -> int:
    """Runs `PARENT {bare|FILTER} PROGRAM ARGUMENT…` and returns its exit code; 128 and more is a signal.

    PARENT is the server's process id; `bare` takes all root privileges from the program. FILTER, in base64, is what the
    program reads from `FILTER_FD`.
    """
    parent, mode, *command = arguments
    signal.signal(signal.SIGTERM, _raise)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # If memory runs out, the kernel should kill the program, not the server.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    if os.getppid() != int(parent):
        return 0
    try:
        return _wait_for(_start(command, mode))
    except _AskedToEnd:
        return 128 + signal.SIGTERM
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end_descendants()


def descendants(root: int) -> set[int]:
    """Returns the descendants of a process, including those in other process namespaces."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - several times as fast
        if entry.isdigit() and (parent := _parent(int(entry))) is not None:
            children.setdefault(parent, []).append(int(entry))
    found: set[int] = set()
    waiting = [root]
    while waiting:
        new = set(children.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


def _parent(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name, in parentheses, may contain anything.
    return int(stat.rpartition(b")")[2].split()[1])


def _start(command: list[str], mode: str) -> int:
    pid = os.fork()
    if pid == 0:
        _become(command, mode)
    # Readers of the program's output should see its end, and writers to its input that it is gone.
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    return pid


def _become(command: list[str], mode: str) -> None:
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if mode == "bare":
            _give_up_privileges()
        else:
            _open_filter(base64.b64decode(mode, validate=True))
        os.execvp(command[0], command)  # noqa: S606 - no shell is what is wanted
    except BaseException as error:  # noqa: BLE001 - whatever it is, there must not be a second supervisor
        reason = error.strerror if isinstance(error, OSError) else type(error).__name__
        os.write(2, f"{command[0]} cannot be started: {reason}\n".encode(errors="replace"))
    finally:
        os._exit(_CANNOT_BE_STARTED)


def _give_up_privileges() -> None:
    for capability in range(_HIGHEST_CAPABILITY + 1):
        _prctl(_PR_CAPBSET_DROP, capability)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def _open_filter(program: bytes) -> None:
    """Passes the filter in a memory file, since a pipe's capacity is limited."""
    file = os.memfd_create("filter")
    os.write(file, program)
    os.lseek(file, 0, os.SEEK_SET)
    os.dup2(file, FILTER_FD)


def _wait_for(program: int) -> int:
    while True:
        pid, status = os.wait()
        if pid == program:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _end_descendants() -> None:
    """Kills until no process is left; stops them first, so that none can start another."""
    while True:
        below = descendants(os.getpid())
        _signal_all(below, signal.SIGSTOP)
        _signal_all(below | descendants(os.getpid()), signal.SIGKILL)
        if not _reap():
            return
        time.sleep(_PAUSE_S)


def _reap() -> bool:
    """Reaps all children that have ended; returns False if none are left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _raise(*_: object) -> None:
    raise _AskedToEnd


def _prctl(option: int, value: int) -> None:
    """Sets a property of this process; options unknown to the kernel are ignored."""
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
