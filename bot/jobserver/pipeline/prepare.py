"""Prepares an instruction: its branch, the state of the repository that it starts from, and its editor's folders."""

import asyncio
from dataclasses import dataclass, replace

from bot.jobapi.models import PullRequestState
from bot.jobserver.editors.interface import EditTask, Exchange
from bot.jobserver.editors.job_log import append_line
from bot.jobserver.pipeline.descriptions import commit_message
from bot.jobserver.pipeline.foreign_text import described
from bot.jobserver.pipeline.tools import Tools
from bot.jobserver.pull_requests.interface import OpenedPullRequest
from bot.jobserver.repository.git_repository import StartingPoint
from bot.jobserver.store.records import Instruction

_CONFLICT = "the partial work of the previous request no longer applies: the branch has changed the same lines"


@dataclass(frozen=True)
class Prepared:
    """An instruction that can be edited. `message` is that of its commit, `pull_request` the job's newest, if any."""

    instruction: Instruction
    start: StartingPoint
    task: EditTask
    message: str
    pull_request: OpenedPullRequest | None


async def prepare(tools: Tools, instruction: Instruction) -> Prepared:
    """Fetches the branch, and lays out its files with the partial work of an earlier instruction that failed.

    A branch whose pull request has ended is not continued: the job gets another one.

    Raises:
        JobServerError: the repository or the host of pull requests is out of reach, or the files cannot be written.
    """
    pull_request = await tools.pull_requests.find(instruction.branch)
    if pull_request and pull_request.state is not PullRequestState.OPEN:
        instruction = await tools.queue.use_next_branch(instruction)
    start = await tools.repository.start(instruction.branch)
    workspace, log = tools.folders.workspace(instruction.job_id), tools.folders.log(instruction.job_id)
    await asyncio.to_thread(append_line, log, f"instruction {instruction.number} from {start.parents[0]}")
    await asyncio.to_thread(tools.folders.make_empty, instruction.job_id)
    await tools.repository.check_out(start.tree, workspace.copy)
    if instruction.partial is not None:
        is_back = await tools.repository.put_back(instruction.partial, start.tree, workspace.copy)
        await asyncio.to_thread(append_line, log, "the partial work was put back" if is_back else _CONFLICT)
        start = start if is_back else replace(start, note="; ".join(filter(None, (start.note, _CONFLICT))))
    task = EditTask(
        instruction.prompt,
        workspace,
        log,
        tuple(Exchange(earlier.prompt, earlier.answer) for earlier in instruction.conversation),
        instruction.session,
        attachments=await asyncio.to_thread(tools.folders.attach, instruction),
        words=instruction.words,
    )
    message = commit_message(await described(instruction, tools.masking))
    return Prepared(instruction, start, task, message, pull_request)
