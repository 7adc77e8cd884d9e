"""Starts a job."""

from dataclasses import replace

from bot.domain.requests.new_jobs import NewJob, new_request, request_id
from bot.domain.requests.request import Arrival, HeldBecause, RequestKind, WayIn
from bot.domain.threads.reply_rules import never_began
from bot.domain.threads.thread import Thread, ThreadOptions, ThreadState
from bot.notices.notice import CARD_CHANGED
from bot.service.follow_up import hold
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
        if await _record(tx, asked, before):
            return True
        if await tx.threads.get(request_id(asked.source_key)):
            return False
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
        agent=asked.agent,
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
        await hold(tx, start, HeldBecause.LATE)
        return True
    return await tx.requests.add(start)


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
