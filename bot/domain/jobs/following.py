"""Decides whether a job may replace another, and which of the other's requests move to it. Pure."""

from typing import assert_never

from bot.domain.people.home import can_be_retried
from bot.domain.requests.request import Request, RequestKind, WayIn
from bot.domain.threads.thread import Thread

_WRITTEN_IN_THE_THREAD = frozenset({WayIn.REPLY, WayIn.MENTION, WayIn.WORD})


def may_replace(followed: Thread, start: Request) -> bool:
    """Returns whether a retry or switch may still replace a job: no other job has, and it is not running again."""
    if followed.state.replaced_by:
        return followed.state.replaced_by == start.thread_id
    return start.way_in is not WayIn.RETRY or can_be_retried(followed)


def goes_along(request: Request, start: Request) -> bool:
    """Returns whether an unsent request about a job moves to the job that follows it.

    All follow-ups move to a job that replaces theirs. To another job in the same thread, follow-ups and words for
    Pagehand move if they were written after it was requested. Presses of buttons stay with the button's job.
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
    """Returns when a job was requested, as a `ts`: that of its message, or the time of the press."""
    return start.written_at or f"{start.recorded_at:.6f}"
