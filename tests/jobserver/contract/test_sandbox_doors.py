"""What a program in a sandbox without a network reaches: its doors, and nothing else."""

import asyncio
import socket
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.worlds.hostile_world import needs_bubblewrap

from bot.jobserver.sandbox.choice import open_sandbox
from bot.jobserver.sandbox.interface import Door, Program, Workspace
from bot.jobserver.settings.sandbox import SandboxSettings

pytestmark = pytest.mark.skipif("sys.platform != 'linux'", reason="bubblewrap exists for Linux only")
PORT, OTHER = 8701, 8702
TALK = """
import socket, sys
def ask(port, words):
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(words)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
        return answer
def fails(act):
    try:
        act()
    except OSError as error:
        return type(error).__name__
    return "it worked"
"""


@pytest.fixture(autouse=True, scope="module")
def bubblewrap() -> None:
    needs_bubblewrap()


@pytest.fixture
async def doors(tmp_path: Path) -> AsyncIterator[tuple[Door, ...]]:
    """Opens one that answers in capitals after reading everything, and one that hangs up at once."""

    async def loudly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        writer.close()

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with (
        await asyncio.start_unix_server(loudly, tmp_path / "loud.sock"),
        await asyncio.start_unix_server(hang_up, tmp_path / "mute.sock"),
    ):
        yield (Door(PORT, tmp_path / "loud.sock"), Door(OTHER, tmp_path / "mute.sock"))


async def run(tmp_path: Path, doors: tuple[Door, ...], program: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in the sandbox, as a job would."""
    workspace = Workspace(tmp_path / "copy", tmp_path / "home")
    for folder in (workspace.copy, workspace.home):
        folder.mkdir(exist_ok=True)
    sandbox = await open_sandbox(SandboxSettings(allow_root=True), tmp_path / "data")
    script = tmp_path / "program.py"
    script.write_text(TALK + textwrap.dedent(program))
    prepared = sandbox.prepare(Program((sys.executable, str(script)), doors=doors), workspace)
    return await asyncio.to_thread(
        subprocess.run,
        prepared.arguments,
        cwd=prepared.directory,
        env=dict(prepared.environment),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


async def test_a_port_inside_leads_to_the_socket_outside(tmp_path: Path, doors: tuple[Door, ...]) -> None:
    """Both ways, as long as either side sends; the program's exit and output are unchanged."""
    program = f"""
    print(ask({PORT}, b"hello"), len(ask({PORT}, b"x" * 5_000_000)), ask({OTHER}, b""))
    sys.exit(3)
    """
    done = await run(tmp_path, doors, program)
    assert (done.stdout, done.stderr, done.returncode) == ("b'HELLO' 5000000 b''\n", "", 3)


async def test_nothing_else_is_reachable_from_the_sandbox(tmp_path: Path, doors: tuple[Door, ...]) -> None:
    """Neither services on this machine, nor other addresses, nor names."""
    name = f"pagehand-test-{tmp_path.name}"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{name}")
        abstract.listen()
        listens = tcp.getsockname()[1]
        program = f"""
        here = ("127.0.0.1", "2130706433", "::1", "::ffff:127.0.0.1")
        elsewhere = (("192.0.2.1", 443), ("169.254.169.254", 80), ("2001:db8::1", 443), ("::ffff:192.0.2.1", 443))
        for host, port in (*((host, {listens}) for host in here), *elsewhere):
            print(fails(lambda: socket.create_connection((host, port), 5)))
        print(fails(lambda: socket.socket(socket.AF_UNIX).connect("\\0{name}")))
        print(fails(lambda: socket.getaddrinfo("example.com", 443)))
        print([name for _, name in socket.if_nameindex()])
        """
        done = await run(tmp_path, doors, program)
    refused, unreachable = "ConnectionRefusedError", "OSError"
    told = [*[refused] * 4, *[unreachable] * 4, refused, "gaierror", "['lo']"]
    assert done.stdout.splitlines() == told, done.stderr


async def test_a_hundred_concurrent_connections_are_served(tmp_path: Path, doors: tuple[Door, ...]) -> None:
    """Further ones wait their turn."""
    program = f"""
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(200) as pool:
        answers = list(pool.map(lambda number: ask({PORT}, b"n%d" % number), range(300)))
    print(answers == [b"N%d" % number for number in range(300)])
    """
    assert (await run(tmp_path, doors, program)).stdout == "True\n"


async def test_a_full_backlog_is_waited_for(tmp_path: Path) -> None:
    """The listener outside may be slow to accept: no connection is lost."""

    async def loudly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        writer.close()

    program = f"""
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda number: ask({PORT}, b"n%d" % number), range(100)))
    print(answers == [b"N%d" % number for number in range(100)])
    """
    async with await asyncio.start_unix_server(loudly, tmp_path / "slow.sock", backlog=1):
        done = await run(tmp_path, (Door(PORT, tmp_path / "slow.sock"),), program)
    assert done.stdout == "True\n", done.stderr


async def test_a_program_that_kills_the_forwarder_loses_its_own_doors(tmp_path: Path, doors: tuple[Door, ...]) -> None:
    """The forwarder is no child of the program, and holds nothing that the program does not have."""
    program = f"""
    import os, signal
    others = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and int(pid) not in {{1, os.getpid()}}]
    print(fails(lambda: os.waitpid(-1, 0)))
    for pid in others:
        os.kill(pid, signal.SIGKILL)
    while any(os.path.exists(f"/proc/{{pid}}") for pid in others):
        pass
    print(len(others), fails(lambda: ask({PORT}, b"still there?")))
    """
    done = await run(tmp_path, doors, program)
    assert done.stdout.splitlines() == ["ChildProcessError", "1 ConnectionRefusedError"], done.stderr


async def test_an_unanswered_door_closes_the_connection(tmp_path: Path, doors: tuple[Door, ...]) -> None:
    """The server has ended its side of the run."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "left.sock"))  # and nobody listens
    gone = Door(PORT, tmp_path / "left.sock")
    done = await run(tmp_path, (gone, doors[1]), f'print(ask({PORT}, b""))')
    assert done.stdout == "b''\n", done.stderr
