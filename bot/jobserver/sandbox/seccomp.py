"""The system call filter for programs in the sandbox: classic BPF, see seccomp(2).

It finds a system call's number by binary search. Where arguments decide, it checks only plain values: the target of a
pointer could change after the check.

The calls are in a table beside this module, with the names and numbers of the kernel's
arch/x86/entry/syscalls/syscall_64.tbl and scripts/syscall.tbl (arm64). It allows what unprivileged containers allow by
default, except calls that reveal information on the host or other processes.
"""

import csv
import errno
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

_TABLE = Path(__file__).with_name("system_calls.csv")
# linux/audit.h
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The kernel's audit ids of these machines; 32-bit programs have different ones."""
# linux/filter.h, linux/seccomp.h
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _MACHINE = 0, 4
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_UNIX, _IPV4, _IPV6, _NETLINK = 1, 2, 10, 16
_TCP, _UDP, _ROUTE = 6, 17, 0
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS to CLONE_NEWNET, linux/sched.h
_TIOCSTI, _TIOCLINUX, _TIOCSETD = 0x5412, 0x541C, 0x5423  # asm-generic/ioctls.h
_ORDINARY, _QUERY_PERSONALITY = 0, 0xFFFFFFFF  # linux/personality.h


def system_calls(machine: str) -> dict[int, tuple[str, str]]:
    """Returns the name and the verdict of each known call, by its number on this machine.

    Any other is `absent`: the answer of a kernel without the call, so that programs use another one.
    """
    with _TABLE.open(encoding="utf-8", newline="") as stream:
        return {int(row[machine]): (row["name"], row["verdict"]) for row in csv.DictReader(stream) if row[machine]}


@dataclass(frozen=True)
class _Instruction:
    """`yes`: how many instructions are skipped if a comparison holds."""

    code: int
    value: int
    yes: int = 0

    def __bytes__(self) -> bytes:
        return struct.pack("<HBBI", self.code, self.yes, 0, self.value)


_Block = tuple[_Instruction, ...]
"""Instructions in which every path ends with a verdict."""


@cache
def filter_for(machine: str) -> bytes:
    """Returns the filter program for one of `MACHINES`."""
    is_this = _Instruction(_EQUAL, MACHINES[machine], yes=1)
    number = _Instruction(_LOAD, _NUMBER)
    program = (_Instruction(_LOAD, _MACHINE), is_this, _Instruction(_RETURN, _KILL), number, *_search(_ranges(machine)))
    return b"".join(map(bytes, program))


def _ranges(machine: str) -> list[tuple[int, _Block]]:
    """Returns the first number of each range with its block. x32's numbers are in the last range, which is absent."""
    blocks = {number: _block(*call) for number, call in system_calls(machine).items()}
    every = ((number, blocks.get(number, _ABSENT)) for number in range(max(blocks) + 2))
    return [next(same) for _, same in groupby(every, key=lambda each: each[1])]


def _search(ranges: Sequence[tuple[int, _Block]]) -> _Block:
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    below, others = _search(ranges[:middle]), _search(ranges[middle:])
    return (_Instruction(_AT_LEAST, ranges[middle][0], yes=len(below)), *below, *others)


def _block(name: str, verdict: str) -> _Block:
    plain = {"allowed": _ALLOWED, "refused": _REFUSED, "absent": _ABSENT}
    return _CHECKED[name] if verdict == "checked" else plain[verdict]


def _fails_with(number: int) -> _Block:
    return (_Instruction(_RETURN, _ERROR | number),)


def _argument(index: int) -> _Instruction:
    """Loads the lower half of an argument; the kernel ignores the upper half of those that are checked here."""
    return _Instruction(_LOAD, 16 + 8 * index)


def _one_of(values: Sequence[int], then: _Block, otherwise: _Block) -> _Block:
    left = range(len(values) - 1, -1, -1)
    tests = (_Instruction(_EQUAL, value, yes=after + len(otherwise)) for value, after in zip(values, left, strict=True))
    return (*tests, *otherwise, *then)


_ALLOWED: _Block = (_Instruction(_RETURN, _ALLOW),)
_REFUSED = _fails_with(errno.EPERM)
_ABSENT = _fails_with(errno.ENOSYS)
_NO_FAMILY = _fails_with(errno.EAFNOSUPPORT)
_NO_PROTOCOL = _fails_with(errno.EPROTONOSUPPORT)


def _protocols(*allowed: int) -> _Block:
    return (_argument(2), *_one_of(allowed, _ALLOWED, _NO_PROTOCOL))


_OF_ROUTES = _one_of((_NETLINK,), _protocols(_ROUTE), _NO_FAMILY)
_OF_INTERNET = _one_of((_IPV4, _IPV6), _protocols(0, _TCP, _UDP), _OF_ROUTES)
_CHECKED: dict[str, _Block] = {
    "socket": (_argument(0), *_one_of((_UNIX,), _ALLOWED, _OF_INTERNET)),
    "socketpair": (_argument(0), *_one_of((_UNIX,), _ALLOWED, _NO_FAMILY)),
    "clone": (_argument(0), _Instruction(_ANY_BIT, _NEW_NAMESPACES, yes=1), *_ALLOWED, *_REFUSED),
    "ioctl": (_argument(1), *_one_of((_TIOCSTI, _TIOCLINUX, _TIOCSETD), _REFUSED, _ALLOWED)),
    "personality": (_argument(0), *_one_of((_ORDINARY, _QUERY_PERSONALITY), _ALLOWED, _REFUSED)),
}
