"""The filter of system calls, run by the tests' own interpreter, for both architectures."""

import errno
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.oracles.classic_bpf import ALLOW, KILL, Call, answer, faults

from bot.jobserver.sandbox.seccomp import MACHINES, Verdict, filter_for, system_calls

X86_64, AARCH64 = 0xC000003E, 0xC00000B7
I386, ARM = 0x40000003, 0x40000028
X32 = 0x40000000
NAMES = {
    machine: {call.numbers[machine]: call for call in system_calls() if machine in call.numbers} for machine in MACHINES
}
CHECKED = {"socket", "socketpair", "clone", "ioctl", "personality"}
both = pytest.mark.parametrize("machine", MACHINES)
words = st.integers(0, 2**64 - 1)


def asked(machine: str, name: str, *arguments: int) -> str | int:
    number = next(call.numbers[machine] for call in system_calls() if call.name == name)
    return answer(filter_for(machine), Call(number, MACHINES[machine], arguments))


@both
def test_the_kernel_accepts_the_filter(machine: str) -> None:
    assert list(faults(filter_for(machine))) == []


@both
def test_every_system_call_is_answered_as_in_the_table(machine: str) -> None:
    """Calls missing in the table are absent, as in a kernel that does not have them."""
    expected = {Verdict.ALLOWED: ALLOW, Verdict.REFUSED: errno.EPERM, Verdict.ABSENT: errno.ENOSYS}
    for number in (*range(2048), 2**31 - 1, 2**31, 2**32 - 1):
        call = NAMES[machine].get(number)
        if call is None or call.name not in CHECKED:
            verdict = call.verdict if call else Verdict.ABSENT
            assert answer(filter_for(machine), Call(number, MACHINES[machine])) == expected[verdict], number


def test_checked_arguments_match_the_table() -> None:
    assert {call.name for call in system_calls() if call.verdict is Verdict.CHECKED} == CHECKED


@both
@given(number=st.integers(0, 2**32 - 1), other=st.integers(0, 2**32 - 1), arguments=st.tuples(*[words] * 6))
def test_another_architecture_ends_the_program(
    machine: str, number: int, other: int, arguments: tuple[int, ...]
) -> None:
    for audit in {other, I386, ARM, X86_64, AARCH64} - {MACHINES[machine]}:
        assert answer(filter_for(machine), Call(number, audit, arguments)) == KILL


@given(number=st.integers(0, X32 - 1), arguments=st.tuples(*[words] * 6))
def test_x32_system_calls_are_refused(number: int, arguments: tuple[int, ...]) -> None:
    assert answer(filter_for("x86_64"), Call(X32 | number, X86_64, arguments)) == errno.ENOSYS


@both
def test_calls_that_reach_others_or_the_host_are_refused(machine: str) -> None:
    refused = """
    keyctl add_key request_key io_uring_setup io_uring_enter io_uring_register ptrace process_vm_readv process_vm_writev
    bpf userfaultfd perf_event_open mount umount2 move_mount fsopen fsconfig fsmount fspick open_tree mount_setattr
    pivot_root chroot unshare setns open_by_handle_at kexec_load kexec_file_load init_module finit_module delete_module
    acct quotactl quotactl_fd swapon swapoff reboot syslog pidfd_getfd kcmp process_madvise memfd_secret
    """
    assert {name: asked(machine, name) for name in refused.split()} == dict.fromkeys(refused.split(), errno.EPERM)


@both
@given(number=st.integers(0, 600), arguments=st.tuples(*[words] * 6))
def test_no_argument_enables_a_refused_call(machine: str, number: int, arguments: tuple[int, ...]) -> None:
    call = NAMES[machine].get(number)
    if call is None or call.verdict in {Verdict.REFUSED, Verdict.ABSENT}:
        assert answer(filter_for(machine), Call(number, MACHINES[machine], arguments)) in {errno.EPERM, errno.ENOSYS}


