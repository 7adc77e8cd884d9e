"""Asks git in blocking code."""

import errno
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.jobserver.subprocesses import Command

_TIME_LIMIT_S = 60.0


@dataclass(frozen=True)
class GitReader:
    """Runs git in a directory. All methods raise OSError if git fails."""

    command: Sequence[str]
    directory: Path
    environment: Mapping[str, str]

    @classmethod
    def of_command(cls, git: Command) -> "GitReader":
        return cls(git.arguments, git.directory, git.environment)

    def output(self, *arguments: str, accepted: Collection[int] = (0,)) -> bytes:
        """Runs git to its end, for at most 60 s; `accepted` are the exit codes that count as success."""
        try:
            done = subprocess.run(
                [*self.command, *arguments], cwd=self.directory, env=dict(self.environment), check=False,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=_TIME_LIMIT_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise TimeoutError(errno.ETIMEDOUT, f"git {arguments[0]} took too long") from None
        if done.returncode not in accepted:
            raise OSError(errno.EIO, f"git {arguments[0]} ended with exit code {done.returncode}")
        return done.stdout

    @contextmanager
    def blobs(self) -> Iterator[Callable[[str], bytes]]:
        """Starts one process for many blobs; provides a function that returns the contents of a blob by its id."""
        with subprocess.Popen(
            [*self.command, "cat-file", "--batch=%(objectsize)"], cwd=self.directory, env=dict(self.environment),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            yield lambda blob: _read_blob(process, blob)


def _read_blob(process: subprocess.Popen[bytes], blob: str) -> bytes:
    """Asks `git cat-file --batch`, which answers with a line that has the size, the contents, and a line feed."""
    if process.stdin is None or process.stdout is None:
        raise OSError(errno.EIO, "git cannot be asked")
    process.stdin.write(f"{blob}\n".encode())
    process.stdin.flush()
    size = process.stdout.readline().strip()
    if not size.isdigit():
        raise OSError(errno.EIO, "git cannot read a file")
    data = process.stdout.read(int(size) + 1)
    if len(data) <= int(size):
        raise OSError(errno.EIO, "git ended early")
    return data[:-1]
