"""The request preparer: determines for each request whether its person may make it, which project it is for and which
context is sent with it, and records the outcome.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import assert_never
from weakref import WeakValueDictionary

from bot.domain.context import FetchedParts, ThreadPart
from bot.domain.jobs.job import Problem
from bot.domain.jobs.poll_pace import Polling
from bot.domain.messages import beginning
from bot.domain.people import ChannelInfo, Member, Preference
from bot.domain.permissions import HOUR, LIMITED, Allowed, Facts, MustConfirm, PermissionRules, Refused, may
from bot.domain.projects import Ambiguous, ProjectReason, Projects, ReplyMode, Route, Routed, route
from bot.domain.requests.audit import AuditAction, audited
from bot.domain.requests.edits import MAX_QUOTED, reaction_notice
from bot.domain.requests.follow_ups import part_of_thread
from bot.domain.requests.request import (
    RejectionReason,
    Reply,
    Request,
    RequestKind,
    RequestState,
    WayIn,
    surface_of,
)
from bot.domain.slack_limits import failing_since
from bot.domain.threads.reply_rules import mode_of
from bot.domain.threads.thread import Thread
from bot.errors import ChatError
from bot.notices.answers import ActionAnswer, answered
from bot.notices.notice import CARD_CHANGED, NewNotice, NoticeKey
from bot.notices.questions import RequestRefused, StopAsked
from bot.notices.requests import ContextCut
from bot.runtime.logging import LogContext
from bot.scheduler import worker
from bot.scheduler.gathering import ContextGatherer, Fetch, Gathered
from bot.scheduler.rereading import Rereader
from bot.service import following_jobs
from bot.service.actions import carry_out, writer_of
from bot.service.follow_up import SETTLING
from bot.service.stopping import stop_job
from bot.store.request_queue import ClaimedRequest
from bot.store.store import RequestTransaction, Store, Transaction

AWAITING_START = 1.0
"""Seconds until a word in a thread is tried again while another job is about to follow there."""
MOST_UNDER_WAY = 100
"""Requests in progress: most wait for Slack, which costs little and does not delay those that are complete."""
_AT_ONCE = 8
"""How many requests are claimed or recorded in one transaction, which limits how long a commit takes."""
_GATHERED = frozenset({RequestKind.START, RequestKind.FOLLOW_UP})
"""Kinds of requests that can come with other people's messages and files."""
_QUIET_AS_SAID = frozenset({WayIn.MODAL, WayIn.SHORTCUT, WayIn.RETRY, WayIn.SWITCH})
"""Ways to ask that include how the person wants to be notified, so their preference does not apply."""


@dataclass(frozen=True)
class RequestFacts:
    """The results of the look-ups for a request. `route` is set for a start. If the request may be sent, `project` is
    its project, `part` the part of the Slack thread for its context, and `kept` the parts fetched before; otherwise
    nothing is gathered.
    """

    known: Facts
    preference: Preference
    now: float
    route: Route | None = None
    project: str = ""
    part: ThreadPart | None = None
    kept: FetchedParts | None = None
    gathered: Gathered = field(default_factory=Gathered)


