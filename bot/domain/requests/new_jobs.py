"""Requests other than replies: a follow-up from a form, and a new job, by any way in; and whether a new job may replace
another, and which of the other's requests move to it. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import NAMESPACE_URL, uuid5

from bot.domain.commands import NO_OPTIONS, AgentOptions, Options, WrongOption, split_options
from bot.domain.requests.request import (
    NO_ATTACHMENTS,
    Arrival,
    Attachments,
    MessageVersion,
    Person,
    Reply,
    Request,
    RequestContext,
    RequestKind,
    WayIn,
)
from bot.domain.threads.reply_rules import in_direct_message
from bot.domain.threads.thread import Thread, ThreadOrigin, can_be_retried
from bot.jobapi.models import Mode

_WRITTEN_IN_THE_THREAD = frozenset({WayIn.REPLY, WayIn.MENTION, WayIn.WORD})


@dataclass(frozen=True)
class NewJob:
    """A request for a job. In `prompt` mentions are marked (bot.domain.messages).

    Attributes:
        person: The requester.
        channel_id: The channel for the card.
        prompt: The task.
        source_key: Consists of Slack's own ids, so that a redelivery is recognized.
        way_in: How it was requested.
        project_said: The project that the request names; empty: none.
        quiet: Whether the end mentions nobody; None: as the person and the channel prefer.
        agent: How the agent is to work, as far as the request says so.
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
    agent: AgentOptions = field(default_factory=AgentOptions)
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


MAKE_IT_A_CHANGE = "Make it a change: change the pages as your last answer says."
"""The words of the button under an answer."""


@dataclass(frozen=True)
class Written:
    """A follow-up that was typed into a modal, or is the text of a button.

    `source_key` consists of Slack's own ids, so that it counts once. Each person can press a button once. `mode` is the
    one that it turns the job to; None: it stays as it is.
    """

    person: Person
    thread_id: str
    text: str
    source_key: str
    way_in: WayIn = WayIn.MODAL
    mode: Mode | None = None


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
    if request.kind is RequestKind.FOLLOW_UP:
        return later or start.way_in in {WayIn.RETRY, WayIn.SWITCH}
    return later and request.kind not in {RequestKind.START, RequestKind.CHOOSE_PROJECT}


def once_more(thread: Thread, start: Request, action: Request) -> NewJob:
    """Returns the same job as a new one, for the person who wants it. It is answered when it has passed its checks."""
    return NewJob(
        person=replace(action.person, team_id=thread.team_id),
        channel_id=thread.channel_id,
        prompt=thread.prompt,
        source_key=f"retry/{action.source_key}",
        way_in=WayIn.RETRY,
        project_said=thread.options.project_said,
        quiet=thread.options.quiet,
        agent=replace(thread.options.agent, mode=thread.options.mode),
        thread_ts=thread.ts or thread.root_ts,
        origin=thread.origin,
        attachments=start.attachments,
        context=start.context,
        context_chosen=thread.options.context_chosen,
        read_until=start.written_at or thread.state.read_until,
        follows=thread.id,
    )


def job_of_reply(reply: Reply, thread: Thread | None) -> NewJob:
    """Returns the job that a message asks for: a mention where there is no job, a direct message, or `!new` in a job's
    thread. Options before the prompt count; anything that is not a proper option is part of the prompt.
    """
    options, prompt = asked_in(reply)
    begins = reply.thread_ts in {"", reply.message_ts}
    if thread is not None:
        way_in, origin = WayIn.REPLY, thread.origin
    else:
        way_in = WayIn.DIRECT_MESSAGE if in_direct_message(reply) else WayIn.MENTION
        origin = ThreadOrigin.REQUEST if begins else ThreadOrigin.CONVERSATION
    return NewJob(
        person=reply.person,
        channel_id=reply.channel_id,
        prompt=prompt,
        source_key=source_key_of(reply),
        way_in=way_in,
        project_said=options.project,
        quiet=options.quiet or None,
        agent=options.agent,
        thread_ts=reply.thread_ts or reply.message_ts,
        message_ts=reply.message_ts,
        edited_at=reply.edited_at,
        origin=origin,
        attachments=reply.attachments,
        arrival=reply.arrival,
        may_be_reply=way_in is WayIn.DIRECT_MESSAGE and begins and reply.word is None and options == NO_OPTIONS,
    )


def asked_in(reply: Reply) -> tuple[Options, str]:
    """Splits what a message asks for into options and prompt."""
    if reply.options is not None:
        return reply.options, reply.text
    split = split_options(reply.text)
    return (NO_OPTIONS, reply.text) if isinstance(split, WrongOption) else split


def new_request(
    thread: Thread, kind: RequestKind, source_key: str, person: Person, text: str, *, way_in: WayIn
) -> Request:
    """Returns a request in the state RECEIVED."""
    return Request(
        id=request_id(source_key),
        thread_id=thread.id,
        kind=kind,
        source_key=source_key,
        person_id=person.id,
        text=text,
        written_at="",
        recorded_at=thread.created_at,
        team_id=person.team_id,
        way_in=way_in,
    )


def source_key_of(reply: Reply) -> str:
    """Returns the source key of a message: the same for all its deliveries and versions."""
    return source_key(reply.channel_id, reply.message_ts)


def source_key(channel_id: str, message_ts: str) -> str:
    """Returns the same from the message's channel and `ts`."""
    return f"message/{channel_id}/{message_ts}"


def is_of_message(request: Request, channel_id: str) -> bool:
    """Returns whether a request was made from a message of a channel, or from an edit of it."""
    return request.reply_id == request_id(source_key(channel_id, request.written_at))


def request_id(source_key: str) -> str:
    """Returns a request's id: the same delivery always has the same id, so that a second one finds the first."""
    return uuid5(NAMESPACE_URL, f"pagehand:{source_key}").hex
