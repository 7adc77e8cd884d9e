"""Imports `MODULE` once and forks a child for each task, which runs the module's `main`.

Standard input is a socket. A byte on it, with four descriptors, requests a child: the descriptors are the child's
standard input, output and error, and a socket that receives its process id and then its exit code, a line each. This
process exits at the end of its standard input.
"""

import contextlib
import gc
import importlib
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable

_DESCRIPTORS = 4
_STANDARD = (0, 1, 2)
_FAILED = 1


def main() -> None:
    work: Callable[[], None] = importlib.import_module(sys.argv[1]).main
    gc.freeze()  # keeps the imported modules shared between the children
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children need no wait
    requests = socket.socket(fileno=0)
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, 1, _DESCRIPTORS)
        if not request:
            return
        if os.fork() == 0:
            _watch_over(descriptors, work)
        for descriptor in descriptors:
            os.close(descriptor)


def _watch_over(descriptors: list[int], work: Callable[[], None]) -> None:
    """Runs between a child and the server: reports the child's process id and exit code."""
    os.setpgid(0, 0)  # signals to the fork server must not end a task
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, status = descriptors
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        _take_over(descriptors)
        os._exit(_exit_code(work))
    _lead_own_group(child)
    for descriptor in (*streams, *_STANDARD):
        os.close(descriptor)  # otherwise readers of the child's output would never see its end
    os.write(status, b"%d\n" % child)
    os.write(status, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os._exit(0)


def _lead_own_group(child: int) -> None:
    """The child does the same: its group must exist before its work starts and before a signal is sent to the group."""
    with contextlib.suppress(OSError):  # it has ended
        os.setpgid(child, child)


def _take_over(descriptors: list[int]) -> None:
    for standard, stream in zip(_STANDARD, descriptors, strict=False):
        os.dup2(stream, standard)
    for descriptor in descriptors:
        os.close(descriptor)


def _exit_code(work: Callable[[], None]) -> int:
    try:
        work()
        sys.stdout.flush()
    except SystemExit as ending:
        return ending.code if isinstance(ending.code, int) else _FAILED
    except BaseException:  # noqa: BLE001 - it is the outermost frame
        traceback.print_exc()
        sys.stderr.flush()
        return _FAILED
    return 0


if __name__ == "__main__":
    main()