class RequestPreparer(worker.SlackWorker[ClaimedRequest]):
    """Prepares requests that were received. Those of a thread that read it are prepared one after the other, so that
    each includes only what the one before does not.

    `rereader` reads messages again, and `gatherer` fetches their context.
    """

    name = "request preparer"

    def __init__(
        self,
        store: Store,
        settings: worker.WorkerSettings,
        rereader: Rereader,
        gatherer: ContextGatherer,
        *,
        rules: PermissionRules,
        projects: Projects,
        polling: Polling,
    ) -> None:
        super().__init__(store, settings, concurrency=MOST_UNDER_WAY, at_once=_AT_ONCE)
        self._recording = asyncio.Semaphore(_AT_ONCE)
        self._rules, self._projects, self._polling = rules, projects, polling
        self._settling = max(settings.variables.merge_seconds, SETTLING)
        self._rereader, self._gatherer, self._reading = rereader, gatherer, gatherer.reading
        self._readers: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By thread, who may read it now."""

    async def claim(self, limit: int) -> Sequence[ClaimedRequest]:
        """Claims received requests."""
        turn = self._random()

        async def work(tx: RequestTransaction) -> Sequence[ClaimedRequest]:
            claimed = await tx.requests.claim_received(self._owner, lease=self._lease, limit=limit, turn=turn)
            return self._rereader.claimed(claimed, tx.now)

        return await self._store.transact(work)

    def subject(self, item: ClaimedRequest) -> LogContext:
        """See Worker."""
        return worker.about(item.thread, item.request.log_id)

    async def process(self, item: ClaimedRequest, claimed_at: float) -> None:  # noqa: ARG002 - what is read can be read late
        """Prepares one request, and records the outcome."""
        try:
            newer, found = await self.bounded(self._read(item))
        except ChatError as error:
            self.record_no_answer(error)
            await self.record(partial(self._postpone, item, error))
            return
        self.record_answer()  # its files may still fail
        if found is None:
            await self._rereader.record(newer)
            await self.record(partial(self._prepare_again, item))
        elif found.part is None or item.request.kind is RequestKind.START:
            await self._go_on(item, found)
        else:
            reading = self._readers.setdefault(item.thread.id, asyncio.Lock())
            async with reading:
                # Earlier ones may have included a part of the thread.
                await self._go_on(item, await self._look(item, found.known))

    async def _go_on(self, item: ClaimedRequest, found: RequestFacts) -> None:
        if found.kept is None:
            await self.record(partial(self._conclude, item, found))
            return
        files = item.request.attachments.files
        fetch = await self._gatherer.fetch(item.thread.channel_id, found.part, files, found.kept)
        if not (fetch.whole or fetch.parts.lasted(found.now)):
            await self.record(partial(self._keep_parts, item, fetch))
            return
        gathered = await self._gatherer.compose(item.request, found.project, found.part, fetch.parts)
        leaves = self._left_by(item, found) | ({worker.DueWork.UPLOAD} if gathered.to_upload else worker.NOTHING)
        await self.record(partial(self._conclude, item, replace(found, gathered=gathered)), leaves=leaves)

    def _left_by(self, item: ClaimedRequest, found: RequestFacts) -> frozenset[worker.DueWork]:
        """Returns what a prepared request leaves. A start that nothing moves to is sent after its card."""
        starts, thread = item.request.kind is RequestKind.START, item.thread
        ahead = self._projects.abilities(found.project).cancel
        card_first = starts and thread.card_ts is None and not (thread.follows or ahead)
        return frozenset({worker.DueWork.DELIVER}) if card_first else worker.ANYTHING

    async def record(
        self, work: Callable[[Transaction], Awaitable[None]], *, leaves: frozenset[worker.DueWork] = worker.ANYTHING
    ) -> None:
        """See Worker. Records a few at a time."""
        async with self._recording:
            await super().record(work, leaves=leaves)

    # -- looking up -----------------------------------------------------------------------------------------------

    async def _read(self, item: ClaimedRequest) -> tuple[Sequence[Reply], RequestFacts | None]:
        """Reads a request's message again, and looks up the rest unless it has changed. Raises ChatError."""
        newer = await self._rereader.newer(item)
        return newer, None if newer else await self._look(item, await self._ask_slack(item))

    async def _ask_slack(self, item: ClaimedRequest) -> Facts:
        """Asks Slack who asks, and where. Raises ChatError."""
        person_id, groups = item.request.person_id, self._rules.groups
        member, channel = await asyncio.gather(self._member(person_id), self._channel(item.thread.channel_id))
        in_groups = await worker.answer_or_none(self._reading.groups.members_of(groups)) if groups else None
        listed = person_id in (in_groups or ())
        return Facts(self._rules, item.thread, member, channel, listed, item.request.way_in)

    # Begun within the tasks of `gather`: one that is cancelled before its first step would leave a call behind.

    async def _member(self, person_id: str) -> Member | None:
        return await worker.answer_or_none(self._reading.members.member(person_id))

    async def _channel(self, channel_id: str) -> ChannelInfo | None:
        return await worker.answer_or_none(self._reading.channels.channel(channel_id))

    async def _look(self, item: ClaimedRequest, known: Facts) -> RequestFacts:
        """Looks up everything else that is needed before context is fetched."""
        async with self._recording:
            return await self._store.transact(partial(self._find, item, known))

    async def _find(self, item: ClaimedRequest, known: Facts, tx: RequestTransaction) -> RequestFacts:
        request, thread = item.request, item.thread
        found = RequestFacts(known, await tx.preferences.get(request.person_id), tx.now)
        if request.kind not in _GATHERED or may(request.person, request.kind, known) != Allowed():
            return found
        where = self._route(thread, request, found.preference)
        project = project_of(where) if request.kind is RequestKind.START else thread.project
        if request.kind is RequestKind.START and not project:
            return replace(found, route=where)
        part = part_of_thread(thread, request, self._mode(thread), await tx.requests.on_their_way(thread.id))
        kept = await tx.request_parts.fetched(request.id)
        return replace(found, route=where, project=project, part=part, kept=kept)

    def _route(self, thread: Thread, request: Request, preference: Preference) -> Route | None:
        if request.kind is not RequestKind.START:
            return None
        return route(
            self._projects,
            said=thread.options.project_said,
            of_thread=thread.project,
            channel_id=thread.channel_id,
            prompt=thread.prompt,
            of_person=preference.project,
        )

    def _in_its_mode(self, thread: Thread, where: Route | None) -> Thread:
        """Returns the thread of a job whose project is known now with the mode in which it starts."""
        if not isinstance(where, Routed):
            return thread
        mode = thread.options.agent.mode or self._projects.mode(thread.channel_id, where.project)
        return replace(thread, options=replace(thread.options, mode=mode))

    def _mode(self, thread: Thread) -> ReplyMode:
        return mode_of(thread, self._projects.replies(thread.channel_id))

    # -- outcomes -------------------------------------------------------------------------------------------------

    async def _postpone(self, item: ClaimedRequest, error: ChatError, tx: RequestTransaction) -> None:
        """Tries failed look-ups again later; gives up after too many attempts."""
        if (held := await self._held(tx, item)) is None:
            return
        thread, request = held
        if request.attempts >= worker.MAX_TRIES and error.is_failure:
            told = answered(request, ActionAnswer.SLACK_AWAY, _words_of(request))
            await tx.notices.add(thread.id, replace(told, key=RequestRefused.key(request)))
            await _end(tx, thread, request)
        else:
            await _try_later(tx, request, error, self._random())

    async def _prepare_again(self, item: ClaimedRequest, tx: RequestTransaction) -> None:
        """Has a request prepared as its message is now, unless that has withdrawn it."""
        if await self._held(tx, item) is not None:
            await tx.requests.settle(item.request.id, RequestState.RECEIVED, tried=False)

    async def _keep_parts(self, item: ClaimedRequest, fetch: Fetch, tx: RequestTransaction) -> None:
        """Stores the fetched parts of a request's context, and has the rest fetched later."""
        if (held := await self._held(tx, item)) is None:
            return
        request, parts = held[1], fetch.parts
        if fetch.failure is None:  # the others have not been tried yet
            await tx.requests.prepared(replace(request, state=RequestState.RECEIVED))
        else:
            await _try_later(tx, request, fetch.failure, self._random())
            since = failing_since(parts.failing_since, tx.now, limited=not fetch.failure.is_failure)
            parts = replace(parts, failing_since=since)
        await tx.request_parts.keep_fetched(request.id, parts)

    async def _held(self, tx: RequestTransaction, item: ClaimedRequest) -> tuple[Thread, Request] | None:
        """Returns the thread and the request as they are now; None if the claim is lost, or there is nothing to
        prepare.
        """
        in_order = sorted({item.thread.id, item.thread.follows} - {""})
        locked = {thread_id: await tx.threads.get(thread_id) for thread_id in in_order}
        thread = locked[item.thread.id]
        request = await tx.requests.claimed(item.request, self._owner, RequestState.PREPARING)
        return None if thread is None or request is None else (thread, request)

    async def _conclude(self, item: ClaimedRequest, found: RequestFacts, tx: RequestTransaction) -> None:
        if (held := await self._held(tx, item)) is None:
            return
        thread, request = held
        where = self._route(thread, request, found.preference)
        thread = self._in_its_mode(thread, where)
        free_at, limit = None, self._rules.hourly_limit
        if request.kind in LIMITED:
            free_at = await tx.limits.free_at(request.person_id, request.id, limit=limit, within=HOUR)
        has_modes = self._projects.abilities(project_of(where) or thread.project).modes
        known = replace(found.known, thread=thread, writer_id=await writer_of(tx, request), free_at=free_at)
        known = replace(known, lacks_modes=not (has_modes or isinstance(where, Ambiguous)))
        verdict = may(request.person, request.kind, known)
        match verdict:
            case Refused():
                await _refuse(tx, thread, request, verdict, limit)
            case MustConfirm():  # the answer is a separate request
                await tx.notices.add(thread.id, NewNotice(NoticeKey(request.source_key), StopAsked(request.person_id)))
                await tx.requests.prepared(replace(request, state=RequestState.WITHDRAWN))
            case Allowed():
                await self._take_effect(tx, item, found, thread, request, where=where)
            case _:
                assert_never(verdict)

    async def _take_effect(
        self,
        tx: RequestTransaction,
        item: ClaimedRequest,
        found: RequestFacts,
        thread: Thread,
        request: Request,
        *,
        where: Route | None,
    ) -> None:
        if request.way_in is WayIn.WORD and await tx.requests.has_pending_start(thread.id):
            # The job that it is about is unknown until then.
            await tx.requests.settle(request.id, RequestState.RECEIVED, due_in=AWAITING_START, afresh=True)
            return
        terms = following_jobs.ActionTerms(self._projects, self._polling, self._random())
        match request.kind:
            case RequestKind.START | RequestKind.FOLLOW_UP:
                edited = item.request.attachments != request.attachments
                changed = edited or project_of(where) != project_of(found.route)
                if changed or await self._reads_on(tx, thread, request, found):
                    await tx.requests.settle(request.id, RequestState.RECEIVED)  # the results no longer apply
                elif request.kind is RequestKind.FOLLOW_UP:
                    await self._ready_to_steer(tx, thread, request, found)
                    await following_jobs.note_steering(tx, thread, request.person_id, terms)
                elif where is not None:
                    await _ready_to_start(tx, thread, request, found, terms, where=where)
            case RequestKind.STOP:
                await stop_job(tx, thread, request)
            case RequestKind.DISCARD:
                await tx.requests.prepared(replace(request, state=RequestState.WAITING))
                await tx.audit.add(audited(AuditAction.DISCARDED, request, thread))
            case RequestKind.ACCEPT_PROPOSAL:
                due_in = max(request.recorded_at + SETTLING - tx.now, 0.0)
                await tx.requests.prepared(replace(request, state=RequestState.WAITING), due_in=due_in)
                await tx.limits.count(request.person_id, request.id)
                await tx.audit.add(audited(AuditAction.PLAN_ACCEPTED, request, thread))
                await following_jobs.note_steering(tx, thread, request.person_id, terms)
            case _:
                await carry_out(tx, thread, request, terms)

    async def _reads_on(self, tx: RequestTransaction, thread: Thread, request: Request, found: RequestFacts) -> bool:
        """Returns whether another part of the thread belongs to a request by now."""
        if found.kept is None:
            return False
        on_their_way = await tx.requests.on_their_way(thread.id)
        return found.part != part_of_thread(thread, request, self._mode(thread), on_their_way)

    async def _ready_to_steer(
        self, tx: RequestTransaction, thread: Thread, request: Request, found: RequestFacts
    ) -> None:
        """Releases a follow-up: it is sent when its turn comes."""
        await _release(tx, thread, request, found, due_in=max(request.recorded_at + self._settling - tx.now, 0.0))
        if thread.card_ts is not None and await _may_wait_for_long(tx, thread):
            await tx.notices.add(thread.id, CARD_CHANGED)  # it counts waiting follow-ups


