"""The built-in editor's process, which protects the server from hostile pages and prompts.

It reads a task as JSON from standard input and writes an `EditorAnswer` as JSON to standard output.
"""

import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypedDict, assert_never

from bot.jobserver.editors.builtin import hints
from bot.jobserver.editors.builtin.edits import (
    AddPage,
    AddSection,
    Edit,
    FixSpelling,
    Note,
    Rename,
    RenamePage,
    Replace,
)
from bot.jobserver.editors.builtin.files import LowerFiles, WorkingFiles
from bot.jobserver.editors.builtin.page_edits import add_page, add_section
from bot.jobserver.editors.builtin.page_renames import rename, rename_page
from bot.jobserver.editors.builtin.prompt_parser import not_understood, parse
from bot.jobserver.editors.builtin.word_edits import correct_spelling, replace
from bot.jobserver.errors import EditError
from bot.jobserver.repository.git_reader import GitReader, GitTask


def carry_out(edit: Edit, files: WorkingFiles) -> Note:
    """Changes the files, and returns a note about what was done and what was left alone.

    Raises EditError and OSError.
    """
    match edit:
        case Replace():
            note = replace(edit, files)
        case FixSpelling():
            note = correct_spelling(edit, files)
        case AddPage():
            note = add_page(edit, files)
        case AddSection():
            note = add_section(edit, files)
        case RenamePage():
            note = rename_page(edit, files)
        case Rename():
            note = rename(edit, files)
        case _:
            assert_never(edit)
    return note


class LowerTask(TypedDict):
    """The arguments of `LowerFiles`."""

    git: GitTask
    tree: str
    note: str


@dataclass(frozen=True)
class EditorAnswer:
    """A `summary`, a `reason` why nothing was changed, or an `error`; `examples` accompany help."""

    summary: str = ""
    reason: str = ""
    error: str = ""
    examples: tuple[str, ...] = ()


def answer(prompt: str, files: WorkingFiles, attached: Sequence[str] = ()) -> EditorAnswer:
    """Carries out a prompt; `attached` are the names of its files. Raises nothing: failures are in the answer."""
    edits = parse(prompt)
    left_alone = [f"Attached, and left alone: {', '.join(attached)}."] if attached else []
    try:
        if not edits:
            return _hint(hints.answer(prompt, not_understood(prompt), files), left_alone)
        notes = [carry_out(edit, files) for edit in edits]
    except (EditError, OSError, ValueError, RecursionError, MemoryError) as error:
        return EditorAnswer(error=str(error) or type(error).__name__)
    words = _sendable([*(note.text for note in notes), *left_alone])
    return EditorAnswer(summary=words) if any(note.changed for note in notes) else EditorAnswer(reason=words)


def _hint(hint: hints.Hint, left_alone: Sequence[str]) -> EditorAnswer:
    words = _sendable([hint.text, *left_alone])
    return EditorAnswer(summary=words, examples=hint.examples) if hint.is_help else EditorAnswer(reason=words)


def _sendable(words: Sequence[str]) -> str:
    return "\n".join(words).encode(errors="replace").decode()


def main() -> None:
    asked = json.load(sys.stdin)
    with contextlib.closing(_lower(asked["lower"])) as lower:
        files = WorkingFiles(Path(asked["directory"]), lower)
        sys.stdout.write(json.dumps(asdict(answer(asked["prompt"], files, asked["attachments"]))))


def _lower(task: LowerTask | None) -> LowerFiles:
    if task is None:
        return LowerFiles()
    return LowerFiles(GitReader.of_task(task["git"]), task["tree"], Path(task["note"]))
