"""Hostile programs in a running job server: what they can see, reach, use up and leave behind."""

import asyncio
import json
import os
import platform
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.servers.free_ports import free_port
from support.servers.loud import loudly
from support.worlds.hostile_world import findings, findings_of, hostile_world, needs_bubblewrap, processes_naming
from support.worlds.jobserver_world import ADA, KEY

pytestmark = [
    pytest.mark.skipif("sys.platform != 'linux'", reason="bubblewrap exists for Linux only"),
    pytest.mark.promise("sandbox"),
]


@pytest.fixture(autouse=True, scope="module")
def bubblewrap() -> None:
    needs_bubblewrap()


ADD_KEY = {"x86_64": 248, "aarch64": 217}[platform.machine()]


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
    given = {"API_KEY": KEY, "COPY_OF_KEY": f"x{KEY}", "REGION": "for the agent", "OTHER": "nobody's"}
    names = {name: f"PAGEHAND_JOBSERVER_{name}" for name in given}
    for name, value in given.items():
        monkeypatch.setenv(names[name], value)
    program = f"""
    import ctypes, errno, signal
    libc = ctypes.CDLL(None, use_errno=True)
    pids = [pid for pid in os.listdir("/proc") if pid.isdigit()]
    attempt("processes", lambda: len(pids))
    def everything():
        texts = [open(f"/proc/{{pid}}/{{name}}", errors="replace").read() for pid in pids
                 for name in ("environ", "cmdline")]
        return {KEY!r} in "".join(texts)
    attempt("key in sight", everything)
    attempt("keys of others", lambda: open("/proc/keys").read())
    attempt("the kernel's keyring", lambda: libc.syscall({ADD_KEY}, b"user", b"name", b"left", 4, -4))
    attempt("why", lambda: errno.errorcode[ctypes.get_errno()])
    attempt("kill the server", lambda: os.kill({os.getpid()}, signal.SIGKILL))
    attempt("trace the server", lambda: libc.ptrace(16, {os.getpid()}, 0, 0))
    attempt("variables", lambda: [os.environ.get(name) for name in {list(names.values())!r}])
    attempt("terminal", lambda: open("/dev/tty"))
    attempt("privileges", lambda: [l for l in open("/proc/self/status") if l.startswith("CapEff")][0].split()[1])
    attempt("no new ones", lambda: [l for l in open("/proc/self/status") if l.startswith("NoNewPrivs")][0].split()[1])
    attempt("user namespace", lambda: subprocess.run(["unshare", "-Ur", "true"], stderr=-3).returncode)
    report()
    """
    passed = (names["API_KEY"], names["COPY_OF_KEY"], names["REGION"])
    async with hostile_world(tmp_path, program, pass_environment=passed) as world:
        found = await findings(world)
    assert int(found.pop("processes")) <= 3
    assert found.pop("keys of others") in {"PermissionError", "FileNotFoundError"}
    assert int(found.pop("user namespace")) != 0
    assert int(found.pop("privileges"), 16) == 0
    assert found == {
        "key in sight": "False",
        "the kernel's keyring": "-1",
        "why": "EPERM",
        "kill the server": "ProcessLookupError",
        "trace the server": "-1",
        "variables": str([None, None, "for the agent", None]),
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
async def test_only_a_home_without_its_caches_survives_between_instructions(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs" / "_cacache" / "kept"
    theirs.parent.mkdir(parents=True)
    theirs.touch()
    program = f"""
    home = pathlib.Path.home()
    attempt("found", lambda: sorted(path.name for path in [*home.iterdir(), *pathlib.Path("/tmp").glob("mine")]))
    pathlib.Path("/tmp/mine").touch()
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
        assert findings_of(world, await world.continued(job["id"], "go on")) == {"found": str([".npm", ".session"])}
    assert theirs.exists()


FORKS = """
import time
for _ in range(200):
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
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
        (SHARED_HOG, {"memory_limit": 150 * 2**20}, "it used more than 150.0 MiB of memory"),
        (FILLER, {"disk_limit": 16 * 2**20}, "it wrote more than 16.0 MiB to the disk"),
        pytest.param(
            EMPTY_FILES, {"disk_limit": 16 * 2**20}, "it wrote more than 16.0 MiB to the disk", marks=pytest.mark.full
        ),
        (DEEP, {}, "it created folders that cannot be read"),
    ],
    ids=["processes", "memory of many", "disk", "empty files", "deep folders"],
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


async def test_an_open_network_is_a_setting(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        program = f"""
        import socket
        attempt("loopback", lambda: socket.create_connection({address!r}, 5).close())
        report()
        """
        async with hostile_world(tmp_path, program, egress="open") as world:
            assert await findings(world) == {"loopback": "None"}


ASK = r"""
    import socket
    def through(target, words=b""):
        host, port = os.environ["HTTPS_PROXY"].removeprefix("http://").rsplit(":", 1)
        with socket.create_connection((host, int(port)), 20) as proxy:
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
        log, page = world.log(job["id"]), (await world.client.get(job["prLink"], auth=ADA)).text
    assert found.pop("listed") == "True"
    assert (found.pop("directly"), found.pop("the server")) == ("ConnectionRefusedError", "ConnectionRefusedError")
    assert found == dict.fromkeys(targets, "403")
    refused = f"It tried to reach localhost:{own}, an address that is not a host name, metadata.google.internal:80"
    assert job["details"]["summary"].endswith(f"{refused}, {public}: not allowed here.")
    assert "refused: an address that is not a host name (7)" in log
    assert f"It tried to reach localhost:{own}" in page
