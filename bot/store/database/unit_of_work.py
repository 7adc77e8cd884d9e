"""Units of work for SQLite's thread: what each does in a transaction, and who waits for it."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, CursorResult, Executable
from sqlalchemy.engine import Dialect

T = TypeVar("T")


class WorkSuspendedError(RuntimeError):
    """A unit of work awaited something else than its transaction, which would keep the database from everybody."""

    def __init__(self) -> None:
        super().__init__("the work of a transaction may await nothing but the transaction's own methods")


class ThreadConnection:
    """A plain connection with the face of an AsyncConnection: awaiting what it does never suspends."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def dialect(self) -> Dialect:
        """SQLite's."""
        return self._connection.dialect

    async def execute(self, statement: Executable, parameters: Any = None) -> CursorResult[Any]:
        """Runs a statement."""
        return self._connection.execute(statement, parameters)

    async def exec_driver_sql(self, statement: str) -> CursorResult[Any]:
        """Runs SQL as it is."""
        return self._connection.exec_driver_sql(statement)

    async def run_sync(self, work: Callable[[Connection], T]) -> T:
        """Calls `work` with the plain connection."""
        return work(self._connection)


Work = Callable[[ThreadConnection], Awaitable[Any]]


@dataclass(eq=False)
class UnitOfWork:
    """A unit of work, and who waits for it. Once run, it has a result or an error. `urgent`: people wait for it."""

    work: Work
    answer: asyncio.Future[Any]
    urgent: bool = False
    result: Any = None
    error: BaseException | None = None

    def run(self, connection: ThreadConnection) -> None:
        """Runs the work to its end."""
        self.result, self.error = None, None
        try:
            self.result = _driven(self.work(connection))
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to whoever waits
            self.error = error

    def deliver(self) -> None:
        """Tells whoever waits, if anybody still does; in the loop's own thread."""
        if self.answer.done():
            return
        if self.error is None:
            self.answer.set_result(self.result)
        else:
            self.answer.set_exception(self.error)
        self.error = None  # its traceback holds this frame


def _driven(work: Awaitable[T]) -> T:
    """Runs an awaitable that never suspends."""
    steps = work.__await__()
    try:
        next(steps)
    except StopIteration as ended:
        return cast("T", ended.value)
    if isinstance(steps, Generator):
        steps.close()
    raise WorkSuspendedError


def deliver(units: Sequence[UnitOfWork]) -> None:
    """Wakes each loop once for all of its units."""
    loops: dict[asyncio.AbstractEventLoop, list[UnitOfWork]] = {}
    for unit in units:
        loops.setdefault(unit.answer.get_loop(), []).append(unit)
    for loop, its in loops.items():
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(_deliver_all, its)


def _deliver_all(units: Sequence[UnitOfWork]) -> None:
    for unit in units:
        unit.deliver()
