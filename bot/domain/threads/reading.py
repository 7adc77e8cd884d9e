"""Decides which messages of a Slack thread are sent to the agent as context, where only mentions are for it. Pure.

Each mention includes what was said since the last one. A request on its way counts as sent for those after it; one that
did not arrive does not count.
"""

from collections.abc import Iterable
from dataclasses import replace

from bot.domain.context.fetched_parts import ThreadPart
from bot.domain.projects import ReplyMode
from bot.domain.requests.request import Request, RequestKind, RequestState
from bot.domain.threads.thread import Thread, ThreadOrigin, ThreadState

READING = 1.0
"""Seconds reserved for reading the thread before a follow-up is sent."""


def part_of_thread(
    thread: Thread, request: Request, mode: ReplyMode, on_their_way: Iterable[Request]
) -> ThreadPart | None:
    """Returns which messages of the Slack thread to include.

    For a job in somebody's conversation, all before it, unless the person chose the context. For a follow-up, where
    only mentions are for the agent, those since the last one. `on_their_way` are the thread's prepared, unfinished
    requests.
    """
    thread_ts = thread.ts or thread.root_ts
    if not thread_ts or not (request.written_at or request.kind is RequestKind.START):
        return None
    if request.kind is RequestKind.START:
        chosen = thread.options.context_chosen  # possibly nothing
        gathered = thread.origin is ThreadOrigin.CONVERSATION and not chosen
        before_ts = request.written_at or thread.state.read_until
        return ThreadPart(thread_ts, before_ts=before_ts) if gathered else None
    if mode is not ReplyMode.MENTIONS:
        return None
    read = _read_before(request, thread.state, on_their_way)
    return ThreadPart(thread_ts, read, request.written_at) if read < request.written_at else None


def _read_before(request: Request, state: ThreadState, on_their_way: Iterable[Request]) -> str:
    """Returns the `ts` up to which the thread will have been sent when a request is sent."""
    earlier = (other for other in on_their_way if other.id != request.id and other.written_at < request.written_at)
    return max(state.read_until, *(read_until(other) for other in earlier), "")


def seconds_for_others(
    request: Request, on_their_way: Iterable[Request], now: float, *, settling: float, most: float
) -> float:
    """Returns how long reading the thread for a follow-up can wait.

    The follow-up is sent after `settling` seconds, because another by the same person may be merged with it. If an
    earlier one is about to be sent, none will be.
    """
    sent_with_another = any(
        other.person_id == request.person_id and other.state is RequestState.WAITING for other in on_their_way
    )
    if request.kind is RequestKind.START or sent_with_another:
        return 0.0
    return min(max(request.recorded_at + settling - READING - now, 0.0), most)


def read_until(request: Request) -> str:
    """Returns the `ts` up to which a request includes the thread; empty: it does not include it."""
    return request.context.read_until if request.context is not None else ""


def continues(request: Request, until: str) -> bool:
    """Returns whether a request's part of the thread starts where the last one ended. If not, it is read again."""
    return request.context is None or not request.context.read_until or request.context.read_after == until


def noted(state: ThreadState, request: Request) -> ThreadState:
    """Returns the state after a request was accepted, with how far the thread was sent."""
    until = read_until(request)
    return replace(state, read_until=until) if until > state.read_until else state
