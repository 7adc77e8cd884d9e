"""Replies whose people are asked first whether they are for the agent. Each function is part of a transaction in which
the thread is locked.
"""

from dataclasses import replace

from bot.domain.edits import MAX_QUOTED
from bot.domain.mentions import beginning
from bot.domain.notices import keys
from bot.domain.notices.messages import NewNotice, ReplyHeld
from bot.domain.requests import Request, RequestState
from bot.domain.threads import Thread
from bot.starts import RequestTransaction


async def hold(tx: RequestTransaction, thread: Thread, request: Request) -> None:
    """Records a reply that waits for its person's answer, and asks for that; one that was recorded before is asked
    about again, if it was not.
    """
    await tx.requests.add(replace(request, state=RequestState.AWAITING_PERSON))
    question = ReplyHeld(request.person_id, request.id, beginning(request.text, MAX_QUOTED))
    await tx.notices.add(thread.id, NewNotice(keys.reply_held(request), question))
