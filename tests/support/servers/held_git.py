"""A git that stands still at one of its commands, so that a test can look, cancel or kill at that moment."""

import contextlib
import os
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

_SCRIPT = """#!/bin/sh
held() {{
    if [ -e '{hold}' ]; then
        echo $$ > '{held}.new' && mv '{held}.new' '{held}'
        while [ -e '{hold}' ]; do sleep 0.02; done
    fi
}}
case " $* " in
*" {command} "*) {lines} ;;
*) exec '{git}' "$@" ;;
esac
"""
_BEFORE = "held; exec '{git}' \"$@\""
_AFTER = "'{git}' \"$@\"; code=$?; held; exit $code"


@dataclass(frozen=True)
class HeldGit:
    """`directory` holds a program `git` for the PATH; its `command` stands still while there is a file `hold`."""

    directory: Path
    command: str
    is_after: bool = False
    """Whether it stands still when it has done its work, before whoever called it is told."""

    @property
    def path(self) -> str:
        return f"{self.directory}{os.pathsep}{os.environ['PATH']}"

    def hold(self) -> None:
        git = shutil.which("git")
        self.directory.mkdir(exist_ok=True)
        (self.directory / "hold").touch()
        program = self.directory / "git"
        lines = (_AFTER if self.is_after else _BEFORE).format(git=git)
        program.write_text(
            _SCRIPT.format(
                hold=self.directory / "hold", held=self.directory / "held", command=self.command, lines=lines, git=git
            )
        )
        program.chmod(0o755)

    def is_held(self) -> bool:
        return (self.directory / "held").exists()

    def release(self) -> None:
        (self.directory / "hold").unlink()

    def kill(self) -> None:
        """Ends what is held, and what it started; it may have ended by itself."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int((self.directory / "held").read_text()), signal.SIGKILL)
