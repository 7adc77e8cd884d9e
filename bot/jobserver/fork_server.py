"""Imports `MODULE`, and forks for each task, which the module's `main` does.

Standard input is a socket of the server's. A byte on it, with four descriptors, asks for a child: its standard input,
output and error, and a socket that gets its process id in a line, and its exit code in another one. The end of the
standard input is this process's end.
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
    gc.freeze()  # what is imported stays shared between the children
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children need no wait
    requests = socket.socket(fileno=0)
    while True:
        asked, descriptors, _, _ = socket.recv_fds(requests, 1, _DESCRIPTORS)
        if not asked:
            return
        if os.fork() == 0:
            _keep(descriptors, work)
        for descriptor in descriptors:
            os.close(descriptor)


def _keep(descriptors: list[int], work: Callable[[], None]) -> None:
    """Stands between a child and the server: tells who it is, and how it ended."""
    os.setpgid(0, 0)  # what ends the fork server ends no task
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, told = descriptors
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        _take_over(descriptors)
        os._exit(_exit_code(work))
    _lead_own_group(child)
    for descriptor in (*streams, *_STANDARD):
        os.close(descriptor)  # or readers of the child's output would see no end
    os.write(told, b"%d\n" % child)
    os.write(told, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os._exit(0)


def _lead_own_group(child: int) -> None:
    """The child does it, too: neither its work nor a signal for the group may come sooner."""
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
