"""An editor that runs any program; the prompt is its input, never an argument."""

import os
import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bot.jobserver import subprocesses
from bot.jobserver.editors.interface import EditProgress, EditResult, EditTask, attachments_in_words, with_conversation
from bot.jobserver.editors.job_log import Redactor, open_log, told_refusals
from bot.jobserver.egress.model_relay import RelayedModel, relayed_model
from bot.jobserver.egress.providers import ModelLogin
from bot.jobserver.egress.proxy import Connected, Egress
from bot.jobserver.errors import EditError
from bot.jobserver.sandbox.interface import Program, Sandbox
from bot.jobserver.sandbox.limits import ProgramFailedError, RunLimits
from bot.runtime.text import without_misleading

PROMPT_FILE = "{prompt_file}"
ANSWER_CHARACTERS = 3000
_ANSWER_BYTES = 4 * ANSWER_CHARACTERS
_SIGNALS = 128
_LINE_CHARACTERS = 300
_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[@-~]")


def child_environment(
    environment: Mapping[str, str], passed: Sequence[str], *, secrets: Collection[str]
) -> dict[str, str]:
    """Returns the variables to pass to the program, without any that contains a secret of the server."""
    return {
        name: value
        for name in passed
        if (value := environment.get(name)) is not None and not any(secret in value for secret in secrets)
    }


def as_data(prompt: str) -> str:
    """Returns a prompt that no program reads as one of its own commands, such as `/docs` or `!id`."""
    first = prompt.lstrip()[:1]
    return prompt if first.isalnum() else f"The instruction:\n\n{prompt}"


def answer_of(output: subprocesses.LastBytes) -> str:
    """Returns the end of a program's output, from the start of a line."""
    text = without_misleading(_TERMINAL.sub("", output.getvalue().decode(errors="replace")))
    printable = "".join(c for c in text if c.isprintable() or c in "\n\t").strip()
    is_complete = output.is_complete and len(printable) <= ANSWER_CHARACTERS
    return printable if is_complete else printable[-ANSWER_CHARACTERS:].partition("\n")[2].strip()


@dataclass(frozen=True)
class CommandEditor:
    """Runs a program in the sandbox; `time_limit` is in seconds, `passed` are names of variables.

    The prompt is passed on standard input, or in a file whose path replaces `{prompt_file}` in the command. `login` is
    the relay's for its model, whose address replaces `{model_url}`.
    """

    command: tuple[str, ...]
    sandbox: Sandbox
    limits: RunLimits
    egress: Egress
    time_limit: float
    passed: tuple[str, ...] = ()
    secrets: tuple[str, ...] = field(default=(), repr=False)
    login: ModelLogin | None = None
    mask: Callable[[str], str] = str

    async def edit(self, task: EditTask, progress: EditProgress) -> EditResult:
        async with told_refusals(task.log) as refusals:
            async with (
                self.egress.opened(refusals) as connected,
                relayed_model(self.login, refusals.note, progress.spent) as model,
            ):
                result = await self._edit(task, connected, model)
            return replace(result, notes=refusals.in_words)

    async def _edit(self, task: EditTask, connected: Connected, model: RelayedModel | None) -> EditResult:
        prompt = self._prompt(task).encode(errors="replace")
        answer, errors = subprocesses.LastBytes(_ANSWER_BYTES), subprocesses.LastBytes(_ANSWER_BYTES)
        passed = child_environment(os.environ, self.passed, secrets=self.secrets)
        with (
            open_log(task.log, self.mask) as log,
            _arguments(self.command, prompt) as arguments,
        ):
            given = Program(arguments, passed)
            program = self.sandbox.prepare(connected(model.given_to(given) if model else given), task.workspace)
            stdin = b"" if arguments != self.command else prompt
            command = subprocesses.Command(
                program.arguments, program.directory, program.environment, self.time_limit, stdin
            )
            try:
                exit_code = await self.limits.run(
                    command, task.workspace, stdout=_Both(log, answer), stderr=_Both(log, errors)
                )
            except ProgramFailedError as error:
                raise EditError(f"the editor {error}") from error
        if exit_code:
            signal = exit_code - _SIGNALS
            ended = f"was ended by signal {signal}" if signal > 0 else f"ended with exit code {exit_code}"
            last_line = (answer_of(errors) or answer_of(answer)).rpartition("\n")[2].strip()
            words = Redactor(passed.values())(last_line)[:_LINE_CHARACTERS]
            raise EditError(f"the editor {ended}{f': {words}' if words else ''}")
        return EditResult(summary=answer_of(answer))

    def _prompt(self, task: EditTask) -> str:
        asked = with_conversation(task.prompt, task.conversation)
        if not task.attachments:
            return as_data(asked)
        files = attachments_in_words(task.attachments, self.sandbox.attachments(task.workspace))
        return f"{files}\n\nThe instruction:\n\n{asked}"


@dataclass(frozen=True)
class _Both:
    """Writes to two places."""

    first: subprocesses.Writer
    second: subprocesses.Writer

    def write(self, data: bytes) -> None:
        self.first.write(data)
        self.second.write(data)


@contextmanager
def _arguments(command: tuple[str, ...], prompt: bytes) -> Iterator[tuple[str, ...]]:
    """Fills in the path of a temporary file with the prompt."""
    if not any(PROMPT_FILE in argument for argument in command):
        yield command
        return
    with tempfile.TemporaryDirectory(prefix="pagehand-prompt-") as directory:
        path = Path(directory, "prompt.md")
        path.write_bytes(prompt)
        yield tuple(argument.replace(PROMPT_FILE, str(path)) for argument in command)