@both
@given(family=words, kind=words, protocol=words)
def test_only_local_and_internet_sockets_are_allowed(machine: str, family: int, kind: int, protocol: int) -> None:
    """The kernel reads 32 bits of each: additional bits change nothing."""
    low, of = family % 2**32, protocol % 2**32
    is_open = low == 1 or (low in {2, 10} and of in {0, 6, 17}) or (low == 16 and of == 0)
    assert (asked(machine, "socket", family, kind, protocol) == ALLOW) == is_open
    assert (asked(machine, "socketpair", family, kind, protocol) == ALLOW) == (low == 1)


@both
@pytest.mark.parametrize("more", [0, 1 << 32, 2**64 - 2**32])
def test_sockets_used_by_programs_work(machine: str, more: int) -> None:
    allowed = [(1, 0), (2, 0), (2, 6), (2, 17), (10, 0), (10, 6), (10, 17), (16, 0)]
    assert {asked(machine, "socket", more | family, 1, more | protocol) for family, protocol in allowed} == {ALLOW}
    assert {asked(machine, "socket", more | family, 1, 0) for family in {*range(100)} - {1, 2, 10, 16}} == {
        errno.EAFNOSUPPORT
    }
    refused = {asked(machine, "socket", 2, 1, more | protocol) for protocol in {*range(300)} - {0, 6, 17}}
    assert (
        refused == {asked(machine, "socket", 16, 3, protocol) for protocol in range(1, 30)} == {errno.EPROTONOSUPPORT}
    )


@both
@given(flags=words)
def test_a_child_gets_no_new_namespace(machine: str, flags: int) -> None:
    new = 0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
    expected = errno.EPERM if any(flags & each for each in new) else ALLOW
    assert asked(machine, "clone", flags) == expected


@both
def test_children_and_threads_can_be_created(machine: str) -> None:
    fork, thread, vfork = 0x01200011, 0x003D0F00, 0x4111
    assert {asked(machine, "clone", flags) for flags in (fork, thread, vfork)} == {ALLOW}
    assert asked(machine, "clone3") == errno.ENOSYS, "programs then make them by clone, whose flags can be seen"


@both
@given(descriptor=words, request=words)
def test_terminals_cannot_be_typed_into(machine: str, descriptor: int, request: int) -> None:
    expected = errno.EPERM if request % 2**32 in {0x5412, 0x541C, 0x5423} else ALLOW
    assert asked(machine, "ioctl", descriptor, request) == expected
    for refused in (0x5412, 0x541C, 0x5423):
        assert asked(machine, "ioctl", descriptor, refused | 1 << 40) == errno.EPERM


@both
def test_a_personality_can_be_read_and_stays_ordinary(machine: str) -> None:
    assert {asked(machine, "personality", value) for value in (0, 0xFFFFFFFF)} == {ALLOW}
    assert {asked(machine, "personality", 1 << bit) for bit in range(32)} == {errno.EPERM}


@pytest.mark.parametrize(
    ("machine", "header"),
    [("x86_64", "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), ("aarch64", "/usr/include/asm-generic/unistd.h")],
)
def test_the_numbers_match_the_kernels_headers(machine: str, header: str) -> None:
    if not Path(header).exists():
        pytest.skip(f"{header} is not here")
    defined = headers_numbers(header)
    ours = {call.name: call.numbers[machine] for call in system_calls() if machine in call.numbers}
    common = ours.keys() & defined.keys()
    assert len(common) > 250
    assert {name: ours[name] for name in common} == {name: defined[name] for name in common}


def headers_numbers(header: str) -> dict[str, int]:
    """On 64-bit machines a name with the prefix 3264 is the name without it."""
    text = Path(header).read_text(encoding="utf-8")
    found = re.findall(r"^#define __NR(?:3264)?_(\w+) (\d+)$", text, re.MULTILINE)
    return {name: int(number) for name, number in found}
