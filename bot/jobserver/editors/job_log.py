"""The log of a job: a file for the server's operator."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from bot.jobserver.egress.refusals import EgressRefusals
from bot.jobserver.errors import EditError
from bot.jobserver.subprocesses import Stream

_LONGEST_LINE = 16_384


def append_line(log: Path, text: str) -> None:
    with log.open("ab") as stream:
        stream.write(text.encode(errors="replace") + b"\n")


class MaskedStream:
    """Masks output line by line; `finish` writes the last, incomplete line."""

    def __init__(self, stream: Stream, mask: Callable[[str], str]) -> None:
        self._stream = stream
        self._mask = mask
        self._unfinished = b""

    def write(self, data: bytes) -> None:
        whole, end, rest = (self._unfinished + data).rpartition(b"\n")
        if len(rest) > _LONGEST_LINE:
            whole, end, rest = whole + end + rest, b"", b""
        self._unfinished = rest
        self._write(whole + end)

    def flush(self) -> None:
        self._stream.flush()

    def finish(self) -> None:
        self._write(self._unfinished)
        self._unfinished = b""

    def _write(self, data: bytes) -> None:
        text = data.decode(errors="surrogateescape")
        self._stream.write(self._mask(text).encode(errors="surrogateescape"))


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
