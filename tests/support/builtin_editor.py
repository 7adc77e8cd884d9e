"""The built-in editor, run without its process."""

from collections.abc import Sequence
from pathlib import Path

from bot.jobserver.editors.builtin.files import WorkingFiles
from bot.jobserver.editors.builtin.worker import answer


def work(prompt: str, root: Path, attached: Sequence[str] = ()) -> dict[str, str]:
    """Returns a `summary`, or a `reason` if nothing was changed, or an `error`."""
    answered = answer(prompt, WorkingFiles(root), attached)
    texts = {"summary": answered.summary, "reason": answered.reason, "error": answered.error}
    return {name: text for name, text in texts.items() if text}
