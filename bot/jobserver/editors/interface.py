"""The interface of editors: the built-in one, a program, or an agent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bot.jobapi.models import PlanStep, QuestionField
from bot.jobserver.sandbox.interface import Workspace
from bot.jobserver.store.records import Question
from bot.jobserver.usage import Spent


@dataclass(frozen=True)
class Exchange:
    """An earlier instruction of the same job, and its answer."""

    prompt: str
    answer: str


@dataclass(frozen=True)
class TaskFile:
    """A file attached to an instruction: it is called `name` in the workspace's folder of attachments.

    The name consists of letters, digits and `-_.`; `called` is its original name. `size` is in bytes; `mimetype` is as
    the client gave it.
    """

    name: str
    called: str
    mimetype: str
    size: int


@dataclass(frozen=True)
class EditTask:
    """One instruction for an editor.

    `conversation`: the job's earlier exchanges, oldest first. `session`: the agent's own id of the conversation, as
    reported to `EditProgress.session` earlier; None for the first instruction. `log`: a file for the server's operator.
    `is_from_person`: False for the server's own instructions, such as to fix the faults that checks found, which answer
    no question. `attachments`: the files of this instruction; those of earlier ones are in the same folder. `words`:
    the part of the prompt that the person wants done, where the rest is context; None if all of it is.
    """

    prompt: str
    workspace: Workspace
    log: Path
    conversation: Sequence[Exchange] = ()
    session: str | None = None
    is_from_person: bool = True
    attachments: Sequence[TaskFile] = ()
    words: str | None = None

    @property
    def own_words(self) -> str:
        return self.prompt if self.words is None else self.words


@dataclass(frozen=True)
class EditResult:
    """An editor's result; every field can be empty.

    `summary`: its answer, in Markdown. `reason`: why it changed nothing, if known. `question`: what it needs to know to
    continue, and `question_fields` the choices; `closing_question` is one if nothing was changed, and else politeness.
    `notes`: the server's sentences about the run, such as refused connections. `examples`: prompts that work as they
    are, in answer to one that was not understood.
    """

    summary: str = ""
    reason: str = ""
    question: str = ""
    notes: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    question_fields: tuple[QuestionField, ...] = ()
    closing_question: str = ""


class EditProgress(Protocol):
    """Receives an editor's progress. No method raises, and only `ask` waits."""

    def plan(self, steps: Sequence[PlanStep]) -> None:
        """Replaces the plan."""
        ...

    def activity(self, title: str) -> None:
        """Reports the current activity, such as the title of a tool call."""
        ...

    def session(self, session_id: str) -> None:
        """Reports the agent's own id of the conversation, which the next instruction, or a restart, resumes."""
        ...

    def spent(self, spent: Spent) -> None:
        """Reports the usage of the model since the last report."""
        ...

    async def ask(self, question: Question, is_answer: Callable[[str], bool]) -> str | None:
        """Asks the person who gave the instruction, and returns their next message.

        Returns None if there is none within minutes, or it is not an answer but an instruction of its own.
        """
        ...


class Editor(Protocol):
    """Changes the files of a working copy as a prompt asks."""

    async def edit(self, task: EditTask, progress: EditProgress) -> EditResult:
        """Changes files in the workspace's copy. Cancelling it ends everything it started, within 5 s.

        Raises:
            EditError: the editor failed, and its changes are to be discarded; the message says why.
        """
        ...