async def _release(
    tx: RequestTransaction, thread: Thread, request: Request, found: RequestFacts, *, due_in: float = 0.0
) -> None:
    """Releases a start or follow-up, with the part of the Slack thread that counts as read once it is accepted: for a
    start, everything.
    """
    gathered, part, starts = found.gathered, found.part, request.kind is RequestKind.START
    context = gathered.context
    if context is not None and starts and not gathered.thread_unread:
        context = replace(context, read_until=request.written_at)
    elif context is not None and part is not None and not gathered.thread_unread:
        context = replace(context, read_after=part.after_ts, read_until=part.before_ts)
    await tx.requests.prepared(replace(request, state=RequestState.WAITING, context=context), due_in=due_in)
    await tx.request_parts.to_upload(request.id, gathered.to_upload)
    if await tx.limits.count(request.person_id, request.id):
        await tx.audit.add(audited(AuditAction.ASKED if starts else AuditAction.STEERED, request, thread))
    if gathered.told is not None:
        await tx.notices.add(thread.id, NewNotice(ContextCut.key(request), gathered.told))


async def _ready_to_start(
    tx: RequestTransaction,
    thread: Thread,
    request: Request,
    found: RequestFacts,
    terms: following_jobs.ActionTerms,
    *,
    where: Route,
) -> None:
    """Releases a job, which is sent once its card is posted, or makes it wait for its person to choose the project. The
    card shows this, and asks again if the question, which only that person sees, is lost.
    """
    placed = await following_jobs.take_place(tx, thread, request, terms)
    if placed is None:
        return
    if isinstance(where, Routed):
        options = placed.options
        chosen = options.project_reason is ProjectReason.CHOSEN or options.way_in is WayIn.SWITCH
        reason = ProjectReason.CHOSEN if chosen else where.reason
        quiet = options.quiet or (found.preference.quiet and options.way_in not in _QUIET_AS_SAID)
        options = replace(options, project_reason=reason, quiet=quiet)
        await tx.threads.set_project(placed.id, where.project, options)
        await _release(tx, replace(placed, project=where.project), request, found)
    else:
        await following_jobs.ask_for_project(tx, placed, request, where.candidates, said=where.said)
        await tx.requests.prepared(replace(request, state=RequestState.AWAITING_PERSON))
    await tx.notices.add(placed.id, CARD_CHANGED)


