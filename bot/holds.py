"""Replies whose people are asked first whether they are for the agent. Each function is part of a transaction in which
the thread is locked.
"""

from collections.abc import Sequence
from dataclasses import replace

from bot.domain.edits import MAX_QUOTED
from bot.domain.mentions import beginning
from bot.domain.notices import keys
from bot.domain.notices.messages import ActionAnswer, NewNotice, Reaction, ReactionChanged, ReplyHeld
from bot.domain.requests import Request, RequestKind, RequestState
from bot.domain.threads import Thread
from bot.starts import RequestTransaction


async def hold(tx: RequestTransaction, thread: Thread, request: Request) -> None:
    """Records a reply that waits for its person's answer, and asks for that; one that was recorded before is asked
    about again, if it was not.
    """
    await tx.requests.add(replace(request, state=RequestState.AWAITING_PERSON))
    question = ReplyHeld(request.person_id, request.id, beginning(request.text, MAX_QUOTED))
    await tx.notices.add(thread.id, NewNotice(keys.reply_held(request), question))


async def answer_held(
    tx: RequestTransaction, action: Request, all_held: Sequence[Request]
) -> tuple[ActionAnswer, Sequence[Request]]:
    """Does with a held reply what its person answered: the answer to that, and what goes on to the agent now."""
    held = await tx.requests.get(action.text)
    if held is None or held.thread_id != action.thread_id:
        return ActionAnswer.NOTHING_NEW, ()
    if action.kind is RequestKind.DISCARD_HELD:
        return await _discard(tx, held), ()
    chosen = all_held if action.kind is RequestKind.SEND_ALL_HELD else [each for each in all_held if each.id == held.id]
    for request in chosen:
        await tx.requests.save(replace(request, state=RequestState.RECEIVED))
        mark = ReactionChanged(request.written_at, Reaction.RECORDED)
        await tx.notices.add(request.thread_id, NewNotice(keys.reaction(request), mark))
    if action.kind is RequestKind.SEND_ALL_HELD:
        return ActionAnswer.HELD_ALL_SENT, chosen
    return (ActionAnswer.HELD_SENT if chosen else ActionAnswer.NOTHING_NEW), chosen


async def _discard(tx: RequestTransaction, held: Request) -> ActionAnswer:
    if held.state is not RequestState.AWAITING_PERSON:
        return ActionAnswer.NOTHING_NEW
    await tx.requests.save(replace(held, state=RequestState.WITHDRAWN))
    return ActionAnswer.HELD_DISCARDED
