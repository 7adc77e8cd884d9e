"""The filter of system calls, as the running kernel applies it: this machine's, and the other's in its place."""

import errno
import json
import platform
import re
import signal
import struct
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from bot.jobserver.sandbox.seccomp import MACHINES, filter_for, system_calls

ALLOWED = -1
_ASKED = 0x5EC_C0DE
"""The sixth argument of the calls that are asked about. All others, such as the interpreter's own, pass."""
_PROGRAM = f"""
import ctypes, errno, json, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

def install(program):
    code = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, described) == 0, errno.errorcode[ctypes.get_errno()]  # PR_SET_SECCOMP

def answer(number, *arguments):
    ctypes.set_errno(0)
    values = [*arguments, 0, 0, 0, 0, 0][:5] + [{_ASKED}]
    libc.syscall(ctypes.c_long(number), *map(ctypes.c_ulong, values))
    return ctypes.get_errno()

def line(code, value, yes=0, no=0):
    return struct.pack("<HBBI", code, yes, no, value)

# linux/seccomp.h: of two filters that both refuse a call, the one that was installed last decides.
only_asked = line(0x20, 56) + line(0x15, {_ASKED}, yes=1) + line(0x06, 0x7FFF0000)
install(only_asked + line(0x06, 0x00050000 | {errno.EXDEV}))
install(only_asked + bytes.fromhex(sys.argv[1]))
print(json.dumps([answer(*call) for call in json.load(sys.stdin)]))
"""


def answers(program: bytes, calls: Iterable[tuple[int, ...]]) -> list[int]:
    """Returns for each call, its number and arguments, the error that it fails with, or `ALLOWED`. No call is carried
    out. Raises CalledProcessError if the kernel refuses the filter, or if the filter ends the process.
    """
    done = subprocess.run(
        (sys.executable, "-IS", "-c", _PROGRAM, program.hex()),
        input=json.dumps(list(calls)), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [ALLOWED if answer == errno.EXDEV else answer for answer in json.loads(done.stdout)]


HERE = platform.machine()
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or HERE not in MACHINES, reason="there is no filter for this machine"
)
X32 = 0x40000000
CALLS = {machine: system_calls(machine) for machine in MACHINES}
CHECKED = {"socket", "socketpair", "clone", "ioctl", "personality"}
PROBES = {335, 336}
"""uretprobe and uprobe, which the kernel makes for itself: no filter is asked."""
HIGH = (0, 1 << 32, 2**64 - 2**32)
"""What the kernel does not read of an argument of 32 bits."""
both = pytest.mark.parametrize("machine", MACHINES)


def answered(machine: str, *calls: tuple[int, ...]) -> list[int]:
    """Asks the kernel, which is told that the filter is for this machine."""
    theirs, ours = (struct.pack("<I", MACHINES[name]) for name in (machine, HERE))
    return answers(filter_for(machine).replace(theirs, ours, 1), calls)


def asked(machine: str, name: str, *calls: tuple[int, ...]) -> list[int]:
    number = next(number for number, (called, _) in CALLS[machine].items() if called == name)
    return answered(machine, *((number, *arguments) for arguments in calls or [()]))


@both
def test_every_system_call_is_answered_as_in_the_table(machine: str) -> None:
    """Calls missing in the table are absent, as in a kernel that does not have them, whatever their arguments."""
    expected = {"allowed": ALLOWED, "refused": errno.EPERM, "absent": errno.ENOSYS}
    verdicts = {
        number: expected[verdict]
        for number in sorted({*range(2048), X32, X32 | 39, 2**31 - 1, 2**31, 2**32 - 1} - PROBES)
        for name, verdict in [CALLS[machine].get(number, ("", "absent"))]
        if name not in CHECKED
    }
    for arguments in ((), (2**64 - 1,) * 5, (1, 2, 3, 4, 5)):
        given = answered(machine, *((number, *arguments) for number in verdicts))
        assert dict(zip(verdicts, given, strict=True)) == verdicts


def test_checked_arguments_match_the_table() -> None:
    assert {name for calls in CALLS.values() for name, verdict in calls.values() if verdict == "checked"} == CHECKED


