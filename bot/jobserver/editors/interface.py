"""What every editor offers."""

from pathlib import Path
from typing import Protocol


class Editor(Protocol):
    """Changes the files of a working copy as a prompt asks."""

    async def edit(self, prompt: str, directory: Path, log: Path) -> str:
        """Changes files under the directory and returns a short summary for the pull request (may be empty).

        What is worth knowing on the way is appended to the log file.

        Raises:
            EditError: the work could not be done; whatever was changed is thrown away.
        """
        ...
