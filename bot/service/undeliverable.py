"""How a notice is handled that cannot be posted in its thread: its requester gets it instead, where that works."""

import logging

from bot.domain.jobs.job import Problem
from bot.domain.notices import keys
from bot.domain.notices.content import Delivery
from bot.domain.notices.deliver import GiveUp
from bot.domain.notices.messages import (
    CardChanged,
    CardNotPosted,
    NewNotice,
    Notice,
    PostNotDelivered,
    ReactionChanged,
)
from bot.domain.notices.posts import Post
from bot.domain.notices.questions import ToPerson
from bot.domain.threads.reply_rules import ReplyTerms
from bot.domain.threads.thread import Thread
from bot.ports.store import ClaimedNotice
from bot.ports.transaction import OutboxTransaction
from bot.service.early_replies import record_early
from bot.service.following_jobs import give_back
from bot.service.start import StartEnding, end_start

logger = logging.getLogger(__name__)


async def give_up(tx: OutboxTransaction, item: ClaimedNotice, given_up: GiveUp, owner: str, terms: ReplyTerms) -> None:
    """Records why a notice cannot be said in its thread, and has it said to the person who asked."""
    notice = item.notice
    thread = await tx.threads.get(item.thread.id) if notice.delivery is Delivery.CARD else item.thread
    if thread is None or not await tx.notices.give_up(notice, owner, problem=given_up.reason):
        return
    # A scope that is missing is logged by its name, and not again for each notice that needs it.
    level = logging.INFO if given_up.missing_scopes else logging.WARNING
    logger.log(level, "notice %s (%s) is given up: %s", notice.key, notice.message.kind, given_up.reason)
    message = notice.message
    if isinstance(message, CardChanged):
        await tx.homes.changed(thread.requester_id, due_in=0.0)  # which shows what the card does not
        if thread.card_ts is None:
            await _call_off(tx, thread, _card_not_posted(thread, given_up), terms)
    elif not isinstance(message, ReactionChanged | ToPerson) and message.delivery is Delivery.POST:
        await tx.notices.add(thread.id, _not_delivered(notice, message, thread, given_up))


async def _call_off(tx: OutboxTransaction, thread: Thread, message: CardNotPosted, terms: ReplyTerms) -> None:
    """No card, no thread, no job: the person is told how to make room for it."""
    start = await tx.requests.find_start(thread.id)
    await give_back(tx, thread)
    if start is not None:
        await end_start(tx, thread, start, StartEnding(Problem.CANNOT_POST, message.reason, message.reason))
    if thread.ts is None:
        await record_early(tx, thread, await tx.early_replies.take(thread.channel_id, ""), terms)
    await tx.notices.add(thread.id, NewNotice(keys.CARD_NOT_POSTED, message))


def _card_not_posted(thread: Thread, given_up: GiveUp) -> CardNotPosted:
    return CardNotPosted(thread.requester_id, given_up.reason, given_up.missing_scopes, given_up.in_doubt)


def _not_delivered(notice: Notice, post: Post, thread: Thread, given_up: GiveUp) -> NewNotice:
    """Returns the notice that tells the requester what was to be posted."""
    person_id = thread.requester_id
    message = PostNotDelivered(person_id, post.addressed_to(person_id), given_up.in_doubt)
    return NewNotice(keys.told_privately(keys.within_thread(thread.id, notice.key)), message)