def test_another_architecture_ends_the_program() -> None:
    for machine in MACHINES.keys() - {HERE}:
        with pytest.raises(subprocess.CalledProcessError) as ended:
            answers(filter_for(machine), [(0,)])
        assert ended.value.returncode == -signal.SIGSYS


@both
def test_calls_that_reach_others_or_the_host_are_refused(machine: str) -> None:
    refused = """
    keyctl add_key request_key io_uring_setup io_uring_enter io_uring_register ptrace process_vm_readv process_vm_writev
    bpf userfaultfd perf_event_open mount umount2 move_mount fsopen fsconfig fsmount fspick open_tree mount_setattr
    pivot_root chroot unshare setns open_by_handle_at kexec_load kexec_file_load init_module finit_module delete_module
    acct quotactl quotactl_fd swapon swapoff reboot syslog pidfd_getfd kcmp process_madvise memfd_secret
    """
    verdicts = dict(CALLS[machine].values())
    assert {verdicts[name] for name in refused.split()} == {"refused"}


@both
@pytest.mark.parametrize("more", HIGH)
def test_only_local_and_internet_sockets_are_allowed(machine: str, more: int) -> None:
    def of(family: int, protocol: int) -> int:
        if family not in {1, 2, 10, 16}:
            return errno.EAFNOSUPPORT
        protocols = {1: range(300), 2: (0, 6, 17), 10: (0, 6, 17), 16: (0,)}[family]
        return ALLOWED if protocol in protocols else errno.EPROTONOSUPPORT

    each = [(family, protocol) for family in range(100) for protocol in (*range(40), 132, 255, 262)]
    given = asked(machine, "socket", *((more | family, 1, more | protocol) for family, protocol in each))
    assert given == [of(*one) for one in each]
    pairs = asked(machine, "socketpair", *((more | family, 1, 0) for family in range(100)))
    assert pairs == [ALLOWED if family == 1 else errno.EAFNOSUPPORT for family in range(100)]


@both
def test_a_child_gets_no_new_namespace(machine: str) -> None:
    new = 0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
    flags = [more | 1 << bit for more in (0, 0x11, 1 << 40) for bit in range(32)]
    expected = [errno.EPERM if any(flag & each for each in new) else ALLOWED for flag in flags]
    assert asked(machine, "clone", *((flag,) for flag in flags)) == expected


@both
def test_children_and_threads_can_be_created(machine: str) -> None:
    fork, thread, vfork = 0x01200011, 0x003D0F00, 0x4111
    assert set(asked(machine, "clone", (fork,), (thread,), (vfork,))) == {ALLOWED}
    assert asked(machine, "clone3") == [errno.ENOSYS], "programs then make them by clone, whose flags can be seen"


@both
@pytest.mark.parametrize("more", HIGH)
def test_terminals_cannot_be_typed_into(machine: str, more: int) -> None:
    refused = {0x5412, 0x541C, 0x5423}
    expected = [errno.EPERM if request in refused else ALLOWED for request in range(0x5400, 0x5480)]
    assert asked(machine, "ioctl", *((0, more | request) for request in range(0x5400, 0x5480))) == expected


@both
def test_a_personality_can_be_read_and_stays_ordinary(machine: str) -> None:
    assert set(asked(machine, "personality", (0,), (0xFFFFFFFF,))) == {ALLOWED}
    assert set(asked(machine, "personality", *((1 << bit,) for bit in range(32)))) == {errno.EPERM}


@pytest.mark.parametrize(
    ("machine", "header"),
    [("x86_64", "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), ("aarch64", "/usr/include/asm-generic/unistd.h")],
)
def test_the_numbers_match_the_kernels_headers(machine: str, header: str) -> None:
    if not Path(header).exists():
        pytest.skip(f"{header} is not here")
    text = Path(header).read_text(encoding="utf-8")
    # On 64-bit machines a name with the prefix 3264 is the name without it.
    found = re.findall(r"^#define __NR(?:3264)?_(\w+) (\d+)$", text, re.MULTILINE)
    defined = {name: int(number) for name, number in found}
    ours = {name: number for number, (name, _) in CALLS[machine].items()}
    common = ours.keys() & defined.keys()
    assert len(common) > 250
    assert {name: ours[name] for name in common} == {name: defined[name] for name in common}
