"""An open transaction, and the rules for its locks.

On SQLite a transaction has the whole database to itself. On PostgreSQL transactions run concurrently, by these rules:

1. *A thread comes first.* A thread's row represents everything that belongs to it. Whoever changes the thread, adds
   notices, or reads one of its requests to change it, locks the thread before any row of its poll, requests or notices.
   Otherwise, one transaction could hold a request and want its thread while another holds the thread and wants the
   request, and PostgreSQL would end one of them (which `retry_transient` then repeats).
2. *Several are locked in the order of ids.* This applies to threads and, by the ids of their threads, to polls: the
   request sender does it when it opens rounds, the job poller when it saves the results of many polls.
3. *Notices are added by one transaction at a time*, the one that has locked the thread. So the ids of a thread's
   notices are in the order of their commits, and the outbox, which delivers by id, never finds an older one later.
4. *Claims wait for nobody.* They skip rows that are locked (SKIP LOCKED): those of requests and notices together with
   their threads, because of the order; those of polls alone, since the revision tells whether the thread has changed.
   The next requests are determined without locks, and checked again with them.
5. *An early reply waits* for whoever records where a card is: storing a reply locks the threads whose cards are being
   posted to the channel, by id. So either the reply is there when the card's replies are taken, or the card is known.
6. *Threads are locked FOR NO KEY UPDATE* (`key_share`): a row that is inserted and refers to a thread takes FOR KEY
   SHARE on it and does not have to wait.
7. *A person's limit comes last.* Whoever counts a person's requests holds the person's advisory lock until the
   commit, so each of several concurrent requests sees the ones before it. It locks no more threads after that.
8. *A message's versions wait for each other*: a version is recorded before any thread is locked.
9. *Cards that arrive in one channel take early replies one at a time*, under the channel's advisory lock, so the
   last one sees that no other is being posted. After that, it locks the threads of the replies.

A lock held for too long is an error (`bot.queue.transaction`), and so is a transaction that stops making progress.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Table, bindparam, select, update

from bot.domain.requests.request import RequestState
from bot.errors import UnreadableRow
from bot.queue.engine import DatabaseConnection
from bot.queue.transaction import OpenTransaction
from bot.runtime.logging import ThrottledLogger
from bot.store.schema.tables import NoticeState, notices, polls, requests, threads

logger = logging.getLogger(__name__)

_UNCLAIMED = {"due_at": None, "claimed_by": None, "claimed_until": None}
_ENDED: Mapping[Table, Mapping[str, object]] = {
    requests: {"state": RequestState.REJECTED, **_UNCLAIMED},
    notices: {"state": NoticeState.GIVEN_UP, **_UNCLAIMED},
    polls: _UNCLAIMED,
}
_LOCK_THREAD = select(threads.c.id).where(threads.c.id == bindparam("thread")).with_for_update(key_share=True)


class Session(OpenTransaction):
    """An open transaction that knows which threads it has locked. `rare_log` is for what may be seen often."""

    def __init__(self, connection: DatabaseConnection, now: float, rare_log: ThrottledLogger) -> None:
        super().__init__(connection, now)
        self.rare_log = rare_log
        self.takeovers = 0
        """How many rows were claimed that somebody else had claimed, whose lease ran out."""
        self._locked: set[str] = set()

    async def lock_thread(self, thread_id: str) -> None:
        """Locks a thread unless this transaction has done so."""
        if thread_id not in self._locked:
            await self.execute(_LOCK_THREAD, {"thread": thread_id})
            self._locked.add(thread_id)

    def note_locked(self, thread_ids: Iterable[str]) -> None:
        """Records that these threads are locked."""
        self._locked.update(thread_ids)

    async def end_unreadable(self, table: Table, unreadable: Iterable[tuple[Any, UnreadableRow]]) -> None:
        """Ends unreadable rows, so that they block nothing else."""
        key = next(iter(table.primary_key))
        for row_id, error in unreadable:
            values = dict(_ENDED[table])
            if "problem" in table.c:
                values["problem"] = str(error)
            await self.execute(update(table).where(key == row_id).values(values))
            logger.error("A row of %s was set aside: %s", table.name, error)


class Part:
    """The base of a transaction's parts, each of which is about one subject."""

    def __init__(self, session: Session) -> None:
        self._session = session
