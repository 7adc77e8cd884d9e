"""Hostile programs in a running job server: what they can see, reach, use up and leave behind."""

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from support.servers.free_ports import free_port
from support.worlds.hostile_world import findings, findings_of, hostile_world, needs_bubblewrap, processes_naming
from support.worlds.jobserver_world import ADA, KEY

pytestmark = [
    pytest.mark.skipif("sys.platform != 'linux'", reason="bubblewrap exists for Linux only"),
    pytest.mark.promise("sandbox"),
]


@pytest.fixture(autouse=True, scope="module")
def bubblewrap() -> None:
    needs_bubblewrap()


@pytest.mark.full
async def test_an_agent_sees_no_files_of_the_server_or_other_jobs(tmp_path: Path) -> None:
    secret = tmp_path / "api.key"
    secret.write_text(KEY)
    other = tmp_path / "data" / "jobs" / "other-job" / "copy" / "page.md"
    program = f"""
    for path in {[str(secret), str(other), str(tmp_path / "data"), str(tmp_path / "r.git"), str(tmp_path)]!r}:
        attempt(path, lambda: open(path).read() if os.path.isfile(path) else os.listdir(path))
    for path in ("/home", "/var", "/run", "/sys", "/srv", "/mnt", "/boot", "/opt", "/etc/shadow", "/etc/ssl/private"):
        attempt(path, lambda: os.listdir(path))
    attempt("root", lambda: sorted(set(os.listdir("/")) - set(sys.executable.split("/"))))
    report()
    """
    async with hostile_world(tmp_path, program) as world:
        other.parent.mkdir(parents=True)
        other.write_text("another job's")
        found = await findings(world)
    # The folder of its own program is visible, with nothing else in it.
    assert found.pop(str(tmp_path)) == "['program.py']"
    system = {"bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "nix", "proc", "sbin", "tmp", "usr", "workspace"}
    assert set(json.loads(found.pop("root").replace("'", '"'))) <= system
    assert set(found.values()) == {"FileNotFoundError"}, found


async def test_an_agent_sees_no_processes_or_variables_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGEHAND_JOBSERVER_API_KEY", KEY)
    program = f"""
    import ctypes, signal
    pids = [pid for pid in os.listdir("/proc") if pid.isdigit()]
    attempt("processes", lambda: len(pids))
    def everything():
        texts = [open(f"/proc/{{pid}}/{{name}}", errors="replace").read() for pid in pids
                 for name in ("environ", "cmdline")]
        return {KEY!r} in "".join(texts)
    attempt("key in sight", everything)
    attempt("kill the server", lambda: os.kill({os.getpid()}, signal.SIGKILL))
    attempt("trace the server", lambda: ctypes.CDLL(None).ptrace(16, {os.getpid()}, 0, 0))
    attempt("terminal", lambda: open("/dev/tty"))
    attempt("privileges", lambda: [l for l in open("/proc/self/status") if l.startswith("CapEff")][0].split()[1])
    attempt("no new ones", lambda: [l for l in open("/proc/self/status") if l.startswith("NoNewPrivs")][0].split()[1])
    attempt("user namespace", lambda: subprocess.run(["unshare", "-Ur", "true"], stderr=-3).returncode)
    report()
    """
    async with hostile_world(tmp_path, program, pass_environment="PAGEHAND_JOBSERVER_API_KEY") as world:
        found = await findings(world)
    assert int(found.pop("processes")) <= 3
    assert int(found.pop("user namespace")) != 0
    assert int(found.pop("privileges"), 16) == 0
    assert found == {
        "key in sight": "False",
        "kill the server": "ProcessLookupError",
        "trace the server": "-1",
        "terminal": "OSError",
        "no new ones": "1",
    }


async def test_an_agent_writes_only_to_its_copy_its_home_and_a_small_tmp(tmp_path: Path) -> None:
    program = """
    places = ["/", "/usr", "/usr/bin", "/etc", "/dev", "/workspace", "/proc", "/bin"]
    for place in places:
        attempt(place, lambda: open(os.path.join(place, "planted"), "w"))
    for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/self/oom_score_adj", __file__,
                 sys.executable, "/etc/passwd"):
        attempt(path, lambda: os.close(os.open(path, os.O_WRONLY)))
    def fill(folder):
        with open(os.path.join(folder, "big"), "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 2**30 + 2**20)
    attempt("/tmp", lambda: fill("/tmp"))
    attempt("/dev/shm", lambda: fill("/dev/shm"))
    attempt("home", lambda: (open(os.path.expanduser("~/kept"), "w").close(), os.path.expanduser("~"))[1])
    attempt("copy", os.getcwd)
    report()
    """
    async with hostile_world(tmp_path, program) as world:
        found = await findings(world)
    assert (found.pop("home"), found.pop("copy")) == ("/workspace/home", "/workspace/copy")
    assert set(found.values()) <= {"OSError", "PermissionError", "FileNotFoundError"}, found


@pytest.mark.full
async def test_only_caches_of_the_home_survive_between_instructions(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs" / "_cacache" / "kept"
    theirs.parent.mkdir(parents=True)
    theirs.touch()
    program = f"""
    home = pathlib.Path.home()
    attempt("found", lambda: sorted(path.name for path in home.iterdir()))
    (home / ".cache" / "program").mkdir(parents=True)
    (home / ".cache" / "program" / "big").write_bytes(b"x" * 1_000_000)
    if not (home / ".npm").is_symlink():
        (home / ".npm").symlink_to({str(tmp_path / "theirs")!r})
    (home / ".session").touch()
    report()
    """
    async with hostile_world(tmp_path, program) as world:
        job = await world.done("go")
        assert findings_of(world, job) == {"found": "[]"}
        await world.message(job["id"], "go on")
        assert findings_of(world, await world.ended(job["id"])) == {"found": str([".npm", ".session"])}
    assert theirs.exists()


FORKS = """
import time
for _ in range(200):
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
time.sleep(600)
"""
HOG = """
import time
kept = []
for _ in range(500):
    kept.append(bytearray(os.urandom(1)) * 1_000_000)
    time.sleep(0.001)
time.sleep(600)
"""
SHARED_HOG = """
import time
for _ in range(10):
    if os.fork() == 0:
        kept = bytearray(b"x") * 40_000_000
        time.sleep(600)
time.sleep(600)
"""
FILLER = """
import time
for number in range(40):
    open(os.path.join(sys.argv[1], str(number)), "wb").write(b"x" * 1_000_000)
time.sleep(600)
"""
EMPTY_FILES = """
import time
for number in range(5_000):
    open(str(number), "wb").close()
time.sleep(600)
"""
DEEP = """
import time
for _ in range(50):
    os.mkdir("d" * 100)
    os.chdir("d" * 100)
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("program", "setting", "reason"),
    [
        (FORKS, {"process_limit": 40}, "it started more than 40 processes"),
        (HOG, {"memory_limit": 150 * 2**20}, "it used more than 150 MiB of memory"),
        (SHARED_HOG, {"memory_limit": 150 * 2**20}, "it used more than 150 MiB of memory"),
        (FILLER, {"disk_limit": 16 * 2**20}, "it wrote more than 16 MiB to the disk"),
        pytest.param(
            EMPTY_FILES, {"disk_limit": 16 * 2**20}, "it wrote more than 16 MiB to the disk", marks=pytest.mark.full
        ),
        (DEEP, {}, "it created folders that cannot be read"),
    ],
    ids=["processes", "memory", "memory of many", "disk", "empty files", "deep folders"],
)
async def test_exhausting_the_machine_is_stopped_with_a_reason(
    tmp_path: Path, program: str, setting: dict[str, int], reason: str
) -> None:
    async with hostile_world(tmp_path, program, "/workspace/home", **setting) as world:
        job = await world.done("go")
        assert job["status"] == "failed"
        assert f"the editor was ended: {reason}" in world.log(job["id"])
        assert processes_naming(str(tmp_path / "program.py")) == []
        assert (await world.client.get("/health")).is_success


LEAVES = """
import time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        import signal
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        null = os.open("/dev/null", os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        pathlib.Path("started").touch()
        time.sleep(600)
    os._exit(0)
while not pathlib.Path("started").exists():
    time.sleep(0.01)
if sys.argv[1] == "stays":
    time.sleep(600)
"""


@pytest.mark.full
@pytest.mark.parametrize("sandbox", ["bubblewrap", "none"])
@pytest.mark.parametrize("how", ["stays", "ends"])
async def test_nothing_outlives_a_run_even_in_another_session(tmp_path: Path, sandbox: str, how: str) -> None:
    limit = "1.5" if how == "stays" else "60"
    async with hostile_world(tmp_path, LEAVES, how, sandbox=sandbox, time_limit=limit) as world:
        job = await world.done("go")
        assert job["status"] == ("failed" if how == "stays" else "completed")
        assert processes_naming(str(tmp_path / "program.py")) == []


@pytest.fixture
def listeners() -> Iterator[tuple[int, str]]:
    """Opens a port on loopback and an abstract socket, both with somebody who answers."""
    name = f"pagehand-test-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{name}")
        abstract.listen()
        yield tcp.getsockname()[1], name


@pytest.mark.parametrize("has_network", [True, False])
async def test_the_network_is_a_setting(tmp_path: Path, listeners: tuple[int, str], has_network: bool) -> None:  # noqa: FBT001
    port, name = listeners
    program = f"""
    import socket
    attempt("loopback", lambda: socket.create_connection(("127.0.0.1", {port}), 5).close())
    attempt("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\\0{name}"))
    attempt("interfaces", lambda: [name for _, name in socket.if_nameindex() if name != "lo"] == [])
    report()
    """
    async with hostile_world(tmp_path, program, egress="open" if has_network else "none") as world:
        found = await findings(world)
    if has_network:
        assert (found["loopback"], found["abstract"]) == ("None", "None")
    else:
        assert found == {
            "loopback": "ConnectionRefusedError",
            "abstract": "ConnectionRefusedError",
            "interfaces": "True",
        }


@pytest.mark.full
async def test_blocked_connections_are_reported(tmp_path: Path) -> None:
    """By the proxy that its variables name; in the answer, the pull request and the log."""
    program = r"""
    import socket
    def ask(target):
        host, port = os.environ["HTTPS_PROXY"].removeprefix("http://").rsplit(":", 1)
        with socket.create_connection((host, int(port)), 10) as proxy:
            proxy.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
            raise OSError(proxy.makefile().readline().split()[1])
    for target in ("example.com:443", "example.com:443", "127.0.0.1:80"):
        attempt(target, lambda: ask(target))
    report()
    """
    told = "It tried to reach example.com, an address that is not a host name: not allowed here."
    async with hostile_world(tmp_path, program, egress="none") as world:
        job = await world.done("go")
        assert job["details"]["summary"].endswith(told)
        assert "refused: example.com (2)" in world.log(job["id"])
        page = (await world.client.get(job["prLink"], auth=ADA)).text
    assert "It tried to reach example.com" in page


@pytest.mark.full
async def test_tmp_is_not_shared_between_jobs(tmp_path: Path) -> None:
    program = """
    attempt("seen", lambda: os.listdir("/tmp"))
    pathlib.Path("/tmp/mine").touch()
    report()
    """
    async with hostile_world(tmp_path, program) as world:
        for _ in range(2):
            seen = (await findings(world))["seen"]
            assert "mine" not in seen


ASK = r"""
    import socket
    def through(target, words=b""):
        with socket.create_connection(("127.0.0.1", 8702), 20) as proxy:
            proxy.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
            answer = proxy.makefile("rb")
            status = int(answer.readline().split()[1])
            if status != 200:
                return status
            answer.readline()
            proxy.sendall(words)
            proxy.shutdown(socket.SHUT_WR)
            return answer.read()
"""


@pytest.fixture
async def inside() -> AsyncIterator[int]:
    """Yields the port of a service on this machine, which answers in capitals."""

    async def loudly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.write((await reader.read()).upper())
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(loudly, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def test_an_agent_reaches_only_listed_hosts(tmp_path: Path, inside: int) -> None:
    """Neither the server itself, listed or not, nor an address in any spelling, nor a private
    address of a public name.
    """
    own, listed, public = free_port(), f"localhost:{inside}", "localhost:1"
    targets = (
        f"localhost:{own}", f"127.0.0.1:{inside}", f"2130706433:{inside}", f"0x7f.1:{inside}", f"0177.0.0.1:{inside}",
        f"[::1]:{inside}", f"[::ffff:127.0.0.1]:{inside}", "169.254.169.254:80", "metadata.google.internal:80",
        "localhost:1",
    )  # fmt: skip
    program = f"""{ASK}
    attempt("listed", lambda: through("LocalHost.:{inside}", b"hello" * 100_000) == b"HELLO" * 100_000)
    attempt("directly", lambda: socket.create_connection(("127.0.0.1", {inside}), 5))
    attempt("the server", lambda: socket.create_connection(("127.0.0.1", {own}), 5))
    for target in {targets!r}:
        attempt(target, lambda: through(target))
    report()
    """
    egress = f"private:{listed}, private:localhost:{own}, {public}"
    async with hostile_world(tmp_path, program, egress=egress, port=own) as world:
        job = await world.done("go")
        found = findings_of(world, job)
        log = world.log(job["id"])
    assert found.pop("listed") == "True"
    assert (found.pop("directly"), found.pop("the server")) == ("ConnectionRefusedError", "ConnectionRefusedError")
    assert found == dict.fromkeys(targets, "403")
    refused = f"It tried to reach localhost:{own}, an address that is not a host name, metadata.google.internal:80"
    assert job["details"]["summary"].endswith(f"{refused}, {public}: not allowed here.")
    assert "refused: an address that is not a host name (7)" in log


@pytest.mark.full
async def test_public_drafts_cannot_be_read_by_programs(tmp_path: Path) -> None:
    """If reading needs no login: neither directly nor by the proxy, even if the server itself is listed."""
    own = free_port()
    addresses = [("127.0.0.1", own), ("::1", own), ("0.0.0.0", own)]  # noqa: S104 - what a program tries
    program = f"""{ASK}
    def page(connection):
        connection.sendall(b"GET /pulls/1 HTTP/1.1\\r\\nHost: localhost:{own}\\r\\nConnection: close\\r\\n\\r\\n")
        return connection.makefile("rb").readline()
    for address in {addresses!r}:
        attempt(address[0], lambda: page(socket.create_connection(address, 5)))
    attempt("listed", lambda: through("localhost:{own}", b"GET /pulls/1 HTTP/1.1\\r\\n\\r\\n"))
    attempt("fetched", lambda: page(socket.create_connection(("127.0.0.1", 8702), 5)))
    attempt("relay", lambda: page(socket.create_connection(("127.0.0.1", 8701), 5)))
    report()
    """
    settings = {"egress": f"private:localhost:{own}", "port": own, "private_pages": False}
    async with hostile_world(tmp_path, program, **settings) as world:
        assert (await world.done("go"))["prLink"].endswith("/pulls/1")
        job = await world.done("and now that there is one")
        found = findings_of(world, job)
        assert (await world.client.get("/pulls/1")).status_code == 200, "who may look, may"
    assert found.pop("listed") == "403"
    assert "405" in found.pop("fetched")
    assert set(found.values()) == {"ConnectionRefusedError"}, found


@pytest.mark.full
async def test_no_other_kind_of_socket_leads_out(tmp_path: Path, inside: int) -> None:
    """No datagrams, so no DNS; no IPv6, no vsock, no packet sockets."""
    program = f"""{ASK}
    def sends(family, address):
        with socket.socket(family, socket.SOCK_DGRAM) as connection:
            connection.sendto(b"out", address)
    attempt("dns", lambda: sends(socket.AF_INET, ("8.8.8.8", 53)))
    attempt("dns, ipv6", lambda: sends(socket.AF_INET6, ("2001:4860:4860::8888", 53)))
    attempt("broadcast", lambda: sends(socket.AF_INET, ("192.168.255.255", 9)))
    attempt("multicast", lambda: sends(socket.AF_INET6, ("ff02::1", 9)))
    attempt("name", lambda: socket.getaddrinfo("example.com", 443))
    attempt("mapped", lambda: socket.create_connection(("::ffff:127.0.0.1", {inside}), 5))
    attempt("vsock", lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).connect((2, 1)))
    attempt("packets", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
    attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
    report()
    """
    async with hostile_world(tmp_path, program, egress=f"private:localhost:{inside}") as world:
        found = findings_of(world, await world.done("go"))
    errors = {"OSError", "PermissionError", "gaierror", "ConnectionRefusedError"}
    assert len(found) == 9
    assert set(found.values()) <= errors, found


@pytest.mark.full
async def test_many_connections_and_endless_streams_end_with_the_run(tmp_path: Path) -> None:
    """The time limit ends the run, the server continues, and the listed host sees every connection end."""
    ended = asyncio.Semaphore(0)

    async def endlessly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while await reader.read(65_536):
                writer.write(b"x" * 65_536)
                await writer.drain()
        writer.close()
        ended.release()

    async with await asyncio.start_server(endlessly, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        program = f"""
    import socket, threading
    open_ones = []
    for _ in range(200):
        connection = socket.create_connection(("127.0.0.1", 8702), 20)
        connection.sendall(b"CONNECT localhost:{port} HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
        open_ones.append(connection)
    def pump(connection):
        while connection.recv(65_536):
            connection.sendall(b"y" * 65_536)
    threads = [threading.Thread(target=pump, args=(one,)) for one in open_ones[:4]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    """
        settings = {"egress": f"private:localhost:{port}", "time_limit": "2"}
        async with hostile_world(tmp_path, program, **settings) as world:
            job = await world.done("go")
            assert "took longer than 2 s" in job["details"]["reason"]
            async with asyncio.timeout(20):
                for _ in range(4):
                    await ended.acquire()
            assert (await world.client.get("/health")).status_code == 200
