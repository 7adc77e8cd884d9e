"""The built-in editor's own process: what a page or a prompt can do to it, it can't do to the server.

It reads a prompt as JSON from standard input and writes how it ended as JSON to standard output:
`python -m bot.jobserver.editors.builtin.worker DIRECTORY`.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bot.jobserver.editors.builtin.attachments import GivenFile
from bot.jobserver.editors.builtin.files import WorkingFiles
from bot.jobserver.editors.builtin.prompt_parser import parse
from bot.jobserver.editors.builtin.work import Note, carry_out
from bot.jobserver.errors import EditError

ABILITIES = (
    'The built-in editor can: replace "this" with "that" [in a page or folder]; fix the spelling [in ...]; '
    "add a page called X with the text: ...; add a section called X to PAGE with the text: ...; "
    "add the attached FILE to PAGE"
)


def work(prompt: str, root: Path, given: Sequence[GivenFile] = ()) -> dict[str, str]:
    """Carries out a prompt; returns `summary`, or `reason` where nothing was changed, or `error`.

    `given`: the files that came with it.
    """
    edits = parse(prompt)
    if not edits:
        return {"reason": "\n".join([f"Not understood, so nothing was changed. {ABILITIES}", *_left_alone(given, [])])}
    files = WorkingFiles(root)
    try:
        notes = [carry_out(edit, files, given) for edit in edits]
    except (EditError, OSError, ValueError, RecursionError, MemoryError) as error:
        return {"error": str(error) or type(error).__name__}
    words = [*(note.text for note in notes), *_left_alone(given, notes)]
    told = "\n".join(words).encode(errors="replace").decode()
    return {"summary" if any(note.changed for note in notes) else "reason": told}


def _left_alone(given: Sequence[GivenFile], notes: Sequence[Note]) -> list[str]:
    used = {note.used for note in notes}
    left = [file.called for file in given if file.name not in used]
    return [f"Attached, and left alone: {', '.join(left)}."] if left else []


def main() -> None:
    asked = json.load(sys.stdin)
    given = [GivenFile(Path(path), called) for path, called in asked["attachments"]]
    answer = work(asked["prompt"], Path(sys.argv[1]), given)
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
