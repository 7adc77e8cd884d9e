"""The final text of a request: with everything merged into it, with names, and with its requester."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from bot.domain.context.message_text import keeping_names, mentioned, with_names
from bot.domain.context.thread_context import ContextText, compose
from bot.domain.projects import JobApiAbilities
from bot.domain.requests.merging import as_one
from bot.domain.requests.request import Request, RequestContext
from bot.domain.threads.thread import Thread
from bot.jobapi.models import PromptCall, Requester
from bot.ports.job_api import JobApi, Requesters
from bot.ports.slack import DisplayNames
from bot.store.request_queue import ClaimedRequest

KeepText = Callable[[str, str], Awaitable[None]]
"""Records a request's final text, by its id."""
KeepRequester = Callable[[str, Requester], Awaitable[None]]
"""Records the requester that the job API gets, by the request's id."""


class RequestText:
    """Completes requests before they are sent.

    Args:
        job_api: The job API.
        abilities: What each project's job API can do, by the project's name.
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
        people: DisplayNames | None,
        mask_own: Callable[[str], str],
        requesters: Requesters | None,
        keep_text: KeepText,
        keep_requester: KeepRequester,
    ) -> None:
        self._job_api = job_api
        self._abilities = abilities
        self._people = people
        self._mask_own = mask_own
        self._requesters = requesters
        self._keep_text = keep_text
        self._keep_requester = keep_requester

    async def complete(self, item: ClaimedRequest) -> Request:
        """Returns the request as it is sent."""
        requests = [await self._with_names(request) for request in (item.request, *item.merged)]
        first = await self._with_requester(requests[0], item.thread)
        return as_one(first, requests[1:])

    def prompt_call(self, request: Request, thread: Thread) -> PromptCall:
        """Returns the call that creates a job, or sends a follow-up to one."""
        context = request.context or RequestContext()
        files = context.files if self._job_api.takes_files(thread.project) else ()
        words = self._mask_own(request.text)
        told_apart = context.text and self._abilities(thread.project).instruction
        return PromptCall(
            compose(words, ContextText(context.text)),
            request.id,
            request.requester,
            files,
            instruction=words if told_apart else None,
        )

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
