"""What a program in a sandbox without a network reaches: its doors, and by one its model, with a worthless key."""

import asyncio
import json
import socket
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from support.servers.loud import loudly
from support.servers.relayed_model import KEY, Upstream, upstream_server
from support.worlds.hostile_world import PYTHON, findings, hostile_world, needs_bubblewrap

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


@pytest.mark.full
async def test_a_port_inside_leads_to_the_socket_outside(tmp_path: Path, doors: tuple[Door, ...]) -> None:
    """Both ways, as long as either side sends; the program's exit and output are unchanged."""
    program = f"""
    print(ask({PORT}, b"hello"), len(ask({PORT}, b"x" * 5_000_000)), ask({OTHER}, b""))
    sys.exit(3)
    """
    done = await run(tmp_path, doors, program)
    assert (done.stdout, done.stderr, done.returncode) == ("b'HELLO' 5000000 b''\n", "", 3)


async def test_nothing_else_is_reachable_from_the_sandbox(tmp_path: Path, doors: tuple[Door, ...]) -> None:
    """Neither services on this machine, nor other addresses, nor names, by any kind of socket."""
    name = f"pagehand-test-{tmp_path.name}"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{name}")
        abstract.listen()
        listens = tcp.getsockname()[1]
        program = f"""
        here = ("127.0.0.1", "2130706433", "::1", "::ffff:127.0.0.1")
        elsewhere = (("192.0.2.1", 443), ("169.254.169.254", 80), ("2001:db8::1", 443), ("::ffff:192.0.2.1", 443))
        datagrams = (("8.8.8.8", 53), ("2001:4860:4860::8888", 53), ("192.168.255.255", 9), ("ff02::1", 9))
        def sends(host, port):
            with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as connection:
                connection.sendto(b"out", (host, port))
        for host, port in (*((host, {listens}) for host in here), *elsewhere):
            print(fails(lambda: socket.create_connection((host, port), 5)))
        for host, port in datagrams:
            print(fails(lambda: sends(host, port)))
        print(fails(lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).connect((2, 1))))
        print(fails(lambda: socket.socket(socket.AF_UNIX).connect("\\0{name}")))
        print(fails(lambda: socket.getaddrinfo("example.com", 443)))
        print([name for _, name in socket.if_nameindex()])
        """
        done = await run(tmp_path, doors, program)
    refused, unreachable = "ConnectionRefusedError", "OSError"
    told = [*[refused] * 4, *[unreachable] * 9, refused, "gaierror", "['lo']"]
    assert done.stdout.splitlines() == told, done.stderr


async def test_hundreds_of_connections_and_a_full_backlog_are_waited_for(tmp_path: Path) -> None:
    """The listener outside may be slow to accept: no connection is lost."""
    program = f"""
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(200) as pool:
        answers = list(pool.map(lambda number: ask({PORT}, b"n%d" % number), range(300)))
    print(answers == [b"N%d" % number for number in range(300)])
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


ASK = """
import urllib.error, urllib.request
def ask(path, **more):
    body = json.dumps({"model": "m", "messages": [], **more}).encode()
    headers = {"Content-Type": "application/json", "x-api-key": os.environ["ANTHROPIC_API_KEY"]}
    request = urllib.request.Request(sys.argv[1] + path, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
"""
SEARCH = f"""
key = b"-".join([{", ".join(map(repr, KEY.encode().split(b"-")))}])
places = []
def look(path):
    try:
        with open(path, "rb") as stream:
            return key in stream.read(5_000_000)
    except OSError:
        return False
for pid in filter(str.isdigit, os.listdir("/proc")):
    names = ("environ", "cmdline", "status", "mountinfo", "net/unix")
    places += [path for name in names if look(path := f"/proc/{{pid}}/{{name}}")]
for root in ("/workspace", "/tmp", "/dev/shm", "/etc", "/run", "/home"):
    for folder, _, names in os.walk(root):
        places += [path for name in names if os.path.isfile(path := os.path.join(folder, name)) and look(path)]
attempt("places", lambda: places)
attempt("environment", lambda: [n for n, v in os.environ.items() if key.decode() in v])
"""


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with upstream_server() as upstream:
        yield upstream


def model(upstream: Upstream, **more: Any) -> dict[str, Any]:
    key = SecretStr(KEY)
    return {"egress": (), "model_api": "anthropic", "model_key": key, "model_url": upstream.url, **more}


@pytest.mark.full
async def test_a_command_uses_its_model_without_ever_holding_the_key(tmp_path: Path, upstream: Upstream) -> None:
    """Not in a file, its environment, an argument or anything else that it can read."""
    program = ASK + SEARCH + 'attempt("asked", lambda: ask("/v1/messages"))\nreport()'
    async with hostile_world(tmp_path, program, "{model_url}", **model(upstream)) as world:
        found = await findings(world)
    assert found["asked"] == str((200, '{"ok": true}'))
    assert (found["places"], found["environment"]) == ("[]", "[]")
    assert [request.headers["x-api-key"] for request, _ in upstream.asked] == [KEY]


@pytest.mark.full
async def test_the_relays_refusals_reach_the_program_and_people(tmp_path: Path, upstream: Upstream) -> None:
    program = (
        ASK + 'attempt("asked", lambda: ask("/v1/messages", mcp_servers=[{"url": "https://x.example"}]))\nreport()'
    )
    async with hostile_world(tmp_path, program, "{model_url}", **model(upstream)) as world:
        job = await world.done("go")
        assert "refused: its model's API (mcp_servers) (1)" in world.log(job["id"])
        assert "It tried to reach its model's API (mcp_servers): not allowed here." in json.dumps(job["details"])
        found = json.loads(world.show(f"pagehand/{job['id']}", "found.json"))
    assert found["asked"].startswith("(403")
    assert "mcp_servers" in found["asked"]
    assert not upstream.asked


@pytest.mark.full
async def test_checks_cannot_reach_the_model(tmp_path: Path, upstream: Upstream) -> None:
    """A command of the repository runs code from the change."""
    check = (PYTHON, "-c", "import socket; socket.create_connection(('127.0.0.1', 8701), 5)")
    async with hostile_world(tmp_path, "report()", **model(upstream, checks=(check,))) as world:
        job = await world.done("go")
    results = {result["name"]: result["status"] for result in job["details"]["pullRequest"]["checks"]}
    assert "failed" in results.values()
    assert not upstream.asked
