"""Up to where a Slack thread has gone to the agent, where only mentions are for it: each carries what was said since
the last. What is on its way counts for those after it; what did not arrive counts for nobody. Pure.
"""

from collections.abc import Iterable
from dataclasses import replace

from bot.domain.context.fetched_parts import ThreadPart
from bot.domain.projects import ReplyMode
from bot.domain.requests.request import Request, RequestKind, RequestState
from bot.domain.threads.thread import Thread, ThreadOrigin, ThreadState

READING = 1.0
"""Seconds before a follow-up is sent that are left for reading the thread."""


def part_of_thread(
    thread: Thread, request: Request, mode: ReplyMode, on_their_way: Iterable[Request]
) -> ThreadPart | None:
    """Returns which of the Slack thread goes along: all that was said before a job in somebody's conversation, unless
    its person chose that; with a follow-up, where only mentions are for the agent, what was said since the last.
    `on_their_way` are the requests of the thread that are prepared and not over.
    """
    thread_ts = thread.ts or thread.root_ts
    if not thread_ts or not (request.written_at or request.kind is RequestKind.START):
        return None
    if request.kind is RequestKind.START:
        chosen = thread.options.context_chosen  # nothing, perhaps
        gathered = thread.origin is ThreadOrigin.CONVERSATION and not chosen
        before_ts = request.written_at or thread.state.read_until
        return ThreadPart(thread_ts, before_ts=before_ts) if gathered else None
    if mode is not ReplyMode.MENTIONS:
        return None
    read = _read_before(request, thread.state, on_their_way)
    return ThreadPart(thread_ts, read, request.written_at) if read < request.written_at else None


def _read_before(request: Request, state: ThreadState, on_their_way: Iterable[Request]) -> str:
    """Returns the `ts` up to which the thread will have been read when a request goes out."""
    earlier = (other for other in on_their_way if other.id != request.id and other.written_at < request.written_at)
    return max(state.read_until, *(read_until(other) for other in earlier), "")


def seconds_for_others(
    request: Request, on_their_way: Iterable[Request], now: float, *, settling: float, most: float
) -> float:
    """Returns how long the thread need not be read for a follow-up, which is sent once `settling` seconds have passed:
    another of its person may follow that goes out with it. None does where one before it is about to go.
    """
    sent_with_another = any(
        other.person_id == request.person_id and other.state is RequestState.WAITING for other in on_their_way
    )
    if request.kind is RequestKind.START or sent_with_another:
        return 0.0
    return min(max(request.recorded_at + settling - READING - now, 0.0), most)


def read_until(request: Request) -> str:
    """Up to where the thread goes along with a request; empty: nothing of it does."""
    return request.context.read_until if request.context is not None else ""


def continues(request: Request, until: str) -> bool:
    """Whether what goes along with a request of the thread begins where it was read to; else it is read again."""
    return request.context is None or not request.context.read_until or request.context.read_after == until


def noted(state: ThreadState, request: Request) -> ThreadState:
    """The state once a request was accepted, with how far that took the thread along."""
    until = read_until(request)
    return replace(state, read_until=until) if until > state.read_until else state
