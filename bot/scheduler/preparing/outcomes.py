"""Handles a request once the look-ups are done. Each function runs inside one transaction, with the thread
locked and the request held.
"""

import math
from dataclasses import dataclass, replace

from bot.domain.context.fetched_parts import PATIENCE, ThreadPart
from bot.domain.context.message_text import beginning
from bot.domain.jobs.job import Problem
from bot.domain.people.members import Preference
from bot.domain.people.permissions import Refused
from bot.domain.projects import Ambiguous, ProjectReason, ReplyMode, Route, Routed, UnknownProject
from bot.domain.requests.audit import AuditAction, audited
from bot.domain.requests.edits import MAX_QUOTED
from bot.domain.requests.request import (
    RejectionReason,
    Request,
    RequestContext,
    RequestKind,
    RequestState,
    WayIn,
    surface_of,
)
from bot.domain.threads.reply_rules import mode_of
from bot.domain.threads.thread import Thread
from bot.errors import ChatError, ChatRateLimited
from bot.notices.answers import ActionAnswer, ActionAnswered
from bot.notices.notice import CARD_CHANGED, NewNotice, NoticeKey
from bot.notices.questions import RequestRefused, StopAsked
from bot.notices.requests import ContextCut
from bot.scheduler.preparing.context import Gathered
from bot.scheduler.preparing.parts import Fetch
from bot.scheduler.preparing.slack_reading import MAX_TRIES, retry_delay
from bot.service.action_terms import ActionTerms, note_steering
from bot.service.end_start import StartEnding, end_start, keep_followed
from bot.service.following_jobs import ProjectQuestion, ask_for_project, take_place
from bot.service.start import reaction_notice
from bot.store.store import RequestTransaction

_QUIET_AS_SAID = frozenset({WayIn.MODAL, WayIn.SHORTCUT, WayIn.RETRY, WayIn.SWITCH})
"""Ways to ask that include how the person wants to be notified, so their preference does not apply."""


@dataclass(frozen=True)
class PreparedRequest:
    """A request that can be sent, with its context, the part of the Slack thread in it, and the channel's mode of
    replies.
    """

    request: Request
    thread: Thread
    gathered: Gathered
    terms: ActionTerms
    part: ThreadPart | None = None

    @property
    def mode(self) -> ReplyMode:
        """Returns whose replies count in the thread."""
        return mode_of(self.thread, self.terms.projects.channel(self.thread.channel_id).replies)


async def refuse(
    tx: RequestTransaction, thread: Thread, request: Request, refused: Refused, *, hourly_limit: int
) -> None:
    """Ends a request whose person may not make it, and tells them privately."""
    text = _words_of(request)
    free_at = None if refused.free_at is None else math.ceil(refused.free_at)
    message = RequestRefused(request.person_id, refused.reason, request.kind, text, hourly_limit, free_at)
    message = replace(message, asked_on=surface_of(request.source_key))
    await tx.notices.add(thread.id, NewNotice(RequestRefused.key(request), message))
    await tx.audit.add(audited(AuditAction.REFUSED, request, thread, reason=refused.reason.value))
    await _end(tx, thread, request)


async def ask_whether_meant(tx: RequestTransaction, thread: Thread, stop: Request) -> None:
    """Asks somebody privately whether they mean a stop; the answer is a separate request."""
    question = NewNotice(NoticeKey(stop.source_key), StopAsked(stop.person_id))
    await tx.notices.add(thread.id, question)
    await tx.requests.prepared(replace(stop, state=RequestState.WITHDRAWN))


async def postpone(
    tx: RequestTransaction, thread: Thread, request: Request, failure: ChatError, *, jitter: float
) -> None:
    """Tries failed look-ups again later; gives up after too many attempts."""
    if request.attempts >= MAX_TRIES and not isinstance(failure, ChatRateLimited):
        await _give_up(tx, thread, request)
    else:
        await _try_later(tx, request, failure, retry_delay(request.attempts, failure, jitter=jitter))


async def _try_later(tx: RequestTransaction, request: Request, failure: ChatError, due_in: float) -> None:
    if isinstance(failure, ChatRateLimited):
        await tx.requests.not_tried(request.id, due_in=due_in, problem=str(failure))
    else:
        await tx.requests.settle(request.id, RequestState.RECEIVED, due_in=due_in, problem=str(failure))


async def _give_up(tx: RequestTransaction, thread: Thread, request: Request) -> None:
    """Ends a request whose look-ups failed for too long, and tells its person privately."""
    asked_on = surface_of(request.source_key)
    message = ActionAnswered(request.person_id, ActionAnswer.SLACK_AWAY, _words_of(request), asked_on=asked_on)
    await tx.notices.add(thread.id, NewNotice(RequestRefused.key(request), message))
    await _end(tx, thread, request)


def _words_of(request: Request) -> str:
    """Returns the beginning of a person's text; empty for a button."""
    wrote = request.kind in {RequestKind.START, RequestKind.FOLLOW_UP}
    return beginning(request.text, MAX_QUOTED) if wrote else ""


