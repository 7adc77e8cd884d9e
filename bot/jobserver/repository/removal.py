"""Removes what a program left, however it made it."""

import contextlib
import shutil
import stat
import subprocess
from pathlib import Path


def remove(path: Path) -> None:
    """Removes a file, a link, or a folder with all it holds; what is not there is no error.

    A folder without permissions, or nested deeper than Python can follow, is no hindrance either.
    """
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISDIR(path.lstat().st_mode):
            path.unlink()
            return
        try:
            shutil.rmtree(path)
        except (RecursionError, OSError):
            for command in (("chmod", "-R", "u+rwx"), ("rm", "-rf")):
                subprocess.run([*command, "--", str(path)], check=False, capture_output=True)
