"""What the log lines of a piece of work are about: a request, a job and a thread. Each task has its own.

The id of a request is sent along to the job API in a header, so that its lines can be found in the log of both.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

REQUEST_ID_HEADER = "X-Request-Id"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
REQUEST_ID_FORM = _REQUEST_ID.pattern


@dataclass(frozen=True, slots=True)
class LogContext:
    """What log lines are about; empty: nothing known. `request` is an opaque id, which is nowhere a key."""

    request: str = ""
    job: str = ""
    thread: str = ""

    @property
    def fields(self) -> Mapping[str, str]:
        """What is known, by its name in the log."""
        named = {"request": self.request, "job": self.job, "thread": self.thread}
        return {name: value for name, value in named.items() if value}


NO_CONTEXT = LogContext()
_current: ContextVar[LogContext] = ContextVar("log_context", default=NO_CONTEXT)


def current_log_context() -> LogContext:
    """Returns what log lines of the current task are about."""
    return _current.get()


@contextmanager
def log_context(context: LogContext) -> Iterator[None]:
    """Has the log lines in this block, and of tasks that begin in it, be about this."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


def is_request_id(value: str) -> bool:
    """Whether a header's value can be a request's id in the log."""
    return _REQUEST_ID.fullmatch(value) is not None
