"""Channels: their introduction, and those whose id Slack changed.

A channel whose id changed is known by its first id: recorded rows stay as they are, and so do the ids of requests,
which are derived from it.

Pagehand introduces itself in a channel that it was invited to: once, as long as the database keeps that. If it could
not, because Slack refused or nobody may use Pagehand there, it tries again at the next invitation. Every notice
belongs to a thread, under whose id it is looked for and deleted. The thread of an introduction stands for the channel:
it has no requester, and never gets a card or a job.
"""

from dataclasses import replace

from bot.domain.requests.new_jobs import NewJob, request_id, source_key
from bot.domain.requests.request import Action, MessageVersion, Reply
from bot.domain.threads.thread import Thread
from bot.notices.answers import Introduction
from bot.notices.notice import NewNotice
from bot.store.store import RecordingTransaction


async def is_newest(tx: RecordingTransaction, version: MessageVersion) -> bool:
    """Records a version of a message. False if a newer one was seen under any of the channel's ids."""
    ids = dict.fromkeys(await tx.channel_ids.all_of(version.channel_id))
    return all([await tx.message_versions.note(replace(version, channel_id=each)) for each in ids])


async def is_first_answer(tx: RecordingTransaction, version: MessageVersion) -> bool:
    """Records that the writer of a message gets a private answer. False if they got it under any id of the channel."""
    ids = dict.fromkeys(await tx.channel_ids.all_of(version.channel_id))
    return all([await tx.message_versions.answer(replace(version, channel_id=each)) for each in ids])


async def known_job(tx: RecordingTransaction, asked: NewJob) -> NewJob:
    """Returns a job to start with its channel's known id."""
    channel_id = await _known_channel(tx, asked.channel_id, asked.message_ts, asked.thread_ts)
    key = source_key(channel_id, asked.message_ts) if asked.message_ts else asked.source_key
    return replace(asked, channel_id=channel_id, source_key=key)


async def known_reply(tx: RecordingTransaction, reply: Reply) -> Reply:
    """Returns a message with its channel's known id."""
    channel_id = await _known_channel(tx, reply.channel_id, reply.message_ts, reply.thread_ts)
    return replace(reply, channel_id=channel_id)


async def known_thread(tx: RecordingTransaction, action: Action) -> Thread | None:
    """Returns the thread that an action names, or whose card it is on; None if there is none, or if it is in another
    channel.
    """
    ids = await tx.channel_ids.all_of(action.channel_id) if action.channel_id else ()
    if not action.card_ts:
        thread = await tx.threads.get(action.thread_id)
        return thread if thread is None or not ids or thread.channel_id in ids else None
    for channel_id in ids:
        if (thread := await tx.threads.find_by_card(channel_id, action.card_ts)) is not None:
            return thread
    return None


async def _known_channel(tx: RecordingTransaction, channel_id: str, message_ts: str, thread_ts: str) -> str:
    """Returns the id under which a channel is recorded. Rows recorded before the change was noticed are found by the id
    that they have.
    """
    ids = await tx.channel_ids.all_of(channel_id)
    if len(ids) > 1:
        for each in ids:
            if message_ts and await tx.requests.get(request_id(source_key(each, message_ts))):
                return each
        for each in ids:
            if thread_ts and await tx.threads.find_newest(each, thread_ts):
                return each
    return ids[0]


async def record_introduction(tx: RecordingTransaction, team_id: str, channel_id: str) -> None:
    """Records that Pagehand owes a channel its introduction, unless given before."""
    known = (await tx.channel_ids.all_of(channel_id))[0]
    channel = Thread(
        id=request_id(f"introduction/{known}"),
        team_id=team_id,
        channel_id=known,
        requester_id="",
        prompt="",
        project="",
        created_at=tx.now,
    )
    if await tx.threads.add(channel):
        await tx.notices.add(channel.id, NewNotice(Introduction.KEY, Introduction()))
    else:
        await tx.notices.try_again(channel.id, Introduction.KEY)
