"""Handles notices that were delivered or cannot be: a posted card opens its thread, and what cannot be posted is
sent to the requester instead. The thread is locked.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

from bot.domain.commands import ThreadWord
from bot.domain.delivery import GiveUp
from bot.domain.requests.new_jobs import source_key_of
from bot.domain.requests.request import Reply
from bot.domain.threads.reply_rules import ReplyModes, in_direct_message, may_ask
from bot.domain.threads.thread import Thread
from bot.notices.answers import ActionAnswer, ActionAnswered, CardNotPosted, Introduction, PostNotDelivered
from bot.notices.job import JobStarted, JobStopped
from bot.notices.notice import (
    CardChanged,
    Delivery,
    NewNotice,
    NoticeKey,
    ReactionChanged,
    ToPerson,
    within_thread,
)
from bot.service.following_jobs import call_off, replace_followed, restore_followed
from bot.service.reply import help_for, record_mention, record_reply, thread_of
from bot.store.notice_queue import ClaimedNotice
from bot.store.store import OutboxTransaction, RecordingTransaction

logger = logging.getLogger(__name__)


async def card_posted(tx: OutboxTransaction, thread: Thread, ts: str, modes: ReplyModes) -> None:
    """Records where a thread's card is, ends the job that this one replaces, and handles early replies."""
    await tx.threads.set_card(thread.id, ts)
    carded = replace(thread, ts=thread.ts or ts, card_ts=ts)
    await replace_followed(tx, carded)
    if thread.ts is None:  # the card begins the thread
        await _record_early(tx, carded, await tx.early_replies.take(thread.channel_id, ts), modes)


async def give_up(tx: OutboxTransaction, item: ClaimedNotice, given_up: GiveUp, owner: str, modes: ReplyModes) -> None:
    """Records why a notice cannot be posted in its thread, and sends it to the requester instead."""
    notice = item.notice
    thread = await tx.threads.get(item.thread.id) if notice.delivery is Delivery.CARD else item.thread
    if thread is None or not await tx.notices.give_up(notice, owner, problem=given_up.reason):
        return
    # A missing scope is logged once by name, not again for each notice that needs it.
    level = logging.INFO if given_up.missing_scopes else logging.WARNING
    logger.log(level, "notice %s (%s) is given up: %s", notice.key, notice.message.kind, given_up.reason)
    message = notice.message
    is_stop_alone = isinstance(message, JobStopped) and not message.link
    if isinstance(message, CardChanged):
        await tx.homes.changed(thread.requester_id, due_in=0.0)  # Home shows what the card cannot
        if thread.card_ts is None:
            told = CardNotPosted(thread.requester_id, given_up.reason, given_up.missing_scopes, given_up.in_doubt)
            await _call_off(tx, thread, told, modes)
    elif thread.card_ts is None and (isinstance(message, JobStarted) or is_stop_alone):
        return  # its person was told that the job has no card, and does not go on
    elif notice.posted_ts is not None:
        return  # people have seen it, and only what became of it is missing
    elif not isinstance(message, ReactionChanged | ToPerson | Introduction) and message.delivery is Delivery.POST:
        person_id, key = thread.requester_id, PostNotDelivered.key(within_thread(thread.id, notice.key))
        told_instead = PostNotDelivered(person_id, message.addressed_to(person_id), given_up.in_doubt)
        await tx.notices.add(thread.id, NewNotice(key, told_instead))


async def _call_off(tx: OutboxTransaction, thread: Thread, message: CardNotPosted, modes: ReplyModes) -> None:
    """Ends a job whose card cannot be posted, and tells the person how to fix that."""
    start = await tx.requests.find_start(thread.id)
    await restore_followed(tx, thread)
    if start is not None:
        message = replace(message, may_have_job=await call_off(tx, thread, start, message.reason))
    if thread.ts is None:
        await _record_early(tx, thread, await tx.early_replies.take(thread.channel_id, ""), modes)
    await tx.notices.add(thread.id, NewNotice(CardNotPosted.KEY, message))


async def _record_early(tx: RecordingTransaction, thread: Thread, replies: Sequence[Reply], modes: ReplyModes) -> None:
    """Records what was written while this thread's card was being posted; some of it belongs to other threads. If
    there is no job, somebody who addressed Pagehand gets an answer; the rest is between people.
    """
    for reply in replies:
        elsewhere = reply.thread_ts not in {thread.ts, thread.card_ts}
        job = await thread_of(tx, reply) if elsewhere else thread  # which may be known by now
        if job is not None:
            await record_reply(tx, job, reply, modes)
        elif not await record_mention(tx, reply, modes) and (told := _answer_without_job(reply)) is not None:
            await tx.notices.add(thread.id, told)


def _answer_without_job(reply: Reply) -> NewNotice | None:
    """Returns the answer to a message if there is no job and none was started; None if it needs none."""
    person_id, key = reply.person.id, NoticeKey(source_key_of(reply))
    to_us = reply.mentions_us or in_direct_message(reply)
    if reply.withdrawn and reply.word is None:
        return None
    if reply.word is ThreadWord.HELP:
        return NewNotice(key, help_for(reply)) if to_us or not reply.text else None
    if to_us and reply.word in {None, ThreadWord.NEW} and not may_ask(reply.message_ts, reply.edited_at):
        return NewNotice(ActionAnswered.key_of_edit(reply), ActionAnswered(person_id, ActionAnswer.EDITED_TOO_LATE))
    return NewNotice(key, ActionAnswered(person_id, ActionAnswer.NO_JOB_THERE)) if reply.word is not None else None
