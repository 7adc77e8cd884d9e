"""Runs SQLite in a thread of its own. Units of work share commits, and those that people wait for come first."""

import asyncio
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, CursorResult, Engine, Executable
from sqlalchemy.engine import Dialect

from bot.errors import StoreUnavailable
from bot.queue.errors import StoreTimings

T = TypeVar("T")


class WorkSuspendedError(RuntimeError):
    """A unit of work awaited something other than its transaction, which would lock everybody else out."""

    def __init__(self) -> None:
        super().__init__("the work of a transaction may await nothing but the transaction's own methods")


class ThreadConnection:
    """A plain connection with the interface of an AsyncConnection; awaiting it never suspends."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def dialect(self) -> Dialect:
        """The dialect of SQLite."""
        return self._connection.dialect

    async def execute(self, statement: Executable, parameters: Any = None) -> CursorResult[Any]:
        """Runs a statement."""
        return self._connection.execute(statement, parameters)

    async def run_sync(self, work: Callable[..., T], *arguments: object) -> T:
        """Calls `work` with the plain connection, and these arguments."""
        return work(self._connection, *arguments)


Work = Callable[[ThreadConnection], Awaitable[Any]]


@dataclass(eq=False)
class UnitOfWork:
    """A unit of work and its caller. Once run, it has a result or an error. `urgent`: people wait for it."""

    work: Work
    answer: asyncio.Future[Any]
    urgent: bool = False
    result: Any = None
    error: BaseException | None = None

    def run(self, connection: ThreadConnection) -> None:
        """Runs the work."""
        self.result, self.error = None, None
        try:
            self.result = _driven(self.work(connection))
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to the waiting caller
            self.error = error

    def deliver(self) -> None:
        """Passes the result to a caller that still waits, in the thread of the caller's event loop."""
        if self.answer.done():
            return
        if self.error is None:
            self.answer.set_result(self.result)
        else:
            self.answer.set_exception(self.error)
        self.error = None  # its traceback holds this frame


def _driven(work: Awaitable[T]) -> T:
    """Returns the result of an awaitable that never suspends."""
    steps = work.__await__()
    try:
        next(steps)
    except StopIteration as ended:
        return cast("T", ended.value)
    if isinstance(steps, Generator):
        steps.close()
    raise WorkSuspendedError


def deliver(units: Sequence[UnitOfWork]) -> None:
    """Passes each result to its caller, in the thread of the caller's event loop."""
    for loop, of_loop in groupby(units, key=lambda unit: unit.answer.get_loop()):
        with suppress(RuntimeError):  # the event loop was closed: nobody waits any more
            loop.call_soon_threadsafe(_deliver_each, list(of_loop))


def _deliver_each(units: Sequence[UnitOfWork]) -> None:
    for unit in units:
        unit.deliver()


MOST_IN_A_ROW = 20
"""How many urgent units run before another one, so that a flood of commands does not stop all other work."""


@dataclass
class _Queue:
    """The queue of waiting units. Guarded by `changed`."""

    changed: threading.Condition = field(default_factory=threading.Condition)
    urgent: deque[UnitOfWork] = field(default_factory=deque)
    others: deque[UnitOfWork] = field(default_factory=deque)
    in_a_row: int = 0
    closing: bool = False

    def next(self) -> UnitOfWork | None:
        """Takes the next unit; None if the queue is empty."""
        if (unit := self.next_urgent()) is not None:
            return unit
        self.in_a_row = 0
        return self.others.popleft() if self.others else None

    def next_urgent(self) -> UnitOfWork | None:
        """Takes the next urgent unit; None if there is none, or if another one is next."""
        if self.urgent and (not self.others or self.in_a_row < MOST_IN_A_ROW):
            self.in_a_row += 1
            return self.urgent.popleft()
        return None


