"""Checks of nothing."""

from collections.abc import Collection
from pathlib import Path, PurePosixPath

from bot.jobserver.models import CheckResult
from bot.jobserver.repository.snapshot import Snapshot


class NoChecks:
    """Finds no faults."""

    async def run(
        self, before: Snapshot, after: Snapshot, changed: Collection[PurePosixPath], copy: Path
    ) -> tuple[CheckResult, ...]:
        return ()
