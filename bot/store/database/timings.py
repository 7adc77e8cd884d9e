"""The store's time limits."""

from dataclasses import dataclass

from bot.store.database.errors import RETRY_FOR


@dataclass(frozen=True)
class StoreTimings:
    """Time limits in seconds.

    Attributes:
        retry_for: How long a transaction is retried after transient errors.
        sharing: SQLite: how long units may join a transaction, since all wait for its commit.
        yielding: PostgreSQL: how long other work waits at most while urgent work runs.
        closing: How long closing waits for running work, and for the server, so that one that hangs does not keep
            the process from ending.
    """

    retry_for: float = RETRY_FOR
    sharing: float = 0.005
    yielding: float = 0.05
    closing: float = 1.0
