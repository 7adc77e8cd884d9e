"""Starts a job."""

from dataclasses import replace
from uuid import NAMESPACE_URL, uuid5

from bot.domain.commands.options import NO_OPTIONS, Options, WrongOption, split_options
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import Arrival, HeldBecause, Person, Reply, Request, RequestKind, RequestState, WayIn
from bot.domain.threads.reply_rules import in_direct_message, never_began
from bot.domain.threads.thread import Thread, ThreadOptions, ThreadOrigin, ThreadState
from bot.notices.notice import CARD_CHANGED, NewNotice, Reaction, ReactionChanged
from bot.service.held import ask
from bot.store.store import RecordingTransaction
from bot.store.threads import Threads

_FROM_WITHIN_THE_THREAD = frozenset({WayIn.MODAL, WayIn.SHORTCUT, WayIn.REPLY, WayIn.RETRY, WayIn.SWITCH})
"""Requests made in one of these ways are made in view of the thread, and mean another job even if there is one."""
_RACES = 3
"""How often a job may lose its place in a Slack thread to one that is recorded at the same time."""


async def record_start(tx: RecordingTransaction, asked: NewJob) -> bool:
    """Records a job to start. False, with nothing recorded, if it was recorded before, or if the Slack thread has a job
    and another one was not requested explicitly.
    """
    for _ in range(_RACES):
        before = await newest_in(tx.threads, asked.channel_id, asked.thread_ts) if asked.thread_ts else None
        if before is not None and asked.way_in not in _FROM_WITHIN_THE_THREAD and not _begins_the_thread(asked):
            return False
        if await tx.threads.get(request_id(asked.source_key)):
            return False
        if await _record(tx, asked, before):
            return True
    return False


def _begins_the_thread(asked: NewJob) -> bool:
    """Returns whether the message is the first of its Slack thread; a reply to it may have been recorded before."""
    return bool(asked.message_ts) and asked.message_ts == asked.thread_ts


async def _record(tx: RecordingTransaction, asked: NewJob, before: Thread | None) -> bool:
    options = ThreadOptions(
        asked.way_in,
        quiet=bool(asked.quiet),
        project_said=asked.project_said,
        context_chosen=asked.context_chosen or asked.way_in is WayIn.SHORTCUT,
    )
    late = asked.arrival is Arrival.LATE
    # Replies are for the thread's living job, or for nobody, until this one has passed its checks.
    joins_now = not late and (before is None or never_began(before))
    thread = Thread(
        id=request_id(asked.source_key),
        team_id=asked.person.team_id,
        channel_id=asked.channel_id,
        requester_id=asked.person.id,
        prompt=asked.prompt,
        project=before.project if before else "",
        created_at=tx.now,
        ts=(asked.thread_ts or None) if joins_now else None,
        number=before.number + 1 if before and joins_now else 0,
        root_ts=asked.thread_ts,
        follows=asked.follows or (before.id if before else ""),
        origin=before.origin if before and not _begins_the_thread(asked) else asked.origin,
        options=options,
        state=ThreadState(read_until=asked.read_until),
    )
    if not await tx.threads.add(thread):
        return False
    if before and before.origin is not thread.origin and not late:
        # An earlier reply counted as one in other people's thread; from now on, everyone's replies count.
        await tx.threads.set_origin(before.id, thread.origin)
        if before.card_ts is not None:
            await tx.notices.add(before.id, CARD_CHANGED)
    start = new_request(thread, RequestKind.START, asked.source_key, asked.person, asked.prompt, way_in=asked.way_in)
    start = replace(start, written_at=asked.message_ts, edited_at=asked.edited_at)
    start = replace(start, attachments=asked.attachments, context=asked.context)
    if late:
        start = replace(start, state=RequestState.AWAITING_PERSON, problem=HeldBecause.LATE)
    added = await tx.requests.add(start)
    if late and added:
        await ask(tx, thread.id, start)
    return added


async def newest_in(threads: Threads, channel_id: str, ts: str) -> Thread | None:
    """Returns the job that replies in a Slack thread are for, locked: the newest, or the one before it if that is alive
    and the newest was withdrawn before it began.
    """
    thread = newest = await threads.find_newest(channel_id, ts)
    while thread is not None and (followed := await _not_replaced_by(threads, thread)) is not None:
        thread = followed
    return newest if thread is None or never_began(thread) else thread


async def _not_replaced_by(threads: Threads, thread: Thread) -> Thread | None:
    if not thread.follows or not never_began(thread):
        return None
    followed = await threads.get(thread.follows)
    return None if followed is None or followed.state.replaced_by == thread.id else followed


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


_SENT_SOON = 5.0
"""Seconds within which an unhindered reply is sent, by default: others are merged with it for three of them."""


def reaction_notice(request: Request, reaction: Reaction | None) -> NewNotice:
    """The notice that sets or removes a reply's reaction. A reply that is sent soon goes straight to the reaction for
    "sent": one call to Slack instead of three.
    """
    due_in = _SENT_SOON if reaction is Reaction.RECORDED else 0.0
    return NewNotice(ReactionChanged.key(request), ReactionChanged(request.written_at, reaction), due_in)
