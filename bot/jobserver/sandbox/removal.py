"""Removes what a program left, whatever it did to its folders."""

import subprocess
from pathlib import Path


def remove_tree(directory: Path) -> None:
    """Removes a directory with all that is in it: also folders nested thousands deep, or closed to everybody.

    Python's own way stops at about a thousand levels. What still cannot be removed stays; it is looked at again at the
    next start.
    """
    if _rm(directory):
        return
    subprocess.run(["chmod", "-R", "u+rwX", "--", directory], check=False, capture_output=True)
    _rm(directory)


def _rm(directory: Path) -> bool:
    done = subprocess.run(["rm", "-rf", "--", directory], check=False, capture_output=True)
    return done.returncode == 0
