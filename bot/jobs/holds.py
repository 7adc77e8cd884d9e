"""Projects that the job API asked to leave alone for a while, so that a limit is not run into again and again."""

import asyncio

from bot.errors import JobApiBusy
from bot.jobs.faults import Operation

SECONDS = 10.0
"""How long a project is left alone where the API names no time; Retry-After is not promised."""


class Holds:
    """Until when no calls are made, by project. Creates and messages wait together, since their limit is the project's
    (the hosted API's is 100 an hour); polls, for which none is stated, wait apart.
    """

    def __init__(self) -> None:
        self._until: dict[tuple[str, bool], float] = {}

    def check(self, operation: Operation, project_id: str) -> None:
        """Raises JobApiBusy, with the seconds that are left, while the project is to be left alone."""
        left = self._until.get(_kind(operation, project_id), 0.0) - asyncio.get_running_loop().time()
        if left > 0:
            raise JobApiBusy("The job API asked to leave this project alone for a while.", retry_after=left)

    def note(self, operation: Operation, project_id: str, answer: JobApiBusy) -> None:
        """Begins a hold, or makes it longer."""
        seconds = SECONDS if answer.retry_after is None else answer.retry_after
        kind, until = _kind(operation, project_id), asyncio.get_running_loop().time() + seconds
        self._until[kind] = max(self._until.get(kind, until), until)


def _kind(operation: Operation, project_id: str) -> tuple[str, bool]:
    return project_id, operation is Operation.GET
