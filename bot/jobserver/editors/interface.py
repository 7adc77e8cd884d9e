"""What every editor offers: the built-in one, a program, or an agent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bot.jobserver.models import PlanStep, Question, QuestionField
from bot.jobserver.sandbox.interface import Workspace
from bot.jobserver.usage import Spent


@dataclass(frozen=True)
class Exchange:
    """An earlier instruction of the same job, and what was answered."""

    prompt: str
    answer: str


@dataclass(frozen=True)
class TaskFile:
    """A file that came with an instruction: it lies as `name` in the workspace's folder of attachments.

    The name is made of letters, digits and `-_.` only; `called` is the one that the person gave it. `size` is in bytes;
    `mimetype` is what the client said.
    """

    name: str
    called: str
    mimetype: str
    size: int


@dataclass(frozen=True)
class EditTask:
    """One instruction for an editor.

    `conversation`: the job's earlier exchanges, the oldest first. `session`: the agent's own id of the job's
    conversation, as it was told to `EditProgress.session` before; None for the first instruction. `log`: a file for
    whoever runs the server. `is_from_person`: False for what the server itself asks, to fix what the checks found,
    say: that answers no question. `attachments`: the files that came with this instruction; those of earlier ones lie
    beside them.
    """

    prompt: str
    workspace: Workspace
    log: Path
    conversation: Sequence[Exchange] = ()
    session: str | None = None
    is_from_person: bool = True
    attachments: Sequence[TaskFile] = ()


@dataclass(frozen=True)
class EditResult:
    """What an editor says at the end; each can be empty.

    `summary`: its answer, in Markdown. `reason`: why it changed nothing, where it knows. `question`: what it has to
    know before it can go on, and `question_fields` what can be chosen there. `notes`: sentences of ours about the run,
    such as what it tried to reach. `examples`: prompts that work as they stand, where somebody asked what it can do.
    """

    summary: str = ""
    reason: str = ""
    question: str = ""
    notes: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    question_fields: tuple[QuestionField, ...] = ()


class EditProgress(Protocol):
    """Where an editor tells how it gets on. Nothing raises, and nothing but `ask` waits."""

    def plan(self, steps: Sequence[PlanStep]) -> None:
        """Replaces the plan."""
        ...

    def activity(self, title: str) -> None:
        """Tells what it does just now, such as the title of a tool call."""
        ...

    def session(self, session_id: str) -> None:
        """Tells the agent's own id of the conversation, to be resumed by the next instruction or after a restart."""
        ...

    def spent(self, spent: Spent) -> None:
        """Tells what was taken of the model since it was told last."""
        ...

    async def ask(self, question: Question, is_answer: Callable[[str], bool]) -> str | None:
        """Asks whoever gave the instruction, and returns their next message.

        None where it did not come within minutes, or is no answer: that is an instruction of its own.
        """
        ...


class Editor(Protocol):
    """Changes the files of a working copy as a prompt asks."""

    async def edit(self, task: EditTask, progress: EditProgress) -> EditResult:
        """Changes files in the workspace's copy. Cancelling it ends whatever it started, within 5 s.

        Raises:
            EditError: the work could not be done, with the reason in words; whatever was changed is thrown away.
        """
        ...
