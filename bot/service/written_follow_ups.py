"""What becomes of follow-ups that are no messages of their thread, so that they carry no mark. Each function is part of
a transaction in which the thread is locked.
"""

from dataclasses import replace

from bot.domain.context.mentions import beginning
from bot.domain.notices import keys
from bot.domain.notices.messages import ActionAnswer, ActionAnswered, NewNotice
from bot.domain.requests.edits import MAX_QUOTED
from bot.domain.requests.request import NOT_SENT_YET, RejectionReason, Request, RequestKind, RequestState, WayIn
from bot.domain.requests.settle import rejection
from bot.domain.requests.written import Written
from bot.domain.threads.thread import Thread
from bot.service.replies import checked
from bot.service.starts import RequestTransaction, new_request, request_id


async def record_written(tx: RequestTransaction, thread: Thread, written: Written) -> None:
    """Records a follow-up, once; whoever presses its button again is told what became of the first time."""
    first = await tx.requests.get(request_id(written.source_key))
    if first is not None:
        if written.way_in is WayIn.BUTTON:
            answer = ActionAnswered(written.person.id, _answer_again(first))
            await tx.notices.add(first.thread_id, NewNotice(keys.action_answered(written.source_key), answer))
        return
    if thread.state.muted_by:
        about = beginning(written.text, MAX_QUOTED)
        told = ActionAnswered(written.person.id, ActionAnswer.REPLY_NOT_SENT_MUTED, about)
        await tx.notices.add(thread.id, NewNotice(keys.action_answered(written.source_key), told))
        return
    request = await checked(tx, thread, _follow_up(tx, thread, written))
    if await tx.requests.add(request) and request.state not in NOT_SENT_YET:
        await tx.notices.add(request.thread_id, rejection(request, RejectionReason(request.problem)))


def _follow_up(tx: RequestTransaction, thread: Thread, written: Written) -> Request:
    person, text, way_in = written.person, written.text, written.way_in
    request = new_request(thread, RequestKind.FOLLOW_UP, written.source_key, person, text, way_in=way_in)
    return replace(request, written_at=f"{tx.now:.6f}", recorded_at=tx.now)


def _answer_again(first: Request) -> ActionAnswer:
    return ActionAnswer.SEE_THREAD if first.state is RequestState.REJECTED else ActionAnswer.ALREADY_ACCEPTED
