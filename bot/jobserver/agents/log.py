"""The log of an agent's run: bounded, and without secrets."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from bot.jobserver.subprocesses import BoundedWriter
from bot.jobserver.text import one_line

_SHORTEST_SECRET = 8
"""In characters. Shorter values, such as the name of a region, are not secret and occur in many texts."""
LOG_LIMIT = 1_000_000
"""Bytes kept per run."""
_LONGEST_LINE = 16_384


class Redactor:
    """Replaces secret values in texts."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = sorted({s for s in secrets if len(s) >= _SHORTEST_SECRET}, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[secret]")
        return text


class AgentLog:
    """Writes lines about a run, and the program's standard error, to a job's log."""

    def __init__(self, output: BoundedWriter, redact: Callable[[str], str]) -> None:
        self._output = output
        self._redact = redact
        self._unfinished = b""
        self._last_words = ""

    def line(self, text: str) -> None:
        self._output.write(self._redact(text).encode(errors="replace") + b"\n")

    def errors(self, data: bytes) -> None:
        """Accepts a piece of the program's standard error."""
        *lines, rest = (self._unfinished + data).split(b"\n")
        if len(rest) > _LONGEST_LINE:
            lines, rest = [*lines, rest], b""
        self._unfinished = rest
        for line in lines:
            self._error_line(line)

    def last_words(self) -> str:
        """Returns the last non-empty line of standard error, shortened and without secrets."""
        self.finish()
        return self._last_words

    def finish(self) -> None:
        if self._unfinished:
            self._error_line(self._unfinished)
        self._unfinished = b""

    def _error_line(self, line: bytes) -> None:
        text = line.decode(errors="replace")
        self.line(text)
        if text.strip():
            self._last_words = one_line(self._redact(text[:_LONGEST_LINE]))


@contextlib.contextmanager
def open_log(path: Path, redact: Callable[[str], str]) -> Iterator[AgentLog]:
    """Appends to a job's log."""
    with path.open("ab") as stream:
        output = BoundedWriter(stream, LOG_LIMIT)
        log = AgentLog(output, redact)
        try:
            yield log
        finally:
            log.finish()
            if output.dropped:
                stream.write(f"\n[{output.dropped} more bytes of output were not kept]\n".encode())
