"""A filter of system calls, run as the kernel runs it: how it answers a call, and whether
the kernel would accept it.

Written from the kernel's Documentation/networking/filter.rst and seccomp(2), independently of the
code that builds the filters.
"""

import operator
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

KILL, ALLOW = "killed", "allowed"
_MOST = 4096
_WORDS = 16
"""The fields of struct seccomp_data: the number, the architecture, two for the instruction's address,
and two for each argument.
"""
_LOAD_WORD, _JUMP, _RETURN = 0x20, 0x05, 0x06
_COMPARISONS: dict[int, Callable[[int, int], bool]] = {
    0x15: operator.eq,
    0x25: operator.gt,
    0x35: operator.ge,
    0x45: lambda one, other: bool(one & other),
}


@dataclass(frozen=True)
class Call:
    """A system call: its number, the architecture as an AUDIT_ARCH_… constant, and up to six arguments."""

    number: int
    machine: int
    arguments: tuple[int, ...] = ()

    def words(self) -> tuple[int, ...]:
        arguments = (*self.arguments, *[0] * 6)[:6]
        return struct.unpack("<16I", struct.pack("<IIQ6Q", self.number, self.machine, 0, *arguments))


def _instructions(program: bytes) -> list[tuple[int, int, int, int]]:
    return list(struct.iter_unpack("<HBBI", program))


def faults(program: bytes) -> Iterator[str]:
    """Yields why the kernel would refuse a filter."""
    instructions = _instructions(program)
    if not 0 < len(instructions) <= _MOST or instructions[-1][0] != _RETURN:
        yield "its length, or its end"
    for place, (code, yes, no, value) in enumerate(instructions):
        left = len(instructions) - place - 1
        if code in _COMPARISONS:
            if max(yes, no) >= left:
                yield f"{place} leads beyond its end"
        elif code == _LOAD_WORD:
            if value % 4 or value >= 4 * _WORDS:
                yield f"{place} loads what is not there"
        elif code == _JUMP:
            if value >= left:
                yield f"{place} leads beyond its end"
        elif code != _RETURN:
            yield f"{place} is unknown"


def answer(program: bytes, call: Call) -> str | int:
    """Returns `ALLOW`, `KILL`, or the error number that the call fails with."""
    instructions, words = _instructions(program), call.words()
    place, loaded = 0, 0
    while True:
        code, yes, no, value = instructions[place]
        place += 1
        if code == _RETURN:
            return {0x7FFF0000: ALLOW, 0x80000000: KILL}.get(value) or _error(value)
        if code == _LOAD_WORD:
            loaded = words[value // 4]
        elif code == _JUMP:
            place += value
        else:
            place += yes if _COMPARISONS[code](loaded, value) else no


def _error(value: int) -> int:
    assert value >> 16 == 0x0005, hex(value)
    return value & 0xFFFF
