"""The branches that deleted jobs leave in the repository."""

import logging
from typing import Protocol

from bot.jobserver.errors import JobServerError
from bot.jobserver.pull_requests.interface import PullRequests, PullRequestState
from bot.jobserver.store.retention import JobRetention

logger = logging.getLogger(__name__)


class Branches(Protocol):
    """The one thing that removal asks of a repository."""

    async def delete_branch(self, branch: str) -> None: ...


class BranchRemoval:
    """Deletes branches whose pull requests have ended; an open one keeps its branch."""

    def __init__(self, jobs: JobRetention, branches: Branches, pull_requests: PullRequests) -> None:
        self._jobs = jobs
        self._branches = branches
        self._pull_requests = pull_requests

    async def run(self) -> None:
        """Tries all that are noted; one that cannot be deleted now holds up no other, and is tried again for a week."""
        last, failures = "", list[str]()
        while names := await self._jobs.old_branches(after=last):
            for name in names:
                try:
                    await self._delete(name)
                except JobServerError as error:
                    failures.append(f"{name}: {error}")
            last = names[-1]
        if failures:
            logger.warning("%d old branches could not be deleted, the first is %s", len(failures), failures[0])
            await self._jobs.give_up_branches()

    async def _delete(self, name: str) -> None:
        """A keeper forgets pull requests that have ended, so that one it does not know has ended."""
        pull_request = await self._pull_requests.find(name)
        if pull_request is None or pull_request.state is not PullRequestState.OPEN:
            await self._branches.delete_branch(name)
        await self._jobs.forget_branch(name)
