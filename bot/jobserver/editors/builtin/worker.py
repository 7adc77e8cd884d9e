"""The built-in editor's own process: what a page or a prompt can do to it, it can't do to the server.

It reads a prompt as JSON from standard input and writes how it ended as JSON to standard output:
`python -m bot.jobserver.editors.builtin.worker DIRECTORY`.
"""

import json
import sys
from pathlib import Path

from bot.jobserver.editors.builtin.files import WorkingFiles
from bot.jobserver.editors.builtin.prompt_parser import parse
from bot.jobserver.editors.builtin.work import carry_out
from bot.jobserver.errors import EditError

ABILITIES = (
    'The built-in editor can: replace "this" with "that" [in a page or folder]; fix the spelling [in ...]; '
    "add a page called X with the text: ...; add a section called X to PAGE with the text: ..."
)


def work(prompt: str, root: Path) -> dict[str, str]:
    """Carries out a prompt; returns `summary`, or `reason` where nothing was changed, or `error`."""
    edits = parse(prompt)
    if not edits:
        return {"reason": f"Not understood, so nothing was changed. {ABILITIES}"}
    files = WorkingFiles(root)
    try:
        notes = [carry_out(edit, files) for edit in edits]
    except (EditError, OSError, ValueError, RecursionError, MemoryError) as error:
        return {"error": str(error) or type(error).__name__}
    told = "\n".join(note.text for note in notes).encode(errors="replace").decode()
    return {"summary" if any(note.changed for note in notes) else "reason": told}


def main() -> None:
    answer = work(json.load(sys.stdin)["prompt"], Path(sys.argv[1]))
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
