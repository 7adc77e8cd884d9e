"""Closes the server's own process to the programs it starts, which are the same user's."""

import ctypes
import sys
from collections.abc import MutableMapping

from bot.jobserver.settings import PREFIX, JobServerSettings

_PR_SET_DUMPABLE = 4  # linux/prctl.h


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
