"""Handles a message in a job's thread: a follow-up, a word for Pagehand (`!stop`), or talk between people."""

from dataclasses import replace
from typing import assert_never

from bot.domain.commands.thread_words import ThreadWord
from bot.domain.context.message_text import beginning
from bot.domain.people.permissions import is_outsider
from bot.domain.requests.edits import MAX_QUOTED, without_effect
from bot.domain.requests.held import is_late, was_stopped_after
from bot.domain.requests.request import HeldBecause, Reply, Request, RequestKind, RequestState, WayIn
from bot.domain.threads.reply_rules import ReplyMeaning, ReplyModes, asks_for_a_job, may_ask, meaning, never_began
from bot.domain.threads.thread import Thread
from bot.notices.answers import ActionAnswer, ActionAnswered, HelpRequested
from bot.notices.notice import NewNotice, NoticeKey, Reaction
from bot.service.direct_messages import record_line
from bot.service.edit import revise
from bot.service.follow_up import checked, explain, tell_that_muted
from bot.service.held import hold
from bot.service.start import (
    job_of_reply,
    new_request,
    newest_in,
    reaction_notice,
    record_start,
    request_id,
    source_key_of,
)
from bot.store.store import RecordingTransaction


async def record_reply(tx: RecordingTransaction, thread: Thread, reply: Reply, modes: ReplyModes) -> None:
    """Records a message in a job's Slack thread as a follow-up, as a word for Pagehand, or with the reason why it
    cannot be sent. Messages between people are ignored.
    """
    if reply.edited_at and await revise(tx, thread, reply, modes):
        return
    if not reply.edited_at and await tx.requests.get(request_id(source_key_of(reply))):
        return
    if reply.withdrawn:
        # Recorded all the same: the version before the edit or deletion may still arrive.
        withdrawn = replace(_follow_up(tx, thread, reply), text="", state=RequestState.WITHDRAWN)
        await tx.requests.add(withdrawn)
        if (told := without_effect(reply, None, None, ReplyMeaning.BETWEEN_PEOPLE)) is not None:
            await tx.notices.add(thread.id, told)
    elif reply.word is not None:
        await _record_word(tx, thread, reply, reply.word)
    else:
        await _record_words(tx, thread, reply, modes)


async def _record_words(tx: RecordingTransaction, thread: Thread, reply: Reply, modes: ReplyModes) -> None:
    means = meaning(reply, thread, modes(thread.channel_id))
    if means is ReplyMeaning.BETWEEN_PEOPLE:
        return
    if means is ReplyMeaning.ASK_FIRST and is_outsider(reply.person, thread):
        means = ReplyMeaning.SEND  # it will be refused, so there is nothing to ask
    late = HeldBecause.LATE if is_late(reply, thread) else None
    match means:
        case ReplyMeaning.MUTED:
            await tell_that_muted(tx, thread, reply)
        case ReplyMeaning.ASK_FIRST:
            await hold(tx, thread, _follow_up(tx, thread, reply), late)
        case ReplyMeaning.THANKS:
            thanks = replace(_follow_up(tx, thread, reply), state=RequestState.WITHDRAWN)
            if await tx.requests.add(thanks):
                await tx.notices.add(thread.id, reaction_notice(thanks, Reaction.WELCOME))
        case ReplyMeaning.SEND if never_began(thread) and asks_for_a_job(reply):
            await record_start(tx, job_of_reply(reply, thread))
        case ReplyMeaning.SEND if late:
            await hold(tx, thread, _follow_up(tx, thread, reply), late)
        case ReplyMeaning.SEND:
            await _have_sent(tx, thread, reply)


async def _have_sent(tx: RecordingTransaction, thread: Thread, reply: Reply) -> None:
    """Records a follow-up, unless the job was stopped after it was written: Slack delivered it late."""
    request = _follow_up(tx, thread, reply)
    outsider = is_outsider(reply.person, thread)
    if not outsider and was_stopped_after(request.asked_at, await tx.requests.stops(thread.id)):
        await hold(tx, thread, request, HeldBecause.STOPPED)
        return
    request = await checked(tx, thread, request)
    if await tx.requests.add(request):
        await explain(tx, request, reply.attachments)