async def _end(tx: RequestTransaction, thread: Thread, request: Request) -> None:
    if request.kind is RequestKind.START:
        await keep_followed(tx, thread)
        await end_start(tx, thread, request, StartEnding(Problem.REJECTED, RejectionReason.NOT_PERMITTED))
        return
    await tx.requests.prepared(replace(request, state=RequestState.REJECTED, problem=RejectionReason.NOT_PERMITTED))
    if request.kind is RequestKind.FOLLOW_UP:
        await tx.notices.add(thread.id, reaction_notice(request, None))


async def wait_for_project(tx: RequestTransaction, ready: PreparedRequest, route: Ambiguous | UnknownProject) -> None:
    """Makes a job wait for its person to choose the project. The card shows this, and asks again if the question, which
    only that person sees, is lost.
    """
    request = ready.request
    thread = await take_place(tx, ready.thread, request, ready.terms)
    if thread is None:
        return
    if isinstance(route, UnknownProject):
        question = ProjectQuestion(route.names, route.said)
    else:
        question = ProjectQuestion(route.candidates)
    await ask_for_project(tx, thread, request, question)
    await tx.requests.prepared(replace(request, state=RequestState.AWAITING_PERSON))
    await tx.notices.add(thread.id, CARD_CHANGED)


async def ready_to_start(
    tx: RequestTransaction, ready: PreparedRequest, routed: Routed, preference: Preference
) -> None:
    """Releases a job: it is sent once its card is posted."""
    placed = await take_place(tx, ready.thread, ready.request, ready.terms)
    if placed is None:
        return
    thread, request, options = placed, ready.request, placed.options
    chosen = options.project_reason is ProjectReason.CHOSEN or options.way_in is WayIn.SWITCH
    reason = ProjectReason.CHOSEN if chosen else routed.reason
    quiet = options.quiet or (preference.quiet and options.way_in not in _QUIET_AS_SAID)
    await tx.threads.set_project(thread.id, routed.project, replace(options, project_reason=reason, quiet=quiet))
    thread = replace(thread, project=routed.project)
    waiting = replace(request, state=RequestState.WAITING, context=_context(ready))
    await tx.requests.prepared(waiting)
    await tx.request_parts.to_upload(request.id, ready.gathered.to_upload)
    await tx.notices.add(thread.id, CARD_CHANGED)
    if await tx.limits.count(request.person_id, request.id):
        await tx.audit.add(audited(AuditAction.ASKED, request, thread))
    await _tell_of_cuts(tx, ready)


async def ready_to_steer(tx: RequestTransaction, ready: PreparedRequest, *, settling: float) -> None:
    """Releases a follow-up: it is sent when its turn comes."""
    thread, request = ready.thread, ready.request
    waiting = replace(request, state=RequestState.WAITING, context=_context(ready))
    await tx.requests.prepared(waiting, due_in=max(request.recorded_at + settling - tx.now, 0.0))
    await tx.request_parts.to_upload(request.id, ready.gathered.to_upload)
    if thread.card_ts is not None and await _may_wait_for_long(tx, thread):
        await tx.notices.add(thread.id, CARD_CHANGED)  # it counts waiting follow-ups
    if await tx.limits.count(request.person_id, request.id):
        await tx.audit.add(audited(AuditAction.STEERED, request, thread))
    await _tell_of_cuts(tx, ready)
    # If only participants count, sending one reply makes nobody a participant.
    counts = ready.mode is not ReplyMode.PARTICIPANTS
    await note_steering(tx, thread, request.person_id, ready.terms, counts=counts)


async def _may_wait_for_long(tx: RequestTransaction, thread: Thread) -> bool:
    """Returns whether a follow-up may wait longer than a moment: another one waits before it, the job has not begun, or
    there is a problem.
    """
    if thread.state.job is None or thread.state.failure.problem is not None:
        return True
    return await tx.requests.several_wait(thread.id)


def _context(ready: PreparedRequest) -> RequestContext | None:
    """Returns the context, with the part of the Slack thread that counts as read once the request is accepted: for a
    start, everything.
    """
    context, part = ready.gathered.context, ready.part
    if context is None or ready.gathered.thread_unread:
        return context
    if ready.request.kind is RequestKind.START:
        return replace(context, read_until=ready.request.written_at)
    return context if part is None else replace(context, read_after=part.after_ts, read_until=part.before_ts)


async def keep_parts(tx: RequestTransaction, request: Request, fetch: Fetch, *, jitter: float) -> None:
    """Stores the fetched parts of a request's context, and has the rest fetched later."""
    parts = fetch.parts
    if fetch.failure is None:  # the others have not been tried yet
        await tx.requests.prepared(replace(request, state=RequestState.RECEIVED))
    else:
        delay = retry_delay(request.attempts, fetch.failure, jitter=jitter)
        await _try_later(tx, request, fetch.failure, min(delay, PATIENCE))
        parts = replace(parts, failing_since=tx.now if parts.failing_since is None else parts.failing_since)
    await tx.request_parts.keep_fetched(request.id, parts)


async def _tell_of_cuts(tx: RequestTransaction, ready: PreparedRequest) -> None:
    told = ready.gathered.told_to(ready.request.person_id)
    if told is not None:
        await tx.notices.add(ready.thread.id, NewNotice(ContextCut.key(ready.request), told))


def project_of(route: Route | None) -> str:
    """Returns the project of a request; empty while it is unknown."""
    return route.project if isinstance(route, Routed) else ""
