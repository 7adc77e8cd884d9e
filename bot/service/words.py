"""Handles words for Pagehand itself in a job's thread (`!stop`), and replies while a job is muted."""

from dataclasses import replace
from typing import assert_never

from bot.domain.commands.replies import ThreadWord
from bot.domain.context.message_text import beginning
from bot.domain.notices import keys
from bot.domain.notices.messages import ActionAnswer, ActionAnswered, NewNotice
from bot.domain.notices.questions import HelpRequested
from bot.domain.requests.edits import MAX_QUOTED
from bot.domain.requests.request import Reply, RequestKind, WayIn
from bot.domain.threads.reply_rules import may_ask
from bot.domain.threads.thread import Thread
from bot.ports.transaction import RecordingTransaction
from bot.service.start import job_of_reply, new_request, record_start, source_key_of


async def record_word(tx: RecordingTransaction, thread: Thread, reply: Reply, word: ThreadWord) -> None:
    """Records what a word asks for. Whether its person may, and what it leads to, is decided later."""
    source_key = source_key_of(reply)
    kind = _kind(word)
    if kind is not None:
        request = new_request(thread, kind, source_key, reply.person, "", way_in=WayIn.WORD)
        await tx.requests.add(replace(request, written_at=reply.message_ts, recorded_at=tx.now))
    elif word is ThreadWord.NEW and not may_ask(reply.message_ts, reply.edited_at):
        told = ActionAnswered(reply.person.id, ActionAnswer.EDITED_TOO_LATE, beginning(reply.text, MAX_QUOTED))
        await tx.notices.add(thread.id, NewNotice(keys.edited_too_late(reply), told))
    elif word is ThreadWord.NEW:
        await record_start(tx, job_of_reply(reply, thread))
    else:
        await tx.notices.add(thread.id, NewNotice(keys.action_answered(source_key), help_for(reply)))


def help_for(reply: Reply) -> HelpRequested:
    """The answer to somebody who wants help, or probably meant another word."""
    return HelpRequested(reply.person.id, ThreadWord(reply.text) if reply.text in set(ThreadWord) else None)


async def tell_that_muted(tx: RecordingTransaction, thread: Thread, reply: Reply) -> None:
    """Tells somebody, once for each reply, that it is not sent because the job is muted."""
    about = beginning(reply.text, MAX_QUOTED)
    message = ActionAnswered(reply.person.id, ActionAnswer.REPLY_NOT_SENT_MUTED, about)
    await tx.notices.add(thread.id, NewNotice(keys.reply_muted(reply), message))


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
