"""The log of a job: a file for the server's operator, bounded and without secrets."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import IO

from bot.jobserver.egress.proxy import EgressRefusals
from bot.jobserver.errors import EditError
from bot.jobserver.text import one_line

LOG_LIMIT = 1_000_000
"""Bytes kept per run."""
_LONGEST_LINE = 16_384


def append_line(log: Path, text: str) -> None:
    with log.open("ab") as stream:
        stream.write(text.encode(errors="replace") + b"\n")


class JobLog:
    """Writes lines about a run, and its program's output, which is masked by whole lines. `dropped`: the number of
    bytes beyond the limit.
    """

    def __init__(self, stream: IO[bytes], mask: Callable[[str], str]) -> None:
        self._stream = stream
        self._room = LOG_LIMIT
        self.dropped = 0
        self._mask = mask
        self._unfinished = b""
        self._last_words = ""

    def line(self, text: str) -> None:
        self._append(f"{self._mask(text)}\n")

    def write(self, data: bytes) -> None:
        """Accepts a piece of the program's output."""
        whole, end, rest = (self._unfinished + data).rpartition(b"\n")
        if len(rest) > _LONGEST_LINE:
            whole, end, rest = whole + end + rest, b"", b""
        self._unfinished = rest
        self._write(whole + end)

    def last_words(self) -> str:
        """Returns the last non-empty line of output, shortened and without secrets."""
        if self._unfinished:
            self.write(b"\n")
        return self._last_words

    def finish(self) -> None:
        """Writes the last, incomplete line."""
        self._write(self._unfinished)
        self._unfinished = b""

    def _write(self, lines: bytes) -> None:
        text = self._mask(lines.decode(errors="replace"))
        self._append(text)
        self._last_words = one_line(text.rstrip().rpartition("\n")[2]) or self._last_words

    def _append(self, text: str) -> None:
        data = text.encode(errors="replace")
        kept = data[: self._room]
        self._room -= len(kept)
        self.dropped += len(data) - len(kept)
        self._stream.write(kept)
        self._stream.flush()


@contextmanager
def open_log(path: Path, mask: Callable[[str], str]) -> Iterator[JobLog]:
    """Appends a run to a job's log."""
    with path.open("ab") as stream:
        log = JobLog(stream, mask)
        try:
            yield log
        finally:
            log.finish()
            if log.dropped:
                stream.write(f"\n[{log.dropped} more bytes of output were not kept]\n".encode())


@asynccontextmanager
async def told_refusals(path: Path) -> AsyncIterator[EgressRefusals]:
    """Counts what a run is refused, and tells it in the job's log, and in the reason if the run fails."""
    refusals = EgressRefusals()
    try:
        yield refusals
    except EditError as error:
        raise EditError(refusals.after(str(error))) from error
    finally:
        for line in refusals.in_log:
            append_line(path, line)
