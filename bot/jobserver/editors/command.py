"""An editor that runs any program; the prompt is its input, never an argument."""

import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from bot.errors import ConfigError
from bot.jobserver import subprocesses
from bot.jobserver.editors.interface import EditProgress, EditResult, EditTask, attachments_in_words, with_conversation
from bot.jobserver.editors.job_log import JobLog, open_log, told_refusals
from bot.jobserver.egress.model_relay import RelayedModel, model_relay
from bot.jobserver.egress.providers import ModelLogin
from bot.jobserver.egress.proxy import Connected, Egress
from bot.jobserver.errors import EditError, JobServerError
from bot.jobserver.sandbox.interface import Program, Sandbox
from bot.jobserver.sandbox.limits import RunLimits
from bot.runtime.secrets.masking import SecretMasker
from bot.runtime.settings import read_variable
from bot.runtime.text import without_misleading

PROMPT_FILE = "{prompt_file}"
ANSWER_CHARACTERS = 3000
_ANSWER_BYTES = 4 * ANSWER_CHARACTERS
_SIGNALS = 128
_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[@-~]")


def passed_variables(names: Iterable[str], environment: Mapping[str, str], *, never: Collection[str]) -> dict[str, str]:
    """Returns the variables that a program gets, read from the environment or the file that `<name>_FILE` names.

    Values that contain one of `never`, the server's own keys, are left out.

    Raises:
        JobServerError: such a file cannot be read.
    """
    try:
        found = {name: read_variable(name, environment) for name in names}
    except ConfigError as error:
        raise JobServerError(str(error)) from None
    return {name: value for name, value in found.items() if value and not any(key in value for key in never)}


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
    """Runs a program in the sandbox, with the variables `passed`; `time_limit` is in seconds.

    The prompt is passed on standard input, or in a file whose path replaces `{prompt_file}` in the command. `login` is
    the relay's for its model, whose address replaces `{model_url}`.
    """

    command: tuple[str, ...]
    sandbox: Sandbox
    limits: RunLimits
    egress: Egress
    time_limit: float
    passed: Mapping[str, str] = field(default_factory=dict, repr=False)
    login: ModelLogin | None = None
    mask: Callable[[str], str] = str

    async def edit(self, task: EditTask, progress: EditProgress) -> EditResult:
        async with told_refusals(task.log) as refusals:
            async with (
                self.egress.opened(refusals) as connected,
                model_relay(self.login, refusals.note, progress.spent) if self.login else nullcontext() as model,
            ):
                result = await self._edit(task, connected, model)
            return replace(result, notes=refusals.in_words)

    async def _edit(self, task: EditTask, connected: Connected, model: RelayedModel | None) -> EditResult:
        prompt = self._prompt(task).encode(errors="replace")
        answer, errors = subprocesses.LastBytes(_ANSWER_BYTES), subprocesses.LastBytes(_ANSWER_BYTES)
        with (
            open_log(task.log, self.mask) as log,
            _arguments(self.command, prompt) as arguments,
        ):
            given = Program(arguments, self.passed)
            program = self.sandbox.prepare(connected(model.given_to(given) if model else given), task.workspace)
            stdin = b"" if arguments != self.command else prompt
            command = program.command(self.time_limit, stdin)
            exit_code = await self.limits.run(
                "the editor", command, task.workspace, stdout=_both(log, answer), stderr=_both(log, errors)
            )
        if exit_code:
            signal = exit_code - _SIGNALS
            ended = f"was ended by signal {signal}" if signal > 0 else f"ended with exit code {exit_code}"
            last_line = (answer_of(errors) or answer_of(answer)).rpartition("\n")[2].strip()
            words = SecretMasker(self.passed.values()).mask_own(last_line)[:300]
            raise EditError(f"the editor {ended}{f': {words}' if words else ''}")
        return EditResult(summary=answer_of(answer))

    def _prompt(self, task: EditTask) -> str:
        asked = with_conversation(task.prompt, task.conversation)
        if not task.attachments:
            return as_data(asked)
        files = attachments_in_words(task.attachments, self.sandbox.attachments(task.workspace))
        return f"{files}\n\nThe instruction:\n\n{asked}"


def _both(log: JobLog, kept: subprocesses.LastBytes) -> subprocesses.Write:
    def write(data: bytes) -> None:
        log.write(data)
        kept.write(data)

    return write


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
