"""Scans a change in a process with a time limit, since some texts take seconds per megabyte."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from bot.jobserver import subprocesses
from bot.jobserver.errors import LeakScanError
from bot.jobserver.leaks.interface import Leak, Trees
from bot.jobserver.leaks.worker import TOO_MUCH_PACKED, Task
from bot.jobserver.repository.git import printable
from bot.jobserver.repository.mirror import Mirror

TIME_LIMIT_S = 60.0
"""Public documentation is scanned at 2 to 5 MB per second."""
_OUTPUT = 100_000
_WORKER = "bot.jobserver.leaks.worker"
_LEAKS = TypeAdapter(tuple[Leak, ...])


@dataclass(frozen=True)
class LeakScanProcess:
    """Implements `LeakScan`. `known` returns the server's current secrets; `time_limit` is in seconds."""

    mirror: Mirror
    known: Callable[[], tuple[str, ...]]
    allowed: tuple[str, ...] = ()
    time_limit: float = TIME_LIMIT_S

    async def leaks(self, trees: Trees) -> tuple[Leak, ...]:
        output, errors = subprocesses.LastBytes(_OUTPUT), subprocesses.FirstBytes(0)
        try:
            command = subprocesses.own_module(_WORKER, self._task(trees), self.time_limit)
            code = await subprocesses.run(command, stdout=output, stderr=errors)
        except subprocesses.ProcessTimeoutError:
            raise LeakScanError(f"took longer than {self.time_limit:g} s{_where(output)}") from None
        except OSError as error:
            raise LeakScanError(f"cannot be started: {error.strerror}") from error
        try:
            return _LEAKS.validate_json(_last_line(output)) if code == 0 else self._failed(code, output)
        except ValidationError:
            return self._failed(code, output)

    def _failed(self, code: int, output: subprocesses.LastBytes) -> tuple[Leak, ...]:
        if code == TOO_MUCH_PACKED:
            raise LeakScanError(f"met more than is unpacked{_where(output)}")
        raise LeakScanError(f"ended with exit code {code}{_where(output)}")

    def _task(self, trees: Trees) -> bytes:
        task = Task(
            git=self.mirror.reader().as_task(),
            start=trees.start,
            base=trees.base,
            commit=trees.commit,
            known=self.known(),
            allowed=self.allowed,
        )
        return json.dumps(task).encode()


def _last_line(output: subprocesses.LastBytes) -> bytes:
    return output.getvalue().rstrip(b"\n").rpartition(b"\n")[2]


def _where(output: subprocesses.LastBytes) -> str:
    """Returns the path that was scanned last."""
    try:
        path = json.loads(_last_line(output))
    except ValueError:
        return ""
    return f" at `{printable(path)}`" if isinstance(path, str) else ""