class SqliteThread:
    """Runs units of work in transactions on one connection, in a thread that starts with the first unit.

    Units that arrive while others run, or during a write to disk, share the next transaction. Each has its own
    savepoint, so one that fails rolls back only its own changes. No unit gets its result before the commit; so once
    people wait for a transaction, only urgent units still join it.
    """

    def __init__(
        self, engine: Engine, timings: StoreTimings, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._engine = engine
        self._timings = timings
        self._monotonic = monotonic
        self._queue = _Queue()
        self._thread: threading.Thread | None = None

    async def run(self, work: Work, *, urgent: bool, end: float) -> Any:
        """Runs `work` in a transaction and commits it.

        Args:
            work: Awaits nothing but its connection.
            urgent: Runs before work that is not urgent.
            end: The time on the loop's clock at which waiting in the queue ends with StoreUnavailable.
        """
        loop = asyncio.get_running_loop()
        unit = UnitOfWork(work, loop.create_future(), urgent)
        self._add(unit)
        timer = loop.call_at(end, self._give_up, unit)
        try:
            return await unit.answer
        finally:
            timer.cancel()
            if unit.answer.cancelled():
                self._withdraw(unit)

    async def close(self) -> None:
        """Ends the thread once the queue is empty, and closes the connection, within bounded time."""
        thread = self._thread
        if thread is None:
            return
        with self._queue.changed:
            self._queue.closing = True
            self._queue.changed.notify()
        await asyncio.to_thread(thread.join, self._timings.closing)

    # -- in the loop's thread -------------------------------------------------------------------------------------

    def _add(self, unit: UnitOfWork) -> None:
        queue = self._queue
        with queue.changed:
            (queue.urgent if unit.urgent else queue.others).append(unit)
            if self._thread is None:
                queue.closing = False
                self._thread = threading.Thread(target=self._work, name="sqlite", daemon=True)
                self._thread.start()
            queue.changed.notify()

    def _withdraw(self, unit: UnitOfWork) -> bool:
        """Removes a unit from the queue; False if it has begun."""
        with self._queue.changed:
            for waiting in (self._queue.urgent, self._queue.others):
                if unit in waiting:
                    waiting.remove(unit)
                    return True
        return False

    def _give_up(self, unit: UnitOfWork) -> None:
        if self._withdraw(unit) and not unit.answer.done():
            unit.answer.set_exception(StoreUnavailable("The database is too busy."))

    # -- in the database's thread ---------------------------------------------------------------------------------

    def _work(self) -> None:
        connection = _WriterConnection(self._engine)
        while (first := self._wait()) is not None:
            units = [first]
            try:
                self._transaction(connection, units)
            except BaseException as fault:  # noqa: BLE001 - even a fault of ours must leave nobody waiting
                connection.close()  # whatever it was doing
                for unit in units:
                    unit.error = unit.error or fault
            deliver(units)
            del first, units  # their objects are not kept until the next unit comes
        connection.close()

    def _wait(self) -> UnitOfWork | None:
        """The next unit; None when the thread is to end."""
        queue = self._queue
        with queue.changed:
            while (unit := queue.next()) is None:
                if queue.closing:
                    self._thread = None
                    return None
                queue.changed.wait()
            return unit

    def _transaction(self, connection: "_WriterConnection", units: list[UnitOfWork]) -> None:
        """Runs a unit, and those that arrive meanwhile, in one transaction; if that fails, each in its own."""
        try:
            driver = connection.begin()
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to the waiting caller
            # Whoever waits has waited for the same lock; each caller decides whether to retry.
            with self._queue.changed:
                while (unit := self._queue.next()) is not None:
                    units.append(unit)
            for unit in units:
                unit.error = error
            return
        try:
            until = self._monotonic() + self._timings.sharing
            connection.run(units[0])
            while (unit := self._further(until, units[-1])) is not None:
                units.append(unit)
                connection.run(unit)
            driver.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - the same
            connection.roll_back()
            self._one_by_one(connection, units, error)

    def _further(self, until: float, last: UnitOfWork) -> UnitOfWork | None:
        """Returns a unit that may still join the transaction: after an urgent one, only an urgent one."""
        if self._monotonic() > until:
            return None
        with self._queue.changed:
            return self._queue.next_urgent() if last.urgent else self._queue.next()

    @staticmethod
    def _one_by_one(connection: "_WriterConnection", units: Sequence[UnitOfWork], error: Exception) -> None:
        """Runs units whose common transaction failed, each in its own, since most may not be the cause."""
        for unit in units:
            if len(units) == 1:
                unit.error = unit.error or error
                return
            try:
                driver = connection.begin()
                connection.run(unit)
                driver.execute("COMMIT")
            except Exception as its_own:  # noqa: BLE001 - the same
                connection.roll_back()
                unit.error = unit.error or its_own


class _TransactionLostError(Exception):
    """SQLite has rolled back the whole transaction, not only the unit that failed."""


class _WriterConnection:
    """The thread's connection, opened on demand. Transactions begin and end without SQLAlchemy."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._open: tuple[Connection, sqlite3.Connection] | None = None

    def begin(self) -> sqlite3.Connection:
        """Begins as the writer, since a transaction that begins as a reader cannot wait for the write lock later."""
        _, driver = self._opened()
        driver.execute("BEGIN IMMEDIATE")
        return driver

    def run(self, unit: UnitOfWork) -> None:
        """Runs a unit. One that fails, or that nobody waits for any more, is rolled back to its savepoint, which the
        commit releases.
        """
        connection, driver = self._opened()
        driver.execute("SAVEPOINT unit")
        unit.run(ThreadConnection(connection))
        if not driver.in_transaction:
            raise _TransactionLostError from unit.error
        if unit.error is not None or unit.answer.cancelled():
            driver.execute("ROLLBACK TO unit")

    def roll_back(self) -> None:
        """Ends a failed transaction; if even that fails, the next one gets a new connection."""
        try:
            if self._open is not None and self._open[1].in_transaction:
                self._open[1].execute("ROLLBACK")
        except sqlite3.Error:
            self.close()

    def close(self) -> None:
        """Closes the connection."""
        opened, self._open = self._open, None
        if opened is not None:
            with suppress(Exception):
                opened[0].close()

    def _opened(self) -> tuple[Connection, sqlite3.Connection]:
        if self._open is None:
            connection = self._engine.connect()
            self._open = connection, cast("sqlite3.Connection", connection.connection.driver_connection)
        return self._open
