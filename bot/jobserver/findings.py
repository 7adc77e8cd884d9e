"""The findings of `pagehand jobserver --check`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SetupFinding:
    """One line of the report. `is_ok` is None for a remark that is not a fault."""

    name: str
    is_ok: bool | None
    message: str = ""
