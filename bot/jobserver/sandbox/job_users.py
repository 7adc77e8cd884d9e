"""The users that own jobs' programs and files: if the server is root, each job has its own."""

import ctypes
import sys
from collections.abc import Collection, MutableMapping
from dataclasses import dataclass
from itertools import chain

from bot.jobserver.errors import JobServerError
from bot.jobserver.settings import PREFIX, JobServerSettings

_FIRST = (1_900_000_000, 200_000)
"""Ids without accounts. The second is for containers with fewer ids, though it could be used by others."""
_COUNT = 500_000
_SECRET_TYPES = ("SecretStr", "Rotating")
_PR_SET_DUMPABLE = 4  # linux/prctl.h


@dataclass(frozen=True)
class JobUsers:
    """User and group ids from `first` on. The first is for folders that belong to no job."""

    first: int
    count: int = _COUNT

    def __str__(self) -> str:
        return f"each job runs as its own user, from {self.first} on"

    def has(self, user: int) -> bool:
        return self.first <= user < self.first + self.count

    def unused(self, taken: Collection[int]) -> int:
        """Returns an id that no job has.

        Raises:
            JobServerError: all ids are taken.
        """
        newest = max(filter(self.has, taken), default=self.first)
        ids = chain(range(newest + 1, self.first + self.count), range(self.first + 1, newest))
        found = next((user for user in ids if user not in taken), None)
        if found is None:
            raise JobServerError("there are more jobs than user ids: shorten KEEP_FOR")
        return found


@dataclass(frozen=True)
class ServersUser:
    """All programs run as the server's user. `reason` says why, if that is root."""

    reason: str = ""

    def __str__(self) -> str:
        return (
            f"all jobs run as the server's user, root: {self.reason}"
            if self.reason
            else "all jobs run as the server's user"
        )


def job_users(user: int, uid_map: str, gid_map: str) -> JobUsers | ServersUser:
    """Returns the users for jobs, given the server's user and its id maps from /proc/self."""
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
    """Removes the variables of secret settings, and those naming their files, from an environment."""
    for name, field in JobServerSettings.model_fields.items():
        if any(kind in repr(field.annotation) for kind in _SECRET_TYPES):
            environ.pop(f"{PREFIX}{name.upper()}", None)
            environ.pop(f"{PREFIX}{name.upper()}_FILE", None)


def close_to_others() -> None:
    """Hides this process's memory and initial environment from other processes of its user, and disables core dumps.

    Otherwise, removed variables would stay readable in /proc. Linux only.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
