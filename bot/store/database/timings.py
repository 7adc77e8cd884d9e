"""The store's time limits."""

from dataclasses import dataclass

from bot.store.database.errors import RETRY_FOR


@dataclass(frozen=True)
class StoreTimings:
    """In seconds.

    Attributes:
        retry_for: A transaction is tried again for so long while what stops it may pass.
        sharing: SQLite: after so long a transaction takes in no further unit, since one waits for the others' commit.
        yielding: PostgreSQL: so long other work waits at most before it begins while urgent work is under way.
        closing: So long closing waits for what is under way, or takes leave of a server: one that hangs is not to keep
            the process from ending.
    """

    retry_for: float = RETRY_FOR
    sharing: float = 0.005
    yielding: float = 0.05
    closing: float = 1.0
