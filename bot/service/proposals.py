"""Starts or drops the plan that an agent proposed, or takes it back. The thread is locked."""

from bot.domain.jobs import proposals
from bot.domain.requests.audit import AuditAction, audited
from bot.domain.requests.request import RejectionReason, Request, RequestState, surface_of
from bot.domain.threads.thread import ProposalEnd, Thread, ThreadState, waits_for_start
from bot.notices.notice import CARD_CHANGED, NewNotice, NoticeKey
from bot.notices.proposals import ProposalMade, ProposalPressed
from bot.service.follow_up import was_stopped_since
from bot.store.store import RecordingTransaction, RequestTransaction


async def end(tx: RecordingTransaction, thread: Thread, how: ProposalEnd, by: str = "") -> bool:
    """Ends a plan that waits. False if none does."""
    if not waits_for_start(thread.state):
        return False
    state, notices = proposals.ended(thread.state, how, by)
    await tx.threads.save_state(thread.id, state, poll_in=0.0)
    for notice in notices:
        await tx.notices.add(thread.id, notice)
    await tx.notices.add(thread.id, CARD_CHANGED)
    return True


async def drop(tx: RequestTransaction, thread: Thread, press: Request) -> None:
    """Drops a plan, or tells the person why that does nothing."""
    if (why := proposals.why_not(thread, press)) is not None:
        await _refuse(tx, thread, press, why)
    elif await end(tx, thread, ProposalEnd.DROPPED, press.person_id):
        await tx.audit.add(audited(AuditAction.PLAN_DROPPED, press, thread))


async def open_start(
    tx: RequestTransaction, thread: Thread, press: Request, *, may_have_arrived: bool
) -> ThreadState | None:
    """Returns the thread's state while a press is being sent that starts a plan. None, and the press ends, if it does
    nothing: the plan no longer waits, or words that were written before will change it.
    """
    why = proposals.why_not(thread, press)
    if may_have_arrived and why in {None, ProposalEnd.STARTED}:  # the job API knows
        return proposals.opened(thread.state, press, may_have_arrived=True)
    if why is None and await was_stopped_since(tx, press):
        why = ProposalEnd.STOPPED
        await end(tx, thread, why)
    earlier = await tx.requests.waiting_follow_ups(thread.id)
    if why is None and any(words.asked_at < press.asked_at for words in earlier):
        why = ProposalEnd.REVISED
    if why is None:
        return proposals.opened(thread.state, press, may_have_arrived=False)
    await _refuse(tx, thread, press, why)
    await tx.requests.settle(press.id, RequestState.REJECTED, problem=RejectionReason.OTHER)
    return None


async def _refuse(tx: RecordingTransaction, thread: Thread, press: Request, why: ProposalEnd) -> None:
    planning, newer_ts = thread.state.planning, ""
    if why is ProposalEnd.OUTDATED and planning.proposal_id:
        newer_ts = await tx.notices.posted_ts(thread.id, ProposalMade.key(planning.proposal_id))
    told = ProposalPressed(press.person_id, why, newer_ts, asked_on=surface_of(press.source_key))
    await tx.notices.add(thread.id, NewNotice(NoticeKey(press.source_key), told))
