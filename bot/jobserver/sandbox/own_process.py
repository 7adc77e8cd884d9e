"""Keeps the server's own process from the programs that it starts: their user, its secrets and its memory."""

import ctypes
import os
import sys
from collections.abc import MutableMapping

from bot.jobserver.errors import JobServerError
from bot.jobserver.settings import PREFIX, JobServerSettings
from bot.jobserver.settings.sandbox import SandboxSettings

_SECRET_TYPES = ("SecretStr", "Rotating")
_PR_SET_DUMPABLE = 4  # linux/prctl.h
_NOT_AS_ROOT = (
    "programs and agents would run as root, the user of this job server: run it as a user of its own, to whom its data "
    f"directory belongs. Or set {PREFIX}ALLOW_ROOT=true: then whatever leaves its sandbox is root on this machine"
)


def own_user() -> int:
    return 1 if sys.platform == "win32" else os.geteuid()


def require_ordinary_user(settings: SandboxSettings, user: int) -> None:
    """Raises JobServerError: programs would run as root, and the settings do not allow it."""
    if user == 0 and not settings.allow_root:
        raise JobServerError(_NOT_AS_ROOT)


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
