"""The file uploader: copies the files of waiting requests from Slack to the job API, each under its own claim. A
request is sent once all its files are settled.

Nothing is kept between attempts: the file is read from Slack again, and uploading the same bytes twice does no harm.
So a process holds only as many files as it uploads at a time.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from bot.domain.context import FileOutcome, notes_of, with_files
from bot.domain.jobs.outages import JobApiUnavailable
from bot.domain.jobs.poll_pace import Polling
from bot.domain.messages import FileProblem
from bot.domain.projects import JobApiAbilities
from bot.domain.requests.request import Request, RequestState, log_id
from bot.domain.requests.settle import BACKOFF, Settlement, settle
from bot.domain.slack_limits import PATIENCE, failing_since
from bot.domain.threads.thread import Thread
from bot.errors import ChatError, JobApiError, JobApiNotAllowed, JobApiUnreachable
from bot.notices.notice import NewNotice
from bot.notices.requests import ContextCut
from bot.ports.job_api import JobApi
from bot.ports.slack import FileReader
from bot.runtime.logging import LogContext
from bot.scheduler.gathering import MAX_SENT_BYTES
from bot.scheduler.worker import JobApiWorker, WorkerSettings, about, answer_or_none, in_time
from bot.service.settle import record_result, show_state
from bot.store.request_parts import ClaimedFile
from bot.store.store import RequestTransaction, Store

READ_SECONDS = 30.0
"""Seconds for reading one file from Slack."""

logger = logging.getLogger(__name__)

Result = FileOutcome | JobApiUnavailable | ChatError
"""The result of one attempt: the file is settled, or the job API or Slack was not available."""


class FileUploader(JobApiWorker[ClaimedFile]):
    """Uploads files that are due.

    Args:
        store: The store.
        files: Reads files from Slack.
        job_api: Accepts the files.
        settings: Its settings; one call reads a file and uploads it.
        polling: How soon a job is polled again.
        abilities: Returns what a project's job API can do.
    """

    name = "file uploader"

    def __init__(
        self,
        store: Store,
        files: FileReader,
        job_api: JobApi,
        settings: WorkerSettings,
        *,
        polling: Polling,
        abilities: Callable[[str], JobApiAbilities],
    ) -> None:
        super().__init__(store, settings, concurrency=2)  # which limits the memory of files
        self._files = files
        self._job_api = job_api
        self._polling = polling
        self._abilities = abilities

    async def claim(self, limit: int) -> Sequence[ClaimedFile]:
        """Claims files that are due."""
        return await self._store.transact(
            lambda tx: tx.request_parts.claim(self._owner, lease=self._lease, limit=limit)
        )

    def subject(self, item: ClaimedFile) -> LogContext:
        """See Worker."""
        return about(item.thread, log_id(item.request_id))

    async def process(self, item: ClaimedFile, claimed_at: float) -> None:
        """Uploads one file, and records the result."""
        if not self.lease_covers_call(claimed_at):
            await self.record(partial(self._hand_back, item))
            return
        result = await self._try(item)
        await self.record(partial(self._record, item, result, self._random()))

    async def _try(self, item: ClaimedFile) -> Result:
        if not self._abilities(item.thread.project).files:
            return FileOutcome(problem=FileProblem.NOT_TAKEN)
        try:
            content = await in_time(answer_or_none(self._files.read(item.file, max_bytes=MAX_SENT_BYTES)), READ_SECONDS)
        except ChatError as error:
            return error
        if content is None or not content.data:
            return FileOutcome(problem=FileProblem.REFUSED)
        if not content.complete:
            return FileOutcome(problem=FileProblem.TOO_LARGE)
        return await self._upload(item, content.data, content.mimetype)

    async def _upload(self, item: ClaimedFile, data: bytes, mimetype: str) -> Result:
        project, name = item.thread.project, item.file.name or "file"
        kind = mimetype or item.file.mimetype or "application/octet-stream"
        try:
            uploaded = await self._job_api.upload(project, data, name=name, mimetype=kind)
        except JobApiError as error:
            logger.info("a file was not uploaded: %s", error)
            if isinstance(error, JobApiUnreachable | JobApiNotAllowed):
                return self.record_unavailable(project, error)
            self.record_answer(project)
            return FileOutcome(problem=FileProblem.NOT_TAKEN)
        self.record_answer(project)
        return FileOutcome(uploaded, project=project)

    # -- what follows ---------------------------------------------------------------------------------------------

    async def _hand_back(self, item: ClaimedFile, tx: RequestTransaction) -> None:
        if await tx.request_parts.is_claimed_by(item, self._owner):
            await tx.request_parts.postpone(item, due_in=0.0)

    async def _record(self, item: ClaimedFile, result: Result, jitter: float, tx: RequestTransaction) -> None:
        request = await tx.requests.get(item.request_id)
        thread = await tx.threads.get(item.thread.id)
        if request is None or thread is None or not await tx.request_parts.is_claimed_by(item, self._owner):
            return
        if request.state is not RequestState.WAITING or thread.project != item.thread.project:
            return  # it was withdrawn, or is prepared again with other files
        match result:
            case FileOutcome():
                await _settled(tx, item, request, result)
            case JobApiUnavailable():
                await tx.request_parts.tried(request.id)
                tried_at = tx.now if request.first_tried_at is None else request.first_tried_at
                tried = replace(request, attempts=item.attempts, first_tried_at=tried_at)
                settlement = settle(tried, thread.state, result, tx.now, self._polling, jitter=jitter)
                await _wait_for_job_api(tx, item, thread, request, settlement)
            case ChatError():
                await _wait_for_slack(tx, item, request, result, jitter)


async def _wait_for_job_api(
    tx: RequestTransaction, item: ClaimedFile, thread: Thread, request: Request, settlement: Settlement
) -> None:
    """Handles it like a request that could not be sent: with the same messages, and for as long."""
    await tx.request_parts.postpone(item, due_in=settlement.due_in)
    if settlement.request_state is not RequestState.WAITING:
        await record_result(tx, thread, (request,), settlement)
        return
    await show_state(tx, thread, settlement.state, poll_in=settlement.poll_in)
    for notice in settlement.notices:
        await tx.notices.add(thread.id, notice)


async def _wait_for_slack(
    tx: RequestTransaction, item: ClaimedFile, request: Request, failure: ChatError, jitter: float
) -> None:
    since = failing_since(item.failing_since, tx.now, limited=not failure.is_failure)
    if tx.now - since >= PATIENCE:
        await _settled(tx, item, request, FileOutcome(problem=FileProblem.UNANSWERED))
        return
    due_in = max(BACKOFF.delay(item.attempts, jitter=jitter), failure.retry_after or 0.0)
    attempts = item.attempts if failure.is_failure else item.attempts - 1
    await tx.request_parts.postpone(replace(item, attempts=attempts, failing_since=since), due_in=due_in)


async def _settled(tx: RequestTransaction, item: ClaimedFile, request: Request, outcome: FileOutcome) -> None:
    """Releases the request with its last file, and tells its person which files the agent does not get."""
    await tx.request_parts.settle(item, outcome)
    files = await tx.request_parts.settled(request.id)
    if files is None:
        return
    context = with_files(request.context, files, item.thread.project)
    if context is None:  # it was changed while the files were being uploaded
        await tx.requests.prepared(replace(request, state=RequestState.RECEIVED))
        return
    await tx.request_parts.complete(request.id, context)
    if notes := notes_of([each.quote for each in files]):
        told = ContextCut(request.person_id, notes.link_only, name_only=notes.name_only)
        await tx.notices.add(request.thread_id, NewNotice(ContextCut.files_key(request), told))
