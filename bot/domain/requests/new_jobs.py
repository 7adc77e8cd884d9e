"""Requests other than replies: a follow-up from a form, and a new job, by any way in; and whether a new job may replace
another, and which of the other's requests move to it. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from bot.domain.people.home import can_be_retried
from bot.domain.requests.request import (
    NO_ATTACHMENTS,
    Arrival,
    Attachments,
    MessageVersion,
    Person,
    Request,
    RequestContext,
    RequestKind,
    WayIn,
)
from bot.domain.threads.thread import Thread, ThreadOrigin

_WRITTEN_IN_THE_THREAD = frozenset({WayIn.REPLY, WayIn.MENTION, WayIn.WORD})


@dataclass(frozen=True)
class NewJob:
    """A request for a job. In `prompt` mentions are marked (bot.domain.context.message_text).

    Attributes:
        person: The requester.
        channel_id: The channel for the card.
        prompt: The task.
        source_key: Consists of Slack's own ids, so that a redelivery is recognized.
        way_in: How it was requested.
        project_said: The project that the request names; empty: none.
        quiet: Whether the end mentions nobody; None: as the person and the channel prefer.
        thread_ts: The first message of the thread for the job; empty: its card starts one.
        message_ts: The message that gets the reactions; empty: none.
        edited_at: The `ts` of the edit by which the message came to ask for a job; empty: it did from the start.
        origin: What the thread began with.
        attachments: What the message contains besides text.
        context: The context, if the person has already seen and edited it.
        context_chosen: Whether the person chose the context, so that none is gathered, even if it is empty.
        follows: The thread of the job to replace; empty: it follows the newest job of its Slack thread.
        read_until: The `ts` before which the thread is included, if no message requests the job; empty: all of it.
        may_be_reply: Whether it could also be a follow-up; if a job is running, the person is asked.
        arrival: Whether it arrived in time.
    """

    person: Person
    channel_id: str
    prompt: str
    source_key: str
    way_in: WayIn
    project_said: str = ""
    quiet: bool | None = None
    thread_ts: str = ""
    message_ts: str = ""
    edited_at: str = ""
    origin: ThreadOrigin = ThreadOrigin.CARD
    attachments: Attachments = NO_ATTACHMENTS
    context: RequestContext | None = None
    context_chosen: bool = False
    read_until: str = ""
    follows: str = ""
    may_be_reply: bool = False
    arrival: Arrival = Arrival.LIVE

    @property
    def version(self) -> MessageVersion | None:
        """The version of the message that requests the job; None if there is no message."""
        if not self.message_ts:
            return None
        return MessageVersion(self.channel_id, self.message_ts, self.person.id, self.edited_at)


@dataclass(frozen=True)
class Written:
    """A follow-up that was typed into a modal, or is the text of a button.

    `source_key` consists of Slack's own ids, so that it counts once. Each person can press a button once.
    """

    person: Person
    thread_id: str
    text: str
    source_key: str
    way_in: WayIn = WayIn.MODAL


def may_replace(followed: Thread, start: Request) -> bool:
    """Returns whether a retry or switch may still replace a job: no other job has, and it is not running again."""
    if followed.state.replaced_by:
        return followed.state.replaced_by == start.thread_id
    return start.way_in is not WayIn.RETRY or can_be_retried(followed)


_ABOUT_HELD_REPLIES = frozenset({RequestKind.SEND_HELD, RequestKind.SEND_ALL_HELD, RequestKind.DISCARD_HELD})


def moving_along(unsent: Sequence[Request], start: Request) -> list[Request]:
    """Returns which unsent requests about a job move to the job that follows it.

    All follow-ups move to a job that replaces theirs. To another job in the same thread, follow-ups and words for
    Pagehand move if they were written after it was requested. A press about a held reply moves with the reply; other
    presses of buttons stay with the button's job.
    """
    moving = {request.id for request in unsent if _moves_along(request, start)}
    moving |= {request.id for request in unsent if request.kind in _ABOUT_HELD_REPLIES and request.text in moving}
    return [request for request in unsent if request.id in moving]


def _moves_along(request: Request, start: Request) -> bool:
    later = request.way_in in _WRITTEN_IN_THE_THREAD and request.written_at > start.asked_at
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
