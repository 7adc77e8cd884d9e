"""An editor that is any program: this is how a coding agent's command line is plugged in."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from bot.jobserver import subprocesses
from bot.jobserver.editors.interface import EditResult, EditTask, Progress
from bot.jobserver.errors import EditError

PLACEHOLDER = "{prompt}"
LOG_LIMIT = 1_000_000
_PASSED_VARIABLES = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES",
    "TERM", "TMPDIR", "TZ", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME",
)  # fmt: skip


def child_environment(environment: Mapping[str, str], passed: Sequence[str], *, secret: str) -> dict[str, str]:
    """Returns what the program gets to see: an allow-list and the names given, never anything that holds the secret."""
    names = {*_PASSED_VARIABLES, *passed}
    kept = {name: value for name, value in environment.items() if name in names and not (secret and secret in value)}
    return {**kept, "GIT_TERMINAL_PROMPT": "0"}


def command_arguments(command: Sequence[str], prompt: str) -> tuple[str, ...]:
    """Returns the program's arguments with the prompt in its place, which can never become an option of the program."""

    def filled(argument: str) -> str:
        text = argument.replace(PLACEHOLDER, prompt)
        return f" {text}" if argument.startswith(PLACEHOLDER) and text.startswith("-") else text

    return tuple(filled(argument) for argument in command)


class CommandEditor:
    """Runs the program in the working copy; `time_limit` is in seconds."""

    def __init__(
        self, command: Sequence[str], *, time_limit: float, passed: Sequence[str] = (), secret: str = ""
    ) -> None:
        self._command = tuple(command)
        self._time_limit = time_limit
        self._passed = tuple(passed)
        self._secret = secret

    async def edit(self, task: EditTask, _: Progress) -> EditResult:
        with task.log.open("ab") as stream:
            output = subprocesses.BoundedWriter(stream, LOG_LIMIT)
            try:
                exit_code = await self._run(self._command_for(task.prompt, task.workspace.copy), output)
            finally:
                if output.dropped:
                    stream.write(f"\n[{output.dropped} more bytes of output were not kept]\n".encode())
        if exit_code:
            raise EditError(f"the editor ended with exit code {exit_code}")
        return EditResult()

    def _command_for(self, prompt: str, directory: Path) -> subprocesses.Command:
        takes_argument = any(PLACEHOLDER in argument for argument in self._command)
        return subprocesses.Command(
            command_arguments(self._command, prompt),
            directory,
            child_environment(os.environ, self._passed, secret=self._secret),
            self._time_limit,
            b"" if takes_argument else prompt.encode(),
        )

    async def _run(self, command: subprocesses.Command, output: subprocesses.BoundedWriter) -> int:
        try:
            return await subprocesses.run(command, stdout=output)
        except OSError as error:
            reason = error.strerror or "unknown reason"
            raise EditError(f"the editor's program cannot be started: {reason}") from error
        except subprocesses.ProcessTimeoutError:
            raise EditError(f"the editor took longer than {self._time_limit:g} s") from None
