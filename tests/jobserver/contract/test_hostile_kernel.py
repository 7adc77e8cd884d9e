"""System calls that a program in the sandbox makes, one by one, in a running job server."""

import asyncio
import platform
import signal
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


async def test_no_job_clears_a_keyring(tmp_path: Path) -> None:
    program = SYSTEM_CALLS + "attempt('clears', lambda: call(250, 7, -5))\nreport()"
    async with hostile_world(tmp_path, program) as world:
        assert await findings(world) == {"clears": "EPERM"}


REACHES_FOR_THE_KERNEL = """
UNSHARE, SETNS, MOUNT, UMOUNT, PIVOT, OPEN_TREE, FSOPEN, MOVE_MOUNT = 272, 308, 165, 166, 155, 428, 430, 429
text = ctypes.create_string_buffer(4096)
namespaces = {"user": 0x10000000, "mounts": 0x20000, "network": 0x40000000, "processes": 0x20000000}
for name, flag in namespaces.items():
    attempt(f"namespace of {name}", lambda: call(UNSHARE, flag))
    attempt(f"child in a namespace of {name}", lambda: call(56, flag | 17, 0, 0, 0, 0))
attempt("clone3", lambda: call(435, text, 88))
attempt("x32", lambda: call(0x40000000 | 39))
attempt("unheard of", lambda: call(1000))
attempt("enters", lambda: call(SETNS, 0, 0))
attempt("mounts", lambda: call(MOUNT, b"x", b"/tmp", b"tmpfs", 0, 0))
attempt("mounts in a new way", lambda: (call(OPEN_TREE, -100, b"/", 1), call(FSOPEN, b"tmpfs", 0), call(MOVE_MOUNT)))
attempt("unmounts", lambda: (call(UMOUNT, b"/tmp", 2), call(PIVOT, b"/tmp", b"/tmp"), call(161, b"/tmp")))
attempt("io_uring", lambda: (call(425, 8, text), call(426, 0, 0, 0, 0, 0, 0), call(427, 0, 0, 0, 0)))
attempt("traces", lambda: (call(101, 0, 0, 0, 0), call(310, os.getpid(), 0, 0, 0, 0, 0), call(311, 0, 0, 0, 0, 0, 0)))
attempt("takes a descriptor", lambda: (call(438, 0, 0, 0), call(312, 0, 0, 0, 0, 0), call(440, 0, 0, 0, 0, 0)))
attempt("bpf", lambda: call(321, 0, text, 100))
attempt("faults", lambda: call(323, 1))
attempt("counters", lambda: call(298, text, 0, -1, -1, 0))
attempt("handles", lambda: (call(303, -100, b"/tmp", text, text, 0), call(304, -100, text, 0)))
attempt("kernels", lambda: (call(246, 0, 0, 0, 0), call(320, 0, 0, 0, 0, 0), call(169, 0, 0, 0, 0)))
attempt("modules", lambda: (call(175, text, 0, b""), call(313, 0, b"", 0), call(176, b"x", 0)))
attempt("log", lambda: call(103, 3, text, 100))
attempt("accounts", lambda: (call(163, 0), call(179, 0, 0, 0, 0), call(167, b"x", 0), call(168, b"x")))
attempt("hidden memory", lambda: call(447, 0))
attempt("personality", lambda: (call(135, 0xFFFFFFFF), call(135, 0x0040000)))
attempt("types into a terminal", lambda: [call(16, 0, request, text) for request in (0x5412, 0x541C, 0x5423)])
import socket
for name, family in {"vsock": 40, "packet": 17, "alg": 38, "bluetooth": 31, "rds": 21, "smc": 43, "none": 0}.items():
    attempt(name, lambda: call(41, family, 1, 0))
attempt("pair", lambda: call(53, 30, 1, 0, text))
attempt("mptcp, sctp, dccp", lambda: (call(41, 2, 1, 262), call(41, 10, 1, 132), call(41, 2, 6, 33)))
attempt("sctp, with more bits", lambda: call(41, 2 | 1 << 40, 1, 132 | 1 << 40))
attempt("audit, netfilter", lambda: (call(41, 16, 3, 9), call(41, 16, 3, 12)))
def as_32_bit():
    import mmap
    child = os.fork()
    if child == 0:
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20 (getpid); int 0x80; ret
        address = ctypes.addressof(ctypes.c_char.from_buffer(page))
        os._exit(0 if ctypes.CFUNCTYPE(ctypes.c_int)(address)() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
attempt("as a 32-bit program", as_32_bit)
report()
"""


async def test_kernel_internal_calls_are_refused(tmp_path: Path) -> None:
    async with hostile_world(tmp_path, SYSTEM_CALLS + REACHES_FOR_THE_KERNEL) as world:
        found = await findings(world)
    own, absent, none, no_protocol = "EPERM", "ENOSYS", "EAFNOSUPPORT", "EPROTONOSUPPORT"
    namespaces = {found.pop(name) for name in list(found) if "namespace" in name}
    assert namespaces == {own}
    families = ("vsock", "packet", "alg", "bluetooth", "rds", "smc", "none", "pair")
    assert {name: found.pop(name) for name in families} == dict.fromkeys(families, none)
    ended = {str(-signal.SIGSYS), str(-signal.SIGSEGV)}
    assert found.pop("as a 32-bit program") in ended, "by the filter, or by a kernel without such programs"
    assert (found.pop("clone3"), found.pop("x32"), found.pop("unheard of")) == (absent, absent, absent)
    assert found.pop("personality") == str((0, own))
    assert found.pop("mptcp, sctp, dccp") == str((no_protocol,) * 3)
    assert found.pop("sctp, with more bits") == no_protocol
    assert found.pop("audit, netfilter") == str((no_protocol,) * 2)
    assert {word for answers in found.values() for word in answers.strip("()[]").replace("'", "").split(", ")} == {own}


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
