"""The request preparer: determines for each request whether its person may make it, which project it is for and which
context is sent with it, and records the outcome.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import assert_never

from bot.domain.jobs.stopping import is_at_work
from bot.domain.people.members import Preference
from bot.domain.people.permissions import LIMITED, Allowed, Facts, MustConfirm, Refused, Verdict, may
from bot.domain.projects import ReplyMode, Route, Routed, route
from bot.domain.requests.audit import AuditAction, audited
from bot.domain.requests.request import Request, RequestKind, RequestState, WayIn, surface_of
from bot.domain.threads.reading import part_of_thread, seconds_for_others
from bot.domain.threads.reply_rules import mode_of
from bot.domain.threads.thread import Thread
from bot.errors import ChatError, ChatRateLimited, ChatUncertain
from bot.notices.answers import ActionAnswer, ActionAnswered
from bot.notices.notice import NewNotice, NoticeKey
from bot.ports.job_api import JobApi
from bot.ports.slack import DisplayNames, SlackReading
from bot.runtime.logging import LogContext
from bot.scheduler.preparing.context import ContextComposer, Gathered
from bot.scheduler.preparing.outcomes import (
    PreparedRequest,
    ask_whether_meant,
    keep_parts,
    postpone,
    project_of,
    ready_to_start,
    ready_to_steer,
    refuse,
    wait_for_project,
)
from bot.scheduler.preparing.parts import Fetch, PartsFetcher, PreparerSettings, SharedThread, Together
from bot.scheduler.preparing.rereading import Rereader
from bot.scheduler.preparing.slack_reading import (
    PersonAndPlace,
    RequestFacts,
    person_and_place,
)
from bot.scheduler.worker import ANYTHING, DueWork, SlackWorker, WorkerSettings, about, left_by_preparing
from bot.service.action_terms import ActionTerms
from bot.service.actions import carry_out, writer_of
from bot.service.end_start import stop_unsent
from bot.service.follow_up import SETTLING
from bot.service.withdraw import withdraw_unsent
from bot.store.request_queue import ClaimedRequest
from bot.store.store import RequestTransaction, Store, Transaction

AWAITING_START = 1.0
"""Seconds until a word in a thread is tried again while another job is about to follow there."""
HOUR = 3600.0
MOST_UNDER_WAY = 100
"""Requests in progress: most wait for Slack, which costs little and does not delay those that are complete."""
_AT_ONCE = 8
"""How many requests are claimed or recorded in one transaction, which limits how long a commit takes."""
_GATHERED = frozenset({RequestKind.START, RequestKind.FOLLOW_UP})
"""Kinds of requests that can come with other people's messages and files."""


