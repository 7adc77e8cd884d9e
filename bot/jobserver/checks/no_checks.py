"""Checks of nothing."""

from collections.abc import Collection
from pathlib import Path, PurePosixPath

from bot.jobserver.models import CheckResult
from bot.jobserver.repository.snapshot import Snapshot


class NoChecks:
    """Finds no faults."""

    async def run(
        self,
        before: Snapshot,  # noqa: ARG002 - the interface has them all
        after: Snapshot,  # noqa: ARG002
        changed: Collection[PurePosixPath],  # noqa: ARG002
        copy: Path,  # noqa: ARG002
    ) -> tuple[CheckResult, ...]:
        return ()
