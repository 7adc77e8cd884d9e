"""Publishing: a commit is pushed, and its pull request opened or brought up to date."""

from dataclasses import dataclass, replace

from bot.jobserver.errors import GitError, JobServerError, PushRejectedError
from bot.jobserver.executor.descriptions import (
    TRAILER,
    Proposal,
    commit_message,
    pull_request_description,
    subject,
    trailer_value,
)
from bot.jobserver.executor.editing import Change
from bot.jobserver.executor.interfaces import JobRepository, Records
from bot.jobserver.models import JobDetails, PullRequestDetails, PullRequestState
from bot.jobserver.pull_requests.interface import NewPullRequest, PullRequest, PullRequests
from bot.jobserver.store.records import Instruction, Outcome

_PUSHES = 3
_MAX_CHECKS = 30


@dataclass(frozen=True)
class Publishing:
    """Each step is recorded when it is done, so that a restart goes on after it."""

    repository: JobRepository
    pull_requests: PullRequests
    records: Records

    async def push(self, instruction: Instruction, change: Change) -> Change | None:
        """Pushes the commit, on top of what somebody else pushed meanwhile where that merges by itself.

        Returns what was pushed; None where somebody else changed the same lines.

        Raises:
            GitError: the repository did not take it.
        """
        for _ in range(_PUSHES):
            commit = _commit_of(change)
            try:
                await self.repository.push(commit, instruction.branch)
            except PushRejectedError:
                if ours := await self.pushed_before(instruction):
                    return replace(change, commit=ours)
                merged = await self._on_top(instruction, commit)
                if merged is None:
                    return None
                change = replace(change, commit=merged)
            else:
                await self.records.record_pushed(instruction, commit)
                return change
        raise GitError(f"somebody else keeps pushing to the branch {instruction.branch}: send the message again later")

    async def pushed_before(self, instruction: Instruction) -> str | None:
        """Returns the commit that was pushed for this instruction before a crash, or by what a crash left running."""
        if instruction.commit:
            return instruction.commit
        await self.repository.start(instruction.branch)
        newest = await self.repository.newest(instruction.branch)
        if newest and await self.repository.trailer(newest, TRAILER) == trailer_value(instruction):
            await self.records.record_pushed(instruction, newest)
            return newest
        return None

    async def _on_top(self, instruction: Instruction, commit: str) -> str | None:
        """Returns the change as a commit on the branch's newest one; None where that does not merge by itself."""
        start = await self.repository.start(instruction.branch)
        theirs = await self.repository.commit(start, start.tree, "The branch as it is now\n")
        tree = await self.repository.merge(theirs, commit)
        return tree and await self.repository.commit(start, tree, commit_message(instruction))

    async def propose(self, instruction: Instruction, change: Change) -> Outcome:
        """Opens or updates the pull request of a pushed change; a failure of that is a failure of the instruction."""
        commit = _commit_of(change)
        details = JobDetails(
            summary=change.result.summary or None,
            question=change.result.question or None,
            changes=change.changes,
            revision=commit,
        )
        try:
            pull_request = await self._open_or_update(instruction, _proposal(instruction, change))
        except JobServerError as error:
            failure = f"The change was pushed to {instruction.branch}, but has no pull request yet: {error}"
            return Outcome(failure, commit, details=details)
        told = pull_request_details(pull_request, change)
        return Outcome(
            commit=commit, pr_link=pull_request.link, details=details.model_copy(update={"pull_request": told})
        )

    async def _open_or_update(self, instruction: Instruction, proposal: Proposal) -> PullRequest:
        description = pull_request_description(proposal)
        existing = await self.pull_requests.find(instruction.branch)
        if existing is None:
            new = NewPullRequest(instruction.branch, subject(instruction.prompt), description, instruction.requester)
            return await self.pull_requests.open(new)
        # One that ended while this server was down holds the pushed commit, or refused it: either is an end.
        if existing.state is PullRequestState.OPEN:
            await self.pull_requests.update(existing, description)
        return existing


def pull_request_details(pull_request: PullRequest, change: Change | None = None) -> PullRequestDetails:
    checks = (*(change.checks if change else ()), *pull_request.checks)[:_MAX_CHECKS]
    return PullRequestDetails(number=pull_request.number, state=pull_request.state, checks=checks)


def _commit_of(change: Change) -> str:
    if change.commit is None:
        raise ValueError("nothing was changed")
    return change.commit


def _proposal(instruction: Instruction, change: Change) -> Proposal:
    return Proposal(
        instruction.prompt,
        change.result.summary,
        instruction.requester,
        change.changes,
        (change.note,) if change.note else (),
        change.left_out,
        change.checks,
        [file.name for file in instruction.attachments if file.instruction == instruction.number],
    )
