"""Requests that wait for their person: what is asked about them, and which ones a stop withdraws. Pure."""

from collections.abc import Iterable

from bot.domain.context.message_text import beginning
from bot.domain.people.permissions import is_outsider
from bot.domain.requests.edits import MAX_QUOTED
from bot.domain.requests.request import (
    Arrival,
    HeldBecause,
    RejectionReason,
    Reply,
    Request,
    RequestKind,
    RequestState,
    Surface,
    WayIn,
)
from bot.domain.threads.direct_messages import may_be_job
from bot.domain.threads.thread import Thread
from bot.notices.questions import HeldAsked, HeldQuestion, JobOrReplyAsked, ReplyHeld

_WITHOUT_EFFECT = frozenset(
    {RequestState.RECEIVED, RequestState.PREPARING, RequestState.WITHDRAWN, RequestState.AWAITING_PERSON}
)
"""States of a stop that was not checked yet, or whose person has to confirm it."""


def question_about(request: Request) -> HeldQuestion:
    """Returns the question to the person of a request that waits for them."""
    text = beginning(request.text, MAX_QUOTED)
    if request.held_because is not None:
        return HeldAsked(request.person_id, request.id, text, request.held_because, request.kind)
    if may_be_job(request):
        return JobOrReplyAsked(request.person_id, request.id, text, asked_on=Surface.TOP_LEVEL)
    return ReplyHeld(request.person_id, request.id, text)


def is_late(reply: Reply, thread: Thread) -> bool:
    """Returns whether the writer of a message is asked before anything is done, because it was written while Pagehand
    was away. Somebody of another workspace is refused, so there is nothing to ask.
    """
    return reply.arrival is Arrival.LATE and not is_outsider(reply.person, thread)


def is_withdrawn_by(request: Request, stop: Request) -> bool:
    """Returns whether a request that was certainly not sent is withdrawn by a stop: a follow-up that was written before
    it. A line of a direct message that may be a job of its own is for no job yet.
    """
    if request.kind is not RequestKind.FOLLOW_UP or may_be_job(request) or request.held_because is HeldBecause.STOPPED:
        return False
    return request.asked_at < stop.asked_at


def was_stopped_after(asked_at: str, stops: Iterable[Request], *, recorded_at: float = 0.0) -> bool:
    """Returns whether somebody stopped the job after this time (a `ts`), by a stop that was recorded after
    `recorded_at`. A switch stops the job that it replaces without withdrawing anything.
    """
    return any(
        _took_effect(stop) and stop.asked_at > asked_at and stop.recorded_at > recorded_at
        for stop in stops
        if stop.way_in is not WayIn.SWITCH
    )


def _took_effect(stop: Request) -> bool:
    return stop.state not in _WITHOUT_EFFECT and stop.problem != RejectionReason.NOT_PERMITTED
