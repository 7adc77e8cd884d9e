"""What the executor asks of the checks."""

from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import Protocol

from bot.jobserver.models import CheckResult
from bot.jobserver.repository.snapshot import Snapshot


class Checks(Protocol):
    """Finds the faults that a change brought in."""

    async def run(
        self, before: Snapshot, after: Snapshot, changed: Collection[PurePosixPath], copy: Path
    ) -> tuple[CheckResult, ...]:
        """Returns one result a check that applies. `copy` holds the same files as `after`. Never raises."""
        ...
