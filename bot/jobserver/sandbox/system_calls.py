"""Which system calls a program in the sandbox has: the table beside this module.

Names and numbers are the kernel's own, of arch/x86/entry/syscalls/syscall_64.tbl and scripts/syscall.tbl (arm64). What
is allowed is what containers allow by default without privileges, less what tells of the host or of other processes.
"""

import csv
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

_TABLE = Path(__file__).with_name("system_calls.csv")


class Verdict(Enum):
    """`ABSENT` is what a kernel says that does not have the call: programs then do it another way."""

    ALLOWED = "allowed"
    REFUSED = "refused"
    CHECKED = "checked"
    ABSENT = "absent"


@dataclass(frozen=True)
class SystemCall:
    """`numbers` has one for each machine, as `platform.machine()` names it, that has the call."""

    name: str
    numbers: dict[str, int]
    verdict: Verdict


@cache
def system_calls() -> tuple[SystemCall, ...]:
    """Returns those that are known; any other is `ABSENT`."""
    with _TABLE.open(encoding="utf-8", newline="") as stream:
        return tuple(_system_call(row) for row in csv.DictReader(stream))


def _system_call(row: dict[str, str]) -> SystemCall:
    name, verdict = row.pop("name"), Verdict(row.pop("verdict"))
    return SystemCall(name, {machine: int(number) for machine, number in row.items() if number}, verdict)
