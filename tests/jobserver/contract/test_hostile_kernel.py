"""System calls of a program in the sandbox of a running job server: the filter is on, and ordinary programs work."""

import asyncio
import platform
import uuid
from pathlib import Path

import pytest
from support.worlds.hostile_world import findings, findings_of, hostile_world, needs_bubblewrap

pytestmark = [
    pytest.mark.skipif("sys.platform != 'linux'", reason="bubblewrap exists for Linux only"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the programs name system calls by x86-64's numbers"),
]


@pytest.fixture(autouse=True, scope="module")
def bubblewrap() -> None:
    needs_bubblewrap()


SYSTEM_CALLS = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(number, *arguments):
    ctypes.set_errno(0)
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    answer = libc.syscall(ctypes.c_long(number), *words)
    return answer if answer != -1 else errno.errorcode[ctypes.get_errno()]
"""

KEYRINGS = (
    SYSTEM_CALLS
    + """
ADD_KEY, REQUEST_KEY, KEYCTL = 248, 249, 250
CLEAR, SEARCH, READ = 7, 10, 11
SESSION, USER, USER_SESSION = -3, -4, -5
def read(keyring):
    key = call(KEYCTL, SEARCH, keyring, b"user", NAME, 0)
    text = ctypes.create_string_buffer(100)
    length = call(KEYCTL, READ, key, text, 100) if isinstance(key, int) else key
    return text.raw[:length].decode() if isinstance(length, int) else length
for keyring in (SESSION, USER, USER_SESSION):
    attempt(f"reads {keyring}", lambda: read(keyring))
attempt("asks", lambda: call(REQUEST_KEY, b"user", NAME, 0, SESSION))
for keyring in (SESSION, USER, USER_SESSION):
    attempt(f"leaves {keyring}", lambda: call(ADD_KEY, b"user", NAME, b"left by another job", 19, keyring))
def shown():
    if not os.path.exists("/proc/keys"):
        raise PermissionError
    return open("/proc/keys").read()
attempt("is shown", shown)
"""
)
REFUSED_KEYRINGS = {
    **{f"{deed} {keyring}": "EPERM" for deed in ("reads", "leaves") for keyring in (-3, -4, -5)},
    "asks": "EPERM",
    "is shown": "PermissionError",
}


async def test_no_job_reads_another_jobs_kernel_keyring(tmp_path: Path) -> None:
    """Sequentially and concurrently."""
    program = f"NAME = {uuid.uuid4().hex!r}.encode()\n{KEYRINGS}\nreport()"
    async with hostile_world(tmp_path, program) as world:
        assert await findings(world) == REFUSED_KEYRINGS
        assert await findings(world) == REFUSED_KEYRINGS
        jobs = await asyncio.gather(world.done("left"), world.done("right"))
        for job in jobs:
            assert findings_of(world, job) == REFUSED_KEYRINGS


GOES_ON_AS_USUAL = """
import asyncio, concurrent.futures, multiprocessing, shutil, socket, sqlite3, tempfile, threading
def talks(family, address):
    with socket.socket(family) as listening:
        listening.bind(address)
        listening.listen()
        with socket.socket(family) as calling:
            calling.connect(listening.getsockname())
            listening.accept()[0].sendall(b"heard")
            return calling.recv(5).decode()
def has_ipv6():
    addresses = pathlib.Path("/proc/net/if_inet6")
    return addresses.exists() and "1".rjust(32, "0") in addresses.read_text()
attempt("IPv4", lambda: talks(socket.AF_INET, ("127.0.0.1", 0)))
attempt("IPv6", lambda: talks(socket.AF_INET6, ("::1", 0)) if has_ipv6() else "heard")
attempt("Unix", lambda: talks(socket.AF_UNIX, "/tmp/socket"))
attempt("interfaces", lambda: "lo" in dict(map(reversed, socket.if_nameindex())))
attempt("threads", lambda: sum(concurrent.futures.ThreadPoolExecutor(20).map(int, "123")))
def square(number):
    return number * number
def squared():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return sum(pool.map(square, [1, 2, 3]))
attempt("processes", squared)
attempt("event loop", lambda: asyncio.run(asyncio.sleep(0, "looped")))
attempt("shell", lambda: subprocess.check_output("echo a | tr a b; sleep 0 & wait", shell=True, text=True))
attempt("database", lambda: sqlite3.connect("/tmp/x.sqlite3").execute("create table x (y)").fetchall())
attempt("shared memory", lambda: multiprocessing.get_context("fork").Value("i", 7).value)
attempt("memory file", lambda: os.memfd_create("x") > 2)
attempt("links", lambda: os.symlink("a", "/tmp/b") or os.rename("/tmp/b", "/tmp/c") or os.readlink("/tmp/c"))
def runs(needed, *command):
    if shutil.which(needed) is None:
        return "not here"
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/tmp")
    return done.stdout.strip() or done.stderr[-300:]
NODE = '''
const {Worker, isMainThread, parentPort} = require("worker_threads");
if (!isMainThread) { parentPort.postMessage("posted"); return; }
const fs = require("fs"), net = require("net"), os = require("os"), {execSync} = require("child_process");
os.networkInterfaces(); fs.watch("/tmp").close(); fs.cpSync("/etc/passwd", "/tmp/copied");
const server = net.createServer(end => end.end("heard")).listen(0, "127.0.0.1", () =>
  net.connect(server.address().port).on("data", data => new Worker(process.argv[1]).on("message", word => {
    console.log(String(data), word, String(execSync("echo run")).trim()); process.exit();
  })));
'''
open("/tmp/all.js", "w").write(NODE)
attempt("node", lambda: runs("node", "node", "/tmp/all.js"))
os.environ |= {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
attempt("git", lambda: runs("git", "sh", "-c", "git init -q; git commit -q --allow-empty -m x; git log --format=%s"))
open("/tmp/x.c", "w").write("int main() { return 0; }")
attempt("compiler", lambda: runs("cc", "sh", "-c", "cc x.c -o x && ./x && echo compiled"))
report()
"""


@pytest.mark.full
async def test_ordinary_programs_are_unaffected_by_the_filter(tmp_path: Path) -> None:
    """Python, a shell, and if installed node, git and a C compiler."""
    async with hostile_world(tmp_path, GOES_ON_AS_USUAL) as world:
        found = await findings(world)
    for name, expected in {"node": "heard posted run", "git": "x", "compiler": "compiled"}.items():
        assert found.pop(name) in {expected, "not here"}, name
    assert found == {
        **dict.fromkeys(("IPv4", "IPv6", "Unix"), "heard"),
        "interfaces": "True", "threads": "6", "processes": "14", "event loop": "looped", "shell": "b\n",
        "database": "[]", "shared memory": "7", "memory file": "True", "links": "a",
    }  # fmt: skip