async def _refuse(tx: RequestTransaction, thread: Thread, request: Request, refused: Refused, limit: int) -> None:
    """Ends a request whose person may not make it, and tells them privately."""
    free_at = None if refused.free_at is None else math.ceil(refused.free_at)
    asked_on = surface_of(request.source_key)
    message = RequestRefused(
        request.person_id, refused.reason, request.kind, _words_of(request), limit, free_at, asked_on=asked_on
    )
    await tx.notices.add(thread.id, NewNotice(RequestRefused.key(request), message))
    await tx.audit.add(audited(AuditAction.REFUSED, request, thread, reason=refused.reason.value))
    await _end(tx, thread, request)


async def _try_later(tx: RequestTransaction, request: Request, failure: ChatError, jitter: float) -> None:
    due_in, tried = worker.retry_delay(request.attempts, failure, jitter=jitter), failure.is_failure
    await tx.requests.settle(request.id, RequestState.RECEIVED, problem=str(failure), due_in=due_in, tried=tried)


def _words_of(request: Request) -> str:
    """Returns the beginning of a person's text; empty for a button."""
    return beginning(request.text, MAX_QUOTED) if request.kind in _GATHERED else ""


async def _end(tx: RequestTransaction, thread: Thread, request: Request) -> None:
    if request.kind is RequestKind.START:
        await following_jobs.keep_followed(tx, thread)
        await following_jobs.end_start(tx, thread, request, Problem.REJECTED, RejectionReason.NOT_PERMITTED)
        return
    await tx.requests.prepared(replace(request, state=RequestState.REJECTED, problem=RejectionReason.NOT_PERMITTED))
    if request.kind is RequestKind.FOLLOW_UP:
        await tx.notices.add(thread.id, reaction_notice(request, None))


async def _may_wait_for_long(tx: RequestTransaction, thread: Thread) -> bool:
    """Returns whether a follow-up may wait longer than a moment: another one waits before it, the job has not begun, or
    there is a problem.
    """
    if thread.state.job is None or thread.state.failure.problem is not None:
        return True
    return await tx.requests.several_wait(thread.id)


def project_of(route: Route | None) -> str:
    """Returns the project of a request; empty while it is unknown."""
    return route.project if isinstance(route, Routed) else ""
