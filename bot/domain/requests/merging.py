"""Decides which follow-ups are sent as one message: those that one person writes in quick succession. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from bot.domain.requests.request import Request, RequestContext, RequestState
from bot.domain.threads.reading import continues, read_until

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
