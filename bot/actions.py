"""What becomes of what people do about a job: a button, a word, a reaction. Each is part of a transaction in which the
thread is locked.
"""

from dataclasses import replace

from bot.domain.notices import keys
from bot.domain.notices.messages import CARD_CHANGED, ActionAnswer, ActionAnswered, NewNotice, Reaction
from bot.domain.observe import with_problem
from bot.domain.permissions import may_steer
from bot.domain.requests import RejectionReason, Request, RequestKind, RequestState
from bot.domain.threads import Thread
from bot.replies import RequestTransaction, catch_up, reaction_notice, send_new_words


async def carry_out(tx: RequestTransaction, thread: Thread, action: Request) -> None:
    """Does what an action asks for, and answers it."""
    match action.kind:
        case RequestKind.SEND_AGAIN:
            answer = await _send_again(tx, thread, action)
        case RequestKind.SEND_NEW_WORDS:
            answer = await _send_new_words(tx, thread, action)
        case _:
            return
    message = ActionAnswered(action.person_id, answer)
    await tx.notices.add(thread.id, NewNotice(keys.action_answered(action.source_key), message))


async def _send_again(tx: RequestTransaction, thread: Thread, action: Request) -> ActionAnswer:
    request = await tx.requests.get(action.text)
    if request is not None and request.merged_into:
        request = await tx.requests.get(request.merged_into)
    if request is None:
        return ActionAnswer.ALREADY_ACCEPTED
    # Where a person belongs to is told less exactly of a click than of a message: whoever wrote it may.
    if not (may_steer(action.person, thread) or action.person_id == request.person_id):
        return ActionAnswer.OTHER_WORKSPACE
    handed_back = request.state is RequestState.UNCERTAIN or request.problem == RejectionReason.TOO_OLD
    if request.state not in {RequestState.UNCERTAIN, RequestState.REJECTED} or not handed_back:
        return ActionAnswer.ALREADY_ACCEPTED
    if request.latest_text == "":
        return ActionAnswer.WITHDRAWN
    await _wait_again(tx, thread, request)
    return ActionAnswer.SENT_AGAIN


async def _wait_again(tx: RequestTransaction, thread: Thread, request: Request) -> None:
    await tx.requests.settle(request.id, RequestState.WAITING, afresh=True)
    await catch_up(tx, replace(request, state=RequestState.WAITING))
    if request.kind is not RequestKind.START:
        if request.written_at:
            await tx.notices.add(thread.id, reaction_notice(request, Reaction.RECORDED))
        return
    await tx.threads.save_state(thread.id, with_problem(thread.state, None), poll_in=None)
    await tx.notices.add(thread.id, CARD_CHANGED)


async def _send_new_words(tx: RequestTransaction, thread: Thread, action: Request) -> ActionAnswer:
    request = await tx.requests.get(action.text)
    return ActionAnswer.NOTHING_NEW if request is None else await send_new_words(tx, thread, request, action.person)