class RequestPreparer(SlackWorker[ClaimedRequest]):
    """Prepares requests that were received.

    Args:
        store: The store.
        settings: Its settings.
        prepared_by: Permissions, projects and polling.
        reading: Reads from Slack.
        rereader: Reads messages again.
        job_api: Tells which projects accept files.
        people: Looks up the names of writers of forwarded messages.
        concurrency: Requests in progress at a time.
    """

    name = "request preparer"

    def __init__(
        self,
        store: Store,
        settings: WorkerSettings,
        prepared_by: PreparerSettings,
        *,
        reading: SlackReading,
        rereader: Rereader,
        job_api: JobApi,
        people: DisplayNames | None = None,
        concurrency: int = MOST_UNDER_WAY,
    ) -> None:
        super().__init__(store, settings, concurrency=concurrency, at_once=_AT_ONCE)
        self._recording = asyncio.Semaphore(_AT_ONCE)
        self._rules, self._projects = prepared_by.rules, prepared_by.projects
        self._polling = prepared_by.polling
        self._settling = max(prepared_by.merge_seconds, SETTLING)
        self._reading, self._rereader = reading, rereader
        self._limits, self._together = prepared_by.limits, Together()
        self._fetcher = PartsFetcher(reading, prepared_by.limits)
        self._composer = ContextComposer(job_api, people, prepared_by.masker)

    async def claim(self, limit: int) -> Sequence[ClaimedRequest]:
        """Claims received requests."""
        turn = self._random()

        async def work(tx: RequestTransaction) -> Sequence[ClaimedRequest]:
            claimed = await tx.requests.claim_received(self._owner, lease=self._lease, limit=limit, turn=turn)
            return self._rereader.claimed(claimed, tx.now)

        return await self._store.transact(work)

    def subject(self, item: ClaimedRequest) -> LogContext:
        """See Worker."""
        return about(item.thread, item.request.log_id)

    async def process(self, item: ClaimedRequest, claimed_at: float) -> None:  # noqa: ARG002 - what is read can be read late
        """Prepares one request, and records the outcome."""
        try:
            async with asyncio.timeout(self._settings.call_timeout):
                newer = await self._rereader.newer(item)
                found = None if newer else await self._find_out(item)
        except ChatError as error:
            await self._try_later(item, error)
            return
        except TimeoutError:
            await self._try_later(item, ChatUncertain("no answer in time"))
            return
        self.record_answer()  # its files may still fail
        if found is None:
            await self._rereader.record(newer)
            await self.record(partial(self._prepare_again, item))
            return
        if found.part is None or item.request.kind is RequestKind.START:
            await self._go_on(item, found)
            return
        async with self._together.turn(item.thread.id, item.request.written_at, wait=found.wait) as shared:
            found = await self._look(item, found.who_and_where)  # earlier ones may have included a part of the thread
            await self._go_on(item, found, shared)

    async def _go_on(self, item: ClaimedRequest, found: RequestFacts, shared: SharedThread | None = None) -> None:
        if found.kept is None:
            await self.record(partial(self._conclude, item, found), leaves=left_by_preparing(uploads=False))
            return
        files = item.request.attachments.files
        fetch = await self._fetcher.fetch(item.thread.channel_id, found.part, files, found.kept, shared)
        if not (fetch.whole or fetch.parts.lasted(found.now)):
            await self.record(partial(self._keep_parts, item, fetch))
            return
        gathered = await self._composer.compose(item.request, found.project, found.part, fetch.parts)
        concluded = partial(self._conclude, item, replace(found, gathered=gathered))
        await self.record(concluded, leaves=left_by_preparing(uploads=bool(gathered.to_upload)))

    async def stop(self, timeout: float) -> None:  # noqa: ASYNC109 - see Worker
        """See Worker. Requests that wait for others continue at once."""
        self._together.hurry()
        await super().stop(timeout)

    async def record(
        self, work: Callable[[Transaction], Awaitable[None]], *, leaves: frozenset[DueWork] = ANYTHING
    ) -> None:
        """See Worker. Records a few at a time."""
        async with self._recording:
            await super().record(work, leaves=leaves)

    # -- looking up -----------------------------------------------------------------------------------------------

    async def _find_out(self, item: ClaimedRequest) -> RequestFacts:
        """Looks up who asks, and where, and everything else that is needed before context is fetched."""
        request, thread = item.request, item.thread
        return await self._look(
            item, await person_and_place(self._reading, self._rules, request.person_id, thread.channel_id)
        )

    async def _look(self, item: ClaimedRequest, seen: PersonAndPlace) -> RequestFacts:
        async with self._recording:
            return await self._store.transact(partial(self._known, item, seen))

    async def _known(self, item: ClaimedRequest, seen: PersonAndPlace, tx: RequestTransaction) -> RequestFacts:
        request, thread = item.request, item.thread
        found = RequestFacts(seen, await tx.preferences.get(request.person_id), tx.now)
        verdict = may(request.person, request.kind, self._facts(thread, request, found))
        if request.kind not in _GATHERED or verdict != Allowed():
            return found
        where = self._route(thread, found.preference) if request.kind is RequestKind.START else None
        project = project_of(where) if request.kind is RequestKind.START else thread.project
        if request.kind is RequestKind.START and not project:
            return replace(found, route=where)
        on_their_way = await tx.requests.on_their_way(thread.id)
        part = part_of_thread(thread, request, self._mode(thread), on_their_way)
        most = self._limits.together
        wait = seconds_for_others(request, on_their_way, tx.now, settling=self._settling, most=most)
        kept = await tx.request_parts.fetched(request.id)
        return replace(found, route=where, project=project, part=part, kept=kept, wait=wait)

    def _route(self, thread: Thread, preference: Preference) -> Route:
        return route(
            self._projects,
            said=thread.options.project_said,
            of_thread=thread.project,
            channel_id=thread.channel_id,
            prompt=thread.prompt,
            of_person=preference.project,
        )

    def _mode(self, thread: Thread) -> ReplyMode:
        return mode_of(thread, self._projects.channel(thread.channel_id).replies)

    def _facts(self, thread: Thread, request: Request, found: RequestFacts) -> Facts:
        seen = found.who_and_where
        return Facts(self._rules, thread, seen.member, seen.channel, seen.in_groups, request.way_in)

    # -- outcomes -------------------------------------------------------------------------------------------------

    async def _try_later(self, item: ClaimedRequest, error: ChatError) -> None:
        if not isinstance(error, ChatRateLimited):
            self.record_no_answer(error, retry_after=error.retry_after)
        await self.record(partial(self._postpone, item, error))

    async def _postpone(self, item: ClaimedRequest, error: ChatError, tx: RequestTransaction) -> None:
        held = await self._held(tx, item)
        if held is not None:
            await postpone(tx, *held, error, jitter=self._random())

    async def _prepare_again(self, item: ClaimedRequest, tx: RequestTransaction) -> None:
        """Has a request prepared as its message is now, unless that has withdrawn it."""
        if await self._held(tx, item) is not None:
            await tx.requests.not_tried(item.request.id, due_in=0.0, problem="")

    async def _keep_parts(self, item: ClaimedRequest, fetch: Fetch, tx: RequestTransaction) -> None:
        held = await self._held(tx, item)
        if held is not None:
            await keep_parts(tx, held[1], fetch, jitter=self._random())

    async def _held(self, tx: RequestTransaction, item: ClaimedRequest) -> tuple[Thread, Request] | None:
        """Returns the thread and the request as they are now; None if the claim is lost, or there is nothing to
        prepare.
        """
        for thread_id in sorted({item.thread.id, item.thread.follows} - {""}):
            await tx.threads.get(thread_id)  # locks are taken in the order of ids
        thread = await tx.threads.get(item.thread.id)
        request = await tx.requests.get(item.request.id)
        if thread is None or request is None or not await tx.requests.is_claimed_by(request.id, self._owner):
            return None
        return thread, request

    async def _conclude(self, item: ClaimedRequest, found: RequestFacts, tx: RequestTransaction) -> None:
        held = await self._held(tx, item)
        if held is None:
            return
        thread, request = held
        verdict = await self._verdict(tx, thread, request, found)
        match verdict:
            case Refused():
                await refuse(tx, thread, request, verdict, hourly_limit=self._rules.hourly_limit)
            case MustConfirm():
                await ask_whether_meant(tx, thread, request)
            case Allowed():
                await self._take_effect(tx, item, found, thread, request)
            case _:
                assert_never(verdict)

    async def _verdict(self, tx: RequestTransaction, thread: Thread, request: Request, found: RequestFacts) -> Verdict:
        facts = self._facts(thread, request, found)
        facts = replace(facts, writer_id=await writer_of(tx, request), free_at=await self._free_at(tx, request))
        return may(request.person, request.kind, facts)

    async def _free_at(self, tx: RequestTransaction, request: Request) -> float | None:
        """Returns when somebody who has reached the hourly limit may ask again; None if they may now."""
        if request.kind not in LIMITED:
            return None
        limit = self._rules.hourly_limit
        free_at = await tx.limits.free_at(request.person_id, request.id, limit=limit, within=HOUR)
        return None if free_at is None else math.ceil(free_at)

    async def _take_effect(
        self, tx: RequestTransaction, item: ClaimedRequest, found: RequestFacts, thread: Thread, request: Request
    ) -> None:
        if request.way_in is WayIn.WORD and await tx.requests.has_pending_start(thread.id):
            # The job that it is about is unknown until then.
            await tx.requests.settle(request.id, RequestState.RECEIVED, due_in=AWAITING_START, afresh=True)
            return
        terms = ActionTerms(self._projects, self._polling, self._random())
        match request.kind:
            case RequestKind.START | RequestKind.FOLLOW_UP:
                ready = PreparedRequest(request, thread, found.gathered or Gathered(), terms, found.part)
                await self._have_sent(tx, item, ready, found)
            case RequestKind.STOP:
                await self._stop(tx, thread, request)
            case RequestKind.DISCARD:
                await tx.requests.prepared(replace(request, state=RequestState.WAITING))
                await tx.audit.add(audited(AuditAction.DISCARDED, request, thread))
            case _:
                await carry_out(tx, thread, request, terms)

    async def _have_sent(
        self, tx: RequestTransaction, item: ClaimedRequest, ready: PreparedRequest, found: RequestFacts
    ) -> None:
        thread, request = ready.thread, ready.request
        now_for = self._route(thread, found.preference) if request.kind is RequestKind.START else None
        edited = item.request.attachments != request.attachments
        gathered = found.gathered is not None  # nothing is gathered without a project
        read_on = gathered and found.part != part_of_thread(
            thread, request, self._mode(thread), await tx.requests.on_their_way(thread.id)
        )
        if edited or read_on or project_of(now_for) != project_of(found.route):
            await tx.requests.settle(request.id, RequestState.RECEIVED)  # the results no longer apply
        elif request.kind is RequestKind.FOLLOW_UP:
            await ready_to_steer(tx, ready, settling=self._settling)
        elif isinstance(now_for, Routed):
            await ready_to_start(tx, ready, now_for, found.preference)
        elif now_for is not None:
            await wait_for_project(tx, ready, now_for)

    async def _stop(self, tx: RequestTransaction, thread: Thread, stop: Request) -> None:
        withdrawn = await withdraw_unsent(tx, thread, stop)
        if await stop_unsent(tx, thread, stop):
            return
        stops_work = thread.state.job is None or is_at_work(thread.state, tx.now)
        if withdrawn and not stops_work:
            told = ActionAnswered(stop.person_id, ActionAnswer.WAITING_STOPPED, asked_on=surface_of(stop.source_key))
            await tx.notices.add(thread.id, NewNotice(NoticeKey(stop.source_key), told))
        state = RequestState.ACCEPTED if withdrawn and not stops_work else RequestState.WAITING
        await tx.requests.prepared(replace(stop, state=state))
        await tx.audit.add(audited(AuditAction.STOPPED, stop, thread))
