"""What `pagehand jobserver --check` finds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SetupFinding:
    """One line. `is_ok` None: worth knowing, and no fault."""

    name: str
    is_ok: bool | None
    words: str = ""
