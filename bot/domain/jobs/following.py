"""Decides whether a job may replace another one, and what of that one's requests goes along. Pure."""

from typing import assert_never

from bot.domain.people.home import can_be_retried
from bot.domain.requests.request import Request, RequestKind, WayIn
from bot.domain.threads.thread import Thread

_WRITTEN_IN_THE_THREAD = frozenset({WayIn.REPLY, WayIn.MENTION, WayIn.WORD})


def may_replace(followed: Thread, start: Request) -> bool:
    """Whether a retry, or a switch, may still replace a job: nothing else has, and it is not at work again."""
    if followed.state.replaced_by:
        return followed.state.replaced_by == start.thread_id
    return start.way_in is not WayIn.RETRY or can_be_retried(followed)


def goes_along(request: Request, start: Request) -> bool:
    """Whether a request about a job, which did not go out yet, is for the job that follows.

    What replaces a job takes all follow-ups along. Another job in the same thread has what was written after it was
    asked for, and so have words for Pagehand; what somebody pressed is about the job whose button it was.
    """
    later = request.way_in in _WRITTEN_IN_THE_THREAD and request.written_at > _asked_at(start)
    match request.kind:
        case RequestKind.FOLLOW_UP:
            return later or start.way_in in {WayIn.RETRY, WayIn.SWITCH}
        case RequestKind.START | RequestKind.CHOOSE_PROJECT:
            return False
        case (
            RequestKind.STOP
            | RequestKind.DISCARD
            | RequestKind.RETRY
            | RequestKind.MUTE
            | RequestKind.UNMUTE
            | RequestKind.SHOW_STATUS
            | RequestKind.SHOW_PROMPT
            | RequestKind.SHOW_ANSWER
            | RequestKind.SHOW_JOB_ID
            | RequestKind.SEND_AGAIN
            | RequestKind.SEND_NEW_WORDS
            | RequestKind.SEND_HELD
            | RequestKind.SEND_ALL_HELD
            | RequestKind.DISCARD_HELD
        ):
            return later
        case _:
            assert_never(request.kind)


def _asked_at(start: Request) -> str:
    """When a job was asked for, as a `ts`: that of its message, or the time of the press."""
    return start.written_at or f"{start.recorded_at:.6f}"
