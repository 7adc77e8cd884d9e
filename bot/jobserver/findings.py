"""The findings of `pagehand jobserver --check`."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SetupFinding:
    """One line of the report. `is_ok` is None for a remark that is not a fault."""

    name: str
    is_ok: bool | None
    message: str = ""


def installed(command: Sequence[str], install: str) -> SetupFinding:
    """Looks for a program on the PATH."""
    found = shutil.which(command[0])
    missing = f"there is no program {command[0]} here" + (f"; {install} installs it" if install else "")
    return SetupFinding("installed", is_ok=found is not None, message=found or missing)
