"""How replies are handled that came before it was known where a card is. The card's thread is locked."""

from collections.abc import Sequence

from bot.domain.commands.thread_words import ThreadWord
from bot.domain.notices import keys
from bot.domain.notices.messages import ActionAnswer, ActionAnswered, NewNotice
from bot.domain.requests.request import Reply
from bot.domain.threads.reply_rules import ReplyTerms, in_direct_message, may_ask
from bot.domain.threads.thread import Thread
from bot.ports.transaction import RecordingTransaction
from bot.service.reply import record_mention, record_reply, thread_of
from bot.service.start import source_key_of
from bot.service.words import help_for


async def record_early(tx: RecordingTransaction, thread: Thread, replies: Sequence[Reply], terms: ReplyTerms) -> None:
    """Records what was written while this thread's card was on its way; some of it turns out to be elsewhere."""
    for reply in replies:
        if reply.thread_ts in {thread.ts, thread.card_ts}:
            await record_reply(tx, thread, reply, terms)
        else:
            await _record_elsewhere(tx, thread, reply, terms)


async def _record_elsewhere(tx: RecordingTransaction, card: Thread, reply: Reply, terms: ReplyTerms) -> None:
    """Records a reply in another thread, whose job may have become known meanwhile. Where there is none, whoever wants
    something of Pagehand is told; what others say there is between people.
    """
    thread = await thread_of(tx, reply)
    if thread is not None:
        await record_reply(tx, thread, reply, terms)
    elif not await record_mention(tx, reply, terms) and (told := _told_without_job(reply)) is not None:
        await tx.notices.add(card.id, told)


def _told_without_job(reply: Reply) -> NewNotice | None:
    """What is told to whoever wrote this where there is no job, and started none."""
    person_id, key = reply.person.id, keys.action_answered(source_key_of(reply))
    to_us = reply.mentions_us or in_direct_message(reply)
    if reply.withdrawn:
        return None
    if reply.word is ThreadWord.HELP:
        return NewNotice(key, help_for(reply)) if to_us or not reply.text else None
    if to_us and reply.word in {None, ThreadWord.NEW} and not may_ask(reply.message_ts, reply.edited_at):
        return NewNotice(keys.edited_too_late(reply), ActionAnswered(person_id, ActionAnswer.EDITED_TOO_LATE))
    return NewNotice(key, ActionAnswered(person_id, ActionAnswer.NO_JOB_THERE)) if reply.word is not None else None
