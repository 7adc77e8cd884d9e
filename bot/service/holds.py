"""Replies whose people are asked first whether they are for the agent. Each function is part of a transaction in which
the thread is locked.
"""

from dataclasses import replace
from typing import Protocol

from bot.domain.context.mentions import beginning
from bot.domain.notices import keys
from bot.domain.notices.messages import NewNotice
from bot.domain.notices.questions import JobOrReplyAsked, ReplyHeld
from bot.domain.requests.edits import MAX_QUOTED
from bot.domain.requests.request import Request, RequestState
from bot.domain.threads.direct_messages import may_be_job, to_ask_about
from bot.domain.threads.surfaces import Surface
from bot.domain.threads.thread import Thread
from bot.ports.ports import HasNotices, HasRequestQueue
from bot.service.starts import RequestTransaction

MOST_ASKED = 5
"""Replies, the newest, that somebody is asked about at once; one of the answers is for all of them."""


class HoldTransaction(HasRequestQueue, HasNotices, Protocol):
    """What asking again touches."""


async def hold(tx: RequestTransaction, thread: Thread, request: Request) -> None:
    """Records a reply that waits for its person's answer, and asks for that; one that was recorded before is asked
    about again, if it was not.
    """
    await tx.requests.add(replace(request, state=RequestState.AWAITING_PERSON))
    await tx.notices.add(thread.id, NewNotice(keys.reply_held(request), _question(request)))


async def ask_again(tx: HoldTransaction, thread: Thread, action: Request) -> None:
    """Asks somebody who wants to know how the job is about their replies that wait for an answer: the question, which
    only they see, may be lost.
    """
    for held in to_ask_about(await tx.requests.held(thread.id, action.person_id))[-MOST_ASKED:]:
        await tx.notices.add(thread.id, NewNotice(keys.reply_asked_again(held, action), _question(held)))


def _question(request: Request) -> ReplyHeld | JobOrReplyAsked:
    text = beginning(request.text, MAX_QUOTED)
    if may_be_job(request):
        return JobOrReplyAsked(request.person_id, request.id, text, asked_on=Surface.TOP_LEVEL)
    return ReplyHeld(request.person_id, request.id, text)
