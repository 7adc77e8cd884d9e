"""The users of jobs' programs and files: where the server is root, each job has one of its own."""

import ctypes
import sys
from collections.abc import Collection, MutableMapping
from dataclasses import dataclass
from itertools import chain

from bot.jobserver.errors import JobServerError
from bot.jobserver.settings import PREFIX, JobServerSettings

_FIRST = (1_900_000_000, 200_000)
"""Ids that no account has. The second is for containers that have fewer ids, though somebody's may begin there."""
_COUNT = 500_000
_PR_SET_DUMPABLE = 4  # linux/prctl.h


@dataclass(frozen=True)
class JobUsers:
    """Ids from `first` on, for users and groups alike. The first one is for folders that belong to no job."""

    first: int
    count: int = _COUNT

    def __str__(self) -> str:
        return f"each job is a user of its own, from {self.first} on"

    def has(self, user: int) -> bool:
        return self.first <= user < self.first + self.count

    def unused(self, taken: Collection[int]) -> int:
        """Returns an id that no job has.

        Raises:
            JobServerError: there is none.
        """
        newest = max(filter(self.has, taken), default=self.first)
        ids = chain(range(newest + 1, self.first + self.count), range(self.first + 1, newest))
        found = next((user for user in ids if user not in taken), None)
        if found is None:
            raise JobServerError("there are more jobs than user ids: let KEEP_FOR end sooner")
        return found


@dataclass(frozen=True)
class ServersUser:
    """All programs are the server's user. `reason` says why, where the server is root."""

    reason: str = ""

    def __str__(self) -> str:
        return (
            f"all jobs are the server's user, root: {self.reason}" if self.reason else "all jobs are the server's user"
        )


def job_users(user: int, uid_map: str, gid_map: str) -> JobUsers | ServersUser:
    """Returns which users a job's programs can have, for a server of this user with these maps from /proc/self."""
    if user != 0:
        return ServersUser()
    for first in _FIRST:
        if all(_holds(ids, first, _COUNT) for ids in (uid_map, gid_map)):
            return JobUsers(first)
    return ServersUser("this container has too few user ids")


def _holds(ids: str, first: int, count: int) -> bool:
    ranges = ((int(begin), int(length)) for begin, _, length in map(str.split, ids.splitlines()))
    return any(begin <= first and first + count <= begin + length for begin, length in ranges)


def forget_secrets(environ: MutableMapping[str, str]) -> None:
    """Removes the variables of secret settings from an environment, also the names of the files that hold them."""
    for name, field in JobServerSettings.model_fields.items():
        if "SecretStr" in repr(field.annotation):
            environ.pop(f"{PREFIX}{name.upper()}", None)
            environ.pop(f"{PREFIX}{name.upper()}_FILE", None)


def close_to_others() -> None:
    """Keeps other processes of the same user from this one's memory and its first environment, and leaves no core file.

    What a variable held at the start stays readable in /proc otherwise, even once it is removed. Linux only.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