def _follow_up(tx: RecordingTransaction, thread: Thread, reply: Reply) -> Request:
    way_in = WayIn.MENTION if reply.mentions_us else WayIn.REPLY
    request = new_request(thread, RequestKind.FOLLOW_UP, source_key_of(reply), reply.person, reply.text, way_in=way_in)
    request = replace(request, written_at=reply.message_ts, recorded_at=tx.now, edited_at=reply.edited_at)
    return replace(request, attachments=reply.attachments)


async def record_mention(tx: RecordingTransaction, reply: Reply, modes: ReplyModes) -> bool:
    """Records a job to start if a message in a thread without one mentions Pagehand. If there are two at once, the
    second becomes a follow-up. False if the message asks for nothing.
    """
    if not asks_for_a_job(reply):
        return False
    asked = job_of_reply(reply, None)
    if not (await record_line(tx, asked) or await record_start(tx, asked)):
        thread = await thread_of(tx, reply)
        if thread is None:
            return False
        await record_reply(tx, thread, reply, modes)
    return True


async def thread_of(tx: RecordingTransaction, reply: Reply) -> Thread | None:
    """Returns the thread of a message, locked: that of its request, or else the newest in its Slack thread."""
    request = await tx.requests.get(request_id(source_key_of(reply)))
    if request is not None:
        return await tx.threads.get(request.thread_id)
    return await newest_in(tx.threads, reply.channel_id, reply.thread_ts) if reply.thread_ts else None


async def _record_word(tx: RecordingTransaction, thread: Thread, reply: Reply, word: ThreadWord) -> None:
    """Records what a word asks for. Whether its person may, and what it leads to, is decided later."""
    source_key = source_key_of(reply)
    kind = _kind(word)
    if kind is not None:
        request = new_request(thread, kind, source_key, reply.person, "", way_in=WayIn.WORD)
        request = replace(request, written_at=reply.message_ts, recorded_at=tx.now)
        if is_late(reply, thread) and kind is not RequestKind.SHOW_STATUS:
            await hold(tx, thread, request, HeldBecause.LATE)
        else:
            await tx.requests.add(request)
    elif word is ThreadWord.NEW and not may_ask(reply.message_ts, reply.edited_at):
        told = ActionAnswered(reply.person.id, ActionAnswer.EDITED_TOO_LATE, beginning(reply.text, MAX_QUOTED))
        await tx.notices.add(thread.id, NewNotice(ActionAnswered.key_of_edit(reply), told))
    elif word is ThreadWord.NEW:
        await record_start(tx, job_of_reply(reply, thread))
    else:
        await tx.notices.add(thread.id, NewNotice(NoticeKey(source_key), help_for(reply)))


def help_for(reply: Reply) -> HelpRequested:
    """The answer to somebody who wants help, or probably meant another word."""
    return HelpRequested(reply.person.id, ThreadWord(reply.text) if reply.text in set(ThreadWord) else None)


def _kind(word: ThreadWord) -> RequestKind | None:
    """The kind of request that a word makes; None if it makes none."""
    match word:
        case ThreadWord.STATUS:
            kind: RequestKind | None = RequestKind.SHOW_STATUS
        case ThreadWord.MUTE:
            kind = RequestKind.MUTE
        case ThreadWord.UNMUTE:
            kind = RequestKind.UNMUTE
        case ThreadWord.STOP:
            kind = RequestKind.STOP
        case ThreadWord.RETRY:
            kind = RequestKind.RETRY
        case ThreadWord.DISCARD:
            kind = RequestKind.DISCARD
        case ThreadWord.NEW | ThreadWord.HELP:
            kind = None
        case _:
            assert_never(word)
    return kind
