"""The built-in editor, which needs neither network nor model and runs in a process with a time limit."""

import asyncio
import json

from pydantic import TypeAdapter, ValidationError

from bot.jobserver import subprocesses
from bot.jobserver.editors.builtin.worker import EditorAnswer, LowerTask
from bot.jobserver.editors.interface import EditProgress, EditResult, EditTask
from bot.jobserver.editors.job_log import append_line
from bot.jobserver.errors import EditError
from bot.jobserver.repository.git_reader import GitReader
from bot.jobserver.repository.snapshot import lower_tree
from bot.jobserver.warm_module import WarmModule

TIME_LIMIT_S = 120.0
"""Repositories of 680 to 1,080 pages took 3 to 6 s."""
_ANSWER_LIMIT = 1_000_000
_ANSWER = TypeAdapter(EditorAnswer)
WORKER = "bot.jobserver.editors.builtin.worker"


class BuiltinEditor:
    """Edits pages without an agent. `time_limit` is in seconds.

    `git` reads the files of copies that have a lower layer.
    """

    def __init__(
        self,
        time_limit: float = TIME_LIMIT_S,
        *,
        worker: WarmModule | None = None,
        git: GitReader | None = None,
    ) -> None:
        self._time_limit = time_limit
        self._git = git
        self._worker = worker or WarmModule(WORKER)

    async def edit(self, task: EditTask, progress: EditProgress) -> EditResult:
        progress.activity("Reading the pages")
        answer = await self._ask_worker(task)
        if answer.error:
            raise EditError(f"the built-in editor could not do it: {answer.error}")
        await asyncio.to_thread(append_line, task.log, answer.summary or answer.reason)
        return EditResult(answer.summary, answer.reason, examples=answer.examples)

    async def _ask_worker(self, task: EditTask) -> EditorAnswer:
        output, errors, code = subprocesses.FirstBytes(_ANSWER_LIMIT), subprocesses.FirstBytes(_ANSWER_LIMIT), None
        try:
            code = await self._worker.run(
                await asyncio.to_thread(self._asked, task),
                time_limit=self._time_limit,
                stdout=output,
                stderr=errors,
            )
            return _ANSWER.validate_json(output.getvalue())
        except subprocesses.ProcessTimeoutError:
            raise EditError(
                f"the built-in editor gave up after {self._time_limit:g} s; try a part of the pages"
            ) from None
        except ValidationError:
            await asyncio.to_thread(append_line, task.log, errors.getvalue().decode(errors="replace"))
            raise EditError(f"the built-in editor's process ended with exit code {code}") from None

    def _asked(self, task: EditTask) -> bytes:
        copy = task.workspace.copy.absolute()
        lower = lower_tree(copy)
        below = None
        if self._git and lower:
            below = LowerTask(git=self._git.as_task(), tree=lower.tree, note=str(lower.note))
        attached = [file.called for file in task.attachments]
        asked = {"prompt": task.own_words, "directory": str(copy), "attachments": attached, "lower": below}
        return json.dumps(asked).encode()
