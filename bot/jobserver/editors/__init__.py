"""Editors change files in a working copy as a prompt asks; which one is a setting."""

from pathlib import Path
from typing import Protocol


class Editor(Protocol):
    """What the runner needs of an editor."""

    async def edit(self, prompt: str, directory: Path, log: Path) -> str:
        """Change files under the directory and return a short summary for the pull request (may be empty).

        What is worth knowing on the way is appended to the log file.

        Raises:
            EditError: the work could not be done; whatever was changed is thrown away.
        """
        ...
