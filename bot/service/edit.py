"""Handles an edit or the deletion of the message that asked for a job."""

from dataclasses import replace

from bot.domain.commands.options import Options
from bot.domain.commands.replies import ThreadWord
from bot.domain.jobs.job import Problem
from bot.domain.jobs.observe import with_problem
from bot.domain.notices.messages import CARD_CHANGED
from bot.domain.requests.edits import certainly_unsent, offer, project_too_late, revised, revised_options, taken_back
from bot.domain.requests.request import NOT_SENT_YET, Reply, Request, RequestState, WayIn
from bot.domain.threads.thread import Thread
from bot.ports.transaction import RecordingTransaction
from bot.service.following_jobs import keep_followed
from bot.service.start import StartEnding, asked_in, end_start

_WITHDRAWN = StartEnding(Problem.WITHDRAWN, state=RequestState.WITHDRAWN)


async def revise_start(tx: RecordingTransaction, thread: Thread, start: Request, reply: Reply) -> None:
    """Records a newer version of the message that asked for a job. It changes what is not sent yet. What was sent stays
    unchanged, and the new text is offered as a follow-up.
    """
    options, prompt = asked_in(reply)
    still_asks = start.way_in is WayIn.DIRECT_MESSAGE or reply.mentions_us or reply.word is ThreadWord.NEW
    gone = reply.withdrawn or (certainly_unsent(start) and not still_asks)
    after = revised(start, replace(reply, text="" if gone else prompt, withdrawn=gone))
    if after == start:
        return
    if certainly_unsent(start) and not gone:
        after = await _with_options(tx, thread, start, after, options)
    await tx.requests.save(after)
    if after.state is RequestState.WITHDRAWN:
        await keep_followed(tx, thread)
        await end_start(tx, thread, start, _WITHDRAWN)
    elif start.state is not after.state and after.state in NOT_SENT_YET:
        await _start_after_all(tx, thread, after)
    elif after.text != start.text:
        await _show(tx, thread, start)
    notice = offer(after) or taken_back(after)
    if notice is not None and after.latest_text != start.latest_text:
        await tx.notices.add(thread.id, notice)
    if not gone and (late := project_too_late(after, thread.options, options)) is not None:
        await tx.notices.add(thread.id, late)


async def _with_options(
    tx: RecordingTransaction, thread: Thread, start: Request, after: Request, said: Options
) -> Request:
    """Applies the options that the message of an unsent start has now. Whatever they or its text affect is prepared
    again.
    """
    options = revised_options(thread.options, said)
    if options != thread.options:
        decided = options.project_reason is None and thread.options.project_reason is not None
        project = await _project_of_earlier(tx, thread) if decided else thread.project
        await tx.threads.set_project(thread.id, project, options)
    elif start.state is not RequestState.AWAITING_PERSON or after.text == start.text:
        return after
    prepared = after.state in {RequestState.WAITING, RequestState.AWAITING_PERSON}
    return replace(after, state=RequestState.RECEIVED) if prepared else after


async def _project_of_earlier(tx: RecordingTransaction, thread: Thread) -> str:
    """Returns the project of the job that a thread follows; empty if it follows none."""
    earlier = await tx.threads.get(thread.follows) if thread.follows else None
    return earlier.project if earlier else ""


async def start_caught_up(tx: RecordingTransaction, before: Request, after: Request) -> None:
    """Updates a thread whose start was edited during a failed attempt to send it."""
    thread = await tx.threads.get(after.thread_id)
    if thread is None or after == before:
        return
    if after.state is RequestState.WITHDRAWN:
        await keep_followed(tx, thread)
        await end_start(tx, thread, before, _WITHDRAWN)
    elif after.text != before.text:
        await _show(tx, thread, before)


async def _start_after_all(tx: RecordingTransaction, thread: Thread, start: Request) -> None:
    await tx.threads.save_state(thread.id, with_problem(thread.state, None), poll_in=None)
    await _show(tx, thread, start)


async def _show(tx: RecordingTransaction, thread: Thread, before: Request) -> None:
    """Updates the card if there is one or one is due; before a start is prepared, it has none."""
    if thread.card_ts is not None or before.state in {RequestState.WAITING, RequestState.SENDING}:
        await tx.notices.add(thread.id, CARD_CHANGED)
