"""A git that blocks at one of its commands, so that a test can look, cancel or kill at that moment."""

import contextlib
import os
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

_SCRIPT = """#!/bin/sh
held() {{
    echo $$ > '{held}.new' && mv '{held}.new' '{held}'
    while [ -e '{hold}' ]; do sleep 0.02; done
}}
when=never command=
[ -e '{hold}' ] && read -r when command < '{hold}'
case " $* " in
*" "$command" "*) [ $when = before ] && held
    [ $when = after ] && {{ '{git}' "$@"; code=$?; held; exit $code; }} ;;
esac
exec '{git}' "$@"
"""


@dataclass(frozen=True)
class Moment:
    """Before or after git runs this command, a word of its arguments with shell wildcards."""

    command: str
    is_after: bool = False


class HeldGit:
    """`directory` holds a program `git` for the PATH; it blocks at a moment while there is a file `hold`."""

    def __init__(self, directory: Path) -> None:
        self._hold = directory / "hold"
        self._held = directory / "held"
        directory.mkdir()
        program = directory / "git"
        program.write_text(_SCRIPT.format(hold=self._hold, held=self._held, git=shutil.which("git")))
        program.chmod(0o755)
        self.path = f"{directory}{os.pathsep}{os.environ['PATH']}"

    def hold(self, moment: Moment) -> None:
        self._held.unlink(missing_ok=True)
        self._hold.write_text(f"{'after' if moment.is_after else 'before'} {moment.command}\n")

    def is_held(self) -> bool:
        return self._held.exists()

    def release(self) -> None:
        self._hold.unlink()

    def kill(self) -> None:
        """Kills the blocked process and its children; it may have ended by itself."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int(self._held.read_text()), signal.SIGKILL)
        self.release()
