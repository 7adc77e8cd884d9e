"""Pushes a commit and opens or updates its pull request."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.jobserver.errors import GitError, PushRejectedError
from bot.jobserver.executor.descriptions import (
    TRAILER,
    Proposal,
    commit_message,
    pull_request_description,
    subject,
    trailer_value,
)
from bot.jobserver.executor.editing import EditOutcome
from bot.jobserver.executor.foreign_text import described
from bot.jobserver.executor.proposing import Proposed, Proposing
from bot.jobserver.leaks.interface import Masking
from bot.jobserver.models import CheckResult
from bot.jobserver.pull_requests.interface import PullRequests
from bot.jobserver.repository.git_repository import GitRepository, StartingPoint
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.records import Instruction, Outcome, PendingProposal
from bot.jobserver.usage import Spent

_PUSHES = 3


@dataclass(frozen=True)
class Publishing:
    """Each step is recorded when it is done, so that a restart continues after it."""

    repository: GitRepository
    pull_requests: PullRequests
    records: InstructionQueue
    proposing: Proposing
    masking: Masking

    async def push(self, instruction: Instruction, change: EditOutcome) -> EditOutcome | None:
        """Pushes the commit, merged with what somebody else has pushed in the meantime if that is possible.

        Returns what was pushed; None if somebody else changed the same lines.

        Raises:
            GitError: the repository rejected the push.
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
        """Returns the commit that was pushed for this instruction before a crash, or by a process that survived it."""
        if instruction.commit:
            return instruction.commit
        await self.repository.start(instruction.branch)
        newest = await self.repository.newest(instruction.branch)
        if newest and await self.repository.trailer(newest, TRAILER) == trailer_value(instruction):
            await self.records.record_pushed(instruction, newest)
            return newest
        return None

    async def _on_top(self, instruction: Instruction, commit: str) -> str | None:
        """Returns the change as a commit on top of the branch; None if it does not merge cleanly."""
        start = await self.repository.start(instruction.branch)
        theirs = await self.repository.commit(start, start.tree, "The branch as it is now\n")
        tree = await self.repository.merge(theirs, commit)
        message = commit_message(await described(instruction, self.masking))
        return tree and await self.repository.commit(start, tree, message)

    async def propose(self, instruction: Instruction, change: EditOutcome) -> Outcome:
        """Opens or updates the pull request of a pushed change; a failure is retried later."""
        described_as = await described(instruction, self.masking)
        summary = await asyncio.to_thread(self.masking.all, change.result.summary)
        proposal = _proposal(described_as, change, summary, await self.records.spent(instruction.job_id))
        pending = await self._record(described_as, proposal, change.checks)
        proposed = await self.proposing.propose(pending)
        commit = _commit_of(change)
        published = {"changes": change.changes, "pull_request": proposed.details, "revision": commit}
        details = change.details.model_copy(update={"reason": proposed.reason, **published})
        return Outcome(commit=commit, pr_link=proposed.link, details=details)

    async def propose_earlier(self, instruction: Instruction, start: StartingPoint) -> Proposed:
        """Proposes what earlier instructions pushed, for one that changed nothing."""
        pending = await self.proposing.records.of_job(instruction.job_id)
        if pending is None or pending.branch != instruction.branch:
            is_ahead = start.parents[0] != start.base
            if not is_ahead or await self.pull_requests.find(instruction.branch):
                return Proposed()
            pending = await self._record_branch(instruction)
        return await self.proposing.propose(pending)

    async def _record_branch(self, instruction: Instruction) -> PendingProposal:
        """Records a proposal for a branch that has none."""
        words = next((earlier.words for earlier in instruction.conversation), instruction.words)
        described_as = await described(replace(instruction, words=words), self.masking)
        return await self._record(described_as, Proposal(described_as.words, requester=described_as.requester), ())

    async def _record(
        self, described_as: Instruction, proposal: Proposal, checks: Sequence[CheckResult]
    ) -> PendingProposal:
        description = self.masking.known(pull_request_description(proposal))
        return await self.proposing.records.record_change(
            described_as, title=subject(proposal.words), description=description, checks=checks
        )


def _commit_of(change: EditOutcome) -> str:
    if change.commit is None:
        raise ValueError("nothing was changed")
    return change.commit


def _proposal(instruction: Instruction, change: EditOutcome, summary: str, spent: Spent) -> Proposal:
    return Proposal(
        instruction.words,
        summary,
        instruction.requester,
        change.notes,
        change.left_out,
        change.checks,
        [file.name for file in instruction.attachments if file.instruction == instruction.number],
        spent,
    )
