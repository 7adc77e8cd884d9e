"""Follow-ups on their way: which messages of the Slack thread each includes, and which are sent as one message. Pure.

In a thread where only mentions are for the agent, each mention includes what was said since the last one. A request on
its way counts as sent for those after it; one that did not arrive does not count. What one person writes in quick
succession is sent together.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from bot.domain.context import ThreadPart
from bot.domain.projects import ReplyMode
from bot.domain.requests.request import Request, RequestContext, RequestKind, RequestState
from bot.domain.threads.thread import Thread, ThreadOrigin, ThreadState
from bot.jobapi.models import Mode


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


def read_until(request: Request) -> str:
    """Returns the `ts` up to which a request includes the thread; empty: it does not include it."""
    return request.context.read_until if request.context is not None else ""


def continues(request: Request, until: str) -> bool:
    """Returns whether a request's part of the thread starts where the last one ended. If not, it is read again."""
    return request.context is None or not request.context.read_until or request.context.read_after == until


def noted(state: ThreadState, request: Request) -> ThreadState:
    """Returns the state after a request was accepted, with how far the thread was sent, and whether it edits now."""
    until = read_until(request)
    if request.mode is Mode.EDIT:
        state = replace(state, edits_now=True)
    return replace(state, read_until=until) if until > state.read_until else state


MOST_MERGED = 20
MOST_CHARACTERS = 20_000
"""Maximum length of a merged message. A longer follow-up is sent separately."""


def merged_with(
    first: Request, following: Sequence[Request], stopped_at: Sequence[float], seconds: float
) -> tuple[Request, ...]:
    """Returns the follow-ups that are sent together with the first.

    Args:
        first: The follow-up that is due.
        following: Those after it, in the order in which they were written.
        stopped_at: When stops of the job were recorded, in seconds since the epoch.
        seconds: Maximum time between two merged follow-ups; 0: each is sent separately.
    """
    taken: list[Request] = []
    characters, before, read = len(first.text), first, read_until(first)
    for request in following[: MOST_MERGED - 1]:
        characters += len(request.text)
        if characters > MOST_CHARACTERS or not _belongs_to(before, request, stopped_at, seconds):
            break
        if read and not continues(request, read):
            break  # its part of the thread is read again once the others have arrived
        taken.append(request)
        before, read = request, read_until(request) or read
    return tuple(taken)


def as_one(first: Request, others: Sequence[Request]) -> Request:
    """Returns the first request with the texts and contexts of all, in the order in which they were written."""
    if not others:
        return first
    requests = [first, *others]
    contexts = [request.context for request in requests if request.context is not None]
    return replace(
        first, text="\n\n".join(request.text for request in requests), context=_joined(contexts) if contexts else None
    )


def _belongs_to(before: Request, request: Request, stopped_at: Sequence[float], seconds: float) -> bool:
    waits = request.state is RequestState.WAITING and not request.uncertain and not request.merged_into
    stopped_between = any(before.recorded_at <= at <= request.recorded_at for at in stopped_at)
    return (
        waits
        and seconds > 0
        and request.person_id == before.person_id
        and (request.mode is Mode.EDIT) == (before.mode is Mode.EDIT)
        and abs(_written(request) - _written(before)) <= seconds
        and not stopped_between
    )


def _written(request: Request) -> float:
    """Returns when it was written, in seconds since the epoch, which is what Slack's `ts` means."""
    try:
        return float(request.written_at)
    except ValueError:
        return request.recorded_at


def _joined(contexts: Sequence[RequestContext]) -> RequestContext:
    files = {file.id: file for context in contexts for file in context.files}
    text = "\n\n".join(context.text for context in contexts if context.text)
    read = [context for context in contexts if context.read_until]
    after, until = (read[0].read_after, read[-1].read_until) if read else ("", "")
    files_of = next((context.files_of for context in contexts if context.files_of), "")
    return RequestContext(text, tuple(files.values()), read_after=after, read_until=until, files_of=files_of)
