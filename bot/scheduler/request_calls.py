"""Sends a request to the job API with its final text, and interprets the response."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import assert_never

from bot.domain.context.message_text import keeping_names, mentioned, with_names
from bot.domain.context.thread_context import ContextText, compose
from bot.domain.jobs.job import ARCHIVED, Job
from bot.domain.jobs.stopping import (
    STOP_WORDS,
    Cancelled,
    Discarded,
    DiscardStep,
    NotDiscarded,
    NothingToStop,
    StopStep,
    discard_step,
    stop_step,
)
from bot.domain.notices.messages import ActionAnswer
from bot.domain.projects import JobApiAbilities
from bot.domain.requests.merging import as_one
from bot.domain.requests.request import RejectionReason, Request, RequestContext, Requester, RequestKind
from bot.domain.requests.settle import Accepted, Rejected, SendOutcome
from bot.domain.threads.thread import Thread
from bot.errors import JobGone
from bot.ports.job_api import JobApi, PromptCall, Requesters
from bot.ports.slack import DisplayNames
from bot.ports.store import ClaimedRequest

KeepText = Callable[[str, str], Awaitable[None]]
"""Records a request's final text, by its id."""
KeepRequester = Callable[[str, Requester], Awaitable[None]]
"""Records the requester that the job API gets, by the request's id."""


class RequestCalls:
    """Makes the calls for requests.

    Args:
        job_api: The job API.
        abilities: What each project's job API can do, by the project's name.
        now: Returns the time, in seconds since the epoch.
        people: Looks up the names of people whom a request mentions.
        mask_own: Masks Pagehand's own secrets in a text.
        requesters: Looks up requesters; None if no job API accepts them.
        keep_text: See KeepText.
        keep_requester: See KeepRequester.
    """

    def __init__(
        self,
        job_api: JobApi,
        abilities: Callable[[str], JobApiAbilities],
        *,
        now: Callable[[], float],
        people: DisplayNames | None,
        mask_own: Callable[[str], str],
        requesters: Requesters | None,
        keep_text: KeepText,
        keep_requester: KeepRequester,
    ) -> None:
        self._job_api = job_api
        self._abilities = abilities
        self._now = now
        self._people = people
        self._mask_own = mask_own
        self._requesters = requesters
        self._keep_text = keep_text
        self._keep_requester = keep_requester

    async def prepared(self, item: ClaimedRequest) -> Request:
        """Returns the request as it is sent: with everything merged into it, with names, and with its requester."""
        requests = [await self._with_names(request) for request in (item.request, *item.merged)]
        first = await self._with_requester(requests[0], item.thread)
        return as_one(first, requests[1:])

    async def send(self, request: Request, thread: Thread) -> SendOutcome:
        """Sends a request. Raises JobApiError."""
        match request.kind:
            case RequestKind.START:
                return Accepted(await self._create(request, thread))
            case RequestKind.STOP:
                return await self._stop(request, thread)
            case RequestKind.DISCARD:
                return await self._discard(request, thread)
            case _:
                return await self._follow_up(request, thread)

    async def _create(self, request: Request, thread: Thread) -> Job:
        return await self._job_api.create(thread.project, self._prompt_call(request, thread))

    async def _follow_up(self, request: Request, thread: Thread) -> SendOutcome:
        if thread.state.job and thread.state.job.status == ARCHIVED:
            return Rejected(RejectionReason.ARCHIVED)  # noticed after the reply was recorded
        call = self._prompt_call(request, thread)
        return Accepted(await self._job_api.send_message(thread.project, _job_id(thread), call))

    async def _stop(self, request: Request, thread: Thread) -> SendOutcome:
        can_cancel = self._job_api.can_cancel(thread.project)
        step = stop_step(thread.state, self._now(), can_cancel=can_cancel)
        match step:
            case StopStep.NOTHING:
                return NothingToStop()
            case StopStep.DONE:
                return Cancelled()
            case StopStep.CANCEL:
                return Cancelled(await self._cancel(request, thread))
            case StopStep.ASK_AGENT:
                call = PromptCall(STOP_WORDS, request.id, request.requester)
                return Accepted(await self._job_api.send_message(thread.project, _job_id(thread), call))
            case _:
                assert_never(step)

    async def _discard(self, request: Request, thread: Thread) -> SendOutcome:
        step = discard_step(thread.state, self._now())
        match step:
            case DiscardStep.NOTHING:
                return NotDiscarded(ActionAnswer.NOTHING_TO_DISCARD)
            case DiscardStep.TOO_LATE:
                return NotDiscarded(ActionAnswer.DISCARD_TOO_LATE)
            case DiscardStep.CALL:
                key = f"{request.id}.{request.attempts}"  # a new one each time, as for a cancel
                return Discarded(await self._job_api.discard(thread.project, _job_id(thread), idempotency_key=key))
            case _:
                assert_never(step)

    async def _cancel(self, request: Request, thread: Thread) -> Job:
        # A new key each time: a server that runs a key once would repeat its first answer.
        key = f"{request.id}.{request.attempts}"
        return await self._job_api.cancel(
            thread.project, _job_id(thread), idempotency_key=key, requester=request.requester
        )

    def _prompt_call(self, request: Request, thread: Thread) -> PromptCall:
        context = request.context or RequestContext()
        files = context.files if self._job_api.takes_files(thread.project) else ()
        words = compose(self._mask_own(request.text), ContextText(context.text))
        return PromptCall(words, request.id, request.requester, files)

    async def _with_names(self, request: Request) -> Request:
        """Returns the request with the names of mentioned people. They are recorded before it is sent, because the job
        API rejects a repeated key with another text.
        """
        if ids := mentioned(request.text):
            names = await self._people.names(ids) if self._people is not None else {}
            request = replace(request, text=keeping_names(request.text, names))
            await self._keep_text(request.id, request.text)
        return replace(request, text=with_names(request.text, {}))

    async def _with_requester(self, request: Request, thread: Thread) -> Request:
        """Returns the request with its requester, if the job API accepts one. It is recorded before sending, like
        names; a request attempted without one stays without, because the job API may reject a repeated key with another
        body.
        """
        if self._requesters is None or request.requester is not None or request.attempts > 1:
            return request
        if not self._abilities(thread.project).requester:
            return request
        requester = await self._requesters.requester(request.person_id, thread.channel_id, thread.ts or "")
        await self._keep_requester(request.id, requester)
        return replace(request, requester=requester)


def _job_id(thread: Thread) -> str:
    if thread.state.job is None:
        raise JobGone("the thread has no job")
    return thread.state.job.id
