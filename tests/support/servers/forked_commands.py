"""Runs `pagehand`, or a test's program around it, in processes forked from one that has imported everything.

Importing what a command needs takes over two seconds of CPU. `forked_commands` starts a process that does it once, and
yields a replacement for `python -m`: a small program that hands over its arguments, environment, directory and
streams, forwards signals, and exits as the forked process does. If it is killed, so is the forked process.
"""

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCES = Path(__file__).parents[3]
CLIENT = """
import json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect(sys.argv[1])
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda number, _: server.send(bytes([number])))
order = {"program": sys.argv[2], "arguments": sys.argv[3:], "environment": dict(os.environ), "directory": os.getcwd()}
socket.send_fds(server, [json.dumps(order).encode()], [0, 1, 2])
code = int(server.recv(16))
if code < 0:
    if code != -signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


@contextmanager
def forked_commands() -> Iterator[tuple[str, ...]]:
    """Yields the start of a command line; a module whose `main` is called comes next. Processes run with `-W error`."""
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/socket"
        server = subprocess.Popen(
            (sys.executable, "-u", "-W", "error", __file__, path),
            env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{SOURCES}:{SOURCES / 'tests'}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert server.stdin is not None
        assert server.stdout is not None
        with server:
            assert server.stdout.readline() == b"ready\n"
            yield (sys.executable, "-I", "-S", "-c", CLIENT, path)
            server.stdin.close()


def serve(path: str) -> None:
    """Forks for each connection until standard input ends; then ends with all that were forked."""
    import bot.cli  # noqa: PLC0415 - the pytest process, which imports this module, has no need of it

    for module in pkgutil.iter_modules(bot.cli.__path__, "bot.cli."):
        importlib.import_module(module.name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, reap)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(64)
        os.write(1, b"ready\n")
        while 0 not in select.select([listening.fileno(), 0], [], [])[0]:
            connection, _ = listening.accept()
            written, descriptors, _, _ = socket.recv_fds(connection, 1 << 20, 3)
            if written:  # otherwise it was killed
                order = json.loads(written)
                main: Callable[[], None] = importlib.import_module(order["program"]).main
                if not os.fork():
                    listening.close()
                    keep(connection, main, order, descriptors)
                    return
            for descriptor in descriptors:
                os.close(descriptor)
            connection.close()
    os.killpg(0, signal.SIGKILL)


def reap(*_: object) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def keep(connection: socket.socket, main: Callable[[], None], order: dict[str, object], descriptors: list[int]) -> None:
    """Starts one command, forwards signals to it, and reports how it exits. Returns only in the command's process."""
    ended, wakes = os.pipe()
    signal.signal(signal.SIGCHLD, lambda *_: os.write(wakes, b"!"))
    child = os.fork()
    if not child:
        connection.close()
        become(order, descriptors, (ended, wakes))
        main()
        return
    for descriptor in (0, 1, 2, *descriptors):
        os.close(descriptor)
    while True:
        readable, _, _ = select.select([connection.fileno(), ended], [], [])
        if ended in readable and os.read(ended, 1):
            pid, status = os.waitpid(child, os.WNOHANG)
            if not pid:
                continue  # it was stopped, or goes on
            code = os.waitstatus_to_exitcode(status)
            with contextlib.suppress(OSError):  # it was killed
                connection.send(str(code).encode())
            os._exit(0)
        if connection.fileno() in readable:
            os.kill(child, (connection.recv(1) or bytes([signal.SIGKILL]))[0])


def become(order: dict[str, object], descriptors: list[int], pipe: tuple[int, int]) -> None:
    """Turns this process into one that was started by itself."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    for descriptor in (*descriptors, *pipe):
        os.close(descriptor)
    os.chdir(str(order["directory"]))
    os.environ.clear()
    os.environ.update(order["environment"])  # type: ignore[call-overload] # it went through JSON
    sys.argv = ["pagehand", *order["arguments"]]  # type: ignore[misc] # the same


if __name__ == "__main__":
    serve(*sys.argv[1:])
