"""What a request for the metrics reads of a process."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bot.domain.findings import FindingStatus
from bot.runtime.health.report import ComponentStatus
from bot.slack.receiving.transports.connection_keeper import SocketHealth
from bot.store.database.url import sqlite_path


@dataclass(frozen=True)
class Readings:
    """The state of a process. Without Socket Mode there is no `socket`, and `free_bytes` is unknown of PostgreSQL.
    `setup_faults`: how many of each kind the checks of the set-up found.
    """

    ready: bool
    parts: Sequence[ComponentStatus]
    socket: SocketHealth | None
    free_bytes: int | None
    setup_faults: Mapping[FindingStatus, int] = field(default_factory=dict)


def free_bytes(database_url: str) -> int | None:
    """Returns the free space where a SQLite file is; None if it is not known."""
    try:
        path = sqlite_path(database_url)
        return shutil.disk_usage(Path(path).resolve().parent).free if path else None
    except (OSError, ValueError):
        return None
