"""Handles an edit or the deletion of a message that asked for a job, or steered one."""

from collections.abc import Sequence
from dataclasses import replace

from bot.domain.commands.options import Options
from bot.domain.commands.thread_words import ThreadWord
from bot.domain.jobs.job import Problem
from bot.domain.jobs.observe import with_problem
from bot.domain.people.permissions import is_outsider
from bot.domain.requests.edits import (
    came_back,
    certainly_unsent,
    for_the_agent,
    not_fully_sent,
    offer,
    project_too_late,
    reaction_of,
    revised,
    revised_options,
    taken_back,
    without_effect,
)
from bot.domain.requests.held import is_late, was_stopped_after
from bot.domain.requests.request import (
    NOT_SENT_YET,
    Arrival,
    HeldBecause,
    Reply,
    Request,
    RequestKind,
    RequestState,
    WayIn,
)
from bot.domain.threads.direct_messages import may_be_job, meaning_of_line, says_it_is_a_job
from bot.domain.threads.reply_rules import ReplyMeaning, ReplyModes, meaning
from bot.domain.threads.thread import Thread
from bot.notices.notice import CARD_CHANGED, NewNotice
from bot.service.direct_messages import ask_about_lines, begin_job
from bot.service.end_start import StartEnding, end_start, keep_followed
from bot.service.follow_up import checked, explain, release, tell_that_muted
from bot.service.following_jobs import alive
from bot.service.held import ask, hold, hold_again
from bot.service.start import asked_in, job_of_reply, reaction_notice, request_id, source_key_of
from bot.store.store import RecordingTransaction

_WITHDRAWN = StartEnding(Problem.WITHDRAWN, state=RequestState.WITHDRAWN)
_ON_ITS_WAY = frozenset({RequestState.SENDING, RequestState.ACCEPTED})


async def revise(tx: RecordingTransaction, thread: Thread, reply: Reply, modes: ReplyModes) -> bool:
    """Records a newer version of a message that was recorded before; False if it was not."""
    first = await tx.requests.get(request_id(source_key_of(reply)))
    if first is None:
        return False
    if first.kind is RequestKind.START:
        await _revise_start(tx, thread, first, reply, modes)
    elif first.kind is RequestKind.FOLLOW_UP:
        before = await tx.requests.find_by_reply(thread.id, reply.message_ts)
        live = await alive(tx.threads, thread)
        if live.id != thread.id and (there := await tx.requests.find_by_reply(live.id, reply.message_ts)):
            thread, before = live, [*before, *there]
        line = before[-1]
        if says_it_is_a_job(reply, line) and reply.arrival is Arrival.LIVE:
            asked = job_of_reply(reply, None)
            await begin_job(tx, thread, line, asked)
            return True
        await _revise_follow_up(tx, thread, before, reply, modes)
        if may_be_job(line):
            await ask_about_lines(tx, thread, line.person_id)
    else:
        means = meaning(reply, thread, modes(thread.channel_id))
        await _answer(tx, first, first, without_effect(reply, first, first, means))
    return True


async def catch_up(tx: RecordingTransaction, request: Request) -> None:
    """Applies edits that came while a request was being sent. `request` is its state after sending."""
    after = came_back(request)
    if after != request:
        await tx.requests.save(after)
    if request.kind is RequestKind.START:
        await _start_caught_up(tx, request, after)
    elif after.state is not request.state:
        of_reply = await tx.requests.find_by_reply(after.thread_id, after.written_at)
        await _react_to_withdrawal(tx, after, of_reply[:-1])
        await tx.notices.add(after.thread_id, CARD_CHANGED)  # it counts waiting follow-ups
    if (notice := offer(after) or taken_back(after)) is not None:
        await tx.notices.add(after.thread_id, notice)


async def _revise_follow_up(
    tx: RecordingTransaction, thread: Thread, before: Sequence[Request], reply: Reply, modes: ReplyModes
) -> None:
    """Records a newer version of a reply by changing the last request made from it."""
    request = before[-1]
    means = _meaning(reply, thread, request, modes)
    reply = for_the_agent(reply, request, means)
    after = revised(request, reply)
    reopened = after.state in NOT_SENT_YET and request.state not in NOT_SENT_YET
    if after == request:
        return
    if request.state is after.state is RequestState.AWAITING_PERSON:
        await _revise_held(tx, thread, request, after, means)
        return
    if reopened and means is not ReplyMeaning.SEND:
        await _reopen_otherwise(tx, thread, after, reply, means)
        return
    if reopened and was_stopped_after(after.asked_at, await tx.requests.stops(thread.id)):
        await hold_again(tx, after, HeldBecause.STOPPED)
        return
    if reopened:
        after = await checked(tx, thread, after)
    await tx.requests.save(after)
    if reopened:
        await explain(tx, after, reply.attachments)
    elif after.state is RequestState.WITHDRAWN and request.state is not RequestState.WITHDRAWN:
        await _react_to_withdrawal(tx, after, before[:-1])
        if thread.card_ts is not None:
            await tx.notices.add(thread.id, CARD_CHANGED)  # it counts waiting follow-ups
    elif _holds_more(reply, request) and (after.state in _ON_ITS_WAY or after.uncertain):
        await tx.notices.add(thread.id, not_fully_sent(after, reply.attachments, words_sent=True))
    await _answer(tx, request, after, without_effect(reply, request, after, means))


async def _answer(tx: RecordingTransaction, before: Request, after: Request, told: NewNotice | None) -> None:
    """Answers an edit with what its author is `told`; otherwise offers to send new words, if the earlier ones were."""
    if told is None and after.latest_text != before.latest_text:
        told = offer(after) or taken_back(after)
    if told is not None:
        await tx.notices.add(after.thread_id, told)


def _meaning(reply: Reply, thread: Thread, request: Request, modes: ReplyModes) -> ReplyMeaning:
    """Returns how a newer version of a reply is handled. A late one is not sent before its writer has said so. That of
    an outsider will be refused, so there is nothing to ask.
    """
    if may_be_job(request):
        return meaning_of_line(reply)
    means = meaning(reply, thread, modes(thread.channel_id))
    if is_outsider(request.person, thread):
        return ReplyMeaning.SEND if means is ReplyMeaning.ASK_FIRST else means
    late = reply.arrival is Arrival.LATE
    return ReplyMeaning.ASK_FIRST if late and means is ReplyMeaning.SEND else means


async def _revise_held(
    tx: RecordingTransaction,
    thread: Thread,
    request: Request,
    now: Request,
    means: ReplyMeaning,
) -> None:
    """Revises a held reply: its person is asked about the new text, unless that says whom it is for."""
    says_more = (now.text, now.attachments) != (request.text, request.attachments)
    if means is ReplyMeaning.SEND and now.held_because is None:
        await release(tx, thread, now)
        return
    await tx.requests.save(now)
    if says_more and means in {ReplyMeaning.ASK_FIRST, ReplyMeaning.SEND}:
        await hold(tx, thread, now, now.held_because)


async def _reopen_otherwise(
    tx: RecordingTransaction, thread: Thread, request: Request, reply: Reply, means: ReplyMeaning
) -> None:
    """Reopens a withdrawn reply whose new text cannot simply be sent."""
    match means:
        case ReplyMeaning.ASK_FIRST:
            await hold_again(tx, request, HeldBecause.LATE if is_late(reply, thread) else None)
        case ReplyMeaning.MUTED:
            await tell_that_muted(tx, thread, reply)
        case ReplyMeaning.BETWEEN_PEOPLE | ReplyMeaning.SEND | ReplyMeaning.THANKS:
            pass


def _holds_more(reply: Reply, request: Request) -> bool:
    """Returns whether a newer version of a reply has files or forwarded messages that were not sent with it."""
    return bool(reply.attachments) and not reply.withdrawn and reply.attachments != request.attachments


async def _react_to_withdrawal(tx: RecordingTransaction, request: Request, before: Sequence[Request]) -> None:
    """Removes the reaction of a reply that is not sent, or restores that of its earlier text."""
    reaction = reaction_of(before[-1].state) if before else None
    await tx.notices.add(request.thread_id, reaction_notice(request, reaction))


async def _revise_start(
    tx: RecordingTransaction, thread: Thread, start: Request, reply: Reply, modes: ReplyModes
) -> None:
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
    reopened = start.state is not after.state and after.state in NOT_SENT_YET
    if reopened and reply.arrival is Arrival.LATE:
        await hold_again(tx, after, HeldBecause.LATE)
        return
    await tx.requests.save(after)
    if after.state is RequestState.WITHDRAWN:
        await keep_followed(tx, thread)
        await end_start(tx, thread, start, _WITHDRAWN)
    elif after.held_because and after.text != start.text:
        await ask(tx, thread.id, after)
    elif reopened:
        await _start_after_all(tx, thread, after)
    elif after.text != start.text:
        await _show_start(tx, thread, start)
    means = meaning(reply, thread, modes(thread.channel_id))
    await _answer(tx, start, after, without_effect(reply, start, after, means))
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
    prepared = after.state in {RequestState.WAITING, RequestState.AWAITING_PERSON} and not after.held_because
    return replace(after, state=RequestState.RECEIVED) if prepared else after


async def _project_of_earlier(tx: RecordingTransaction, thread: Thread) -> str:
    """Returns the project of the job that a thread follows; empty if it follows none."""
    earlier = await tx.threads.get(thread.follows) if thread.follows else None
    return earlier.project if earlier else ""


async def _start_caught_up(tx: RecordingTransaction, before: Request, after: Request) -> None:
    """Updates a thread whose start was edited during a failed attempt to send it."""
    thread = await tx.threads.get(after.thread_id)
    if thread is None or after == before:
        return
    if after.state is RequestState.WITHDRAWN:
        await keep_followed(tx, thread)
        await end_start(tx, thread, before, _WITHDRAWN)
    elif after.text != before.text:
        await _show_start(tx, thread, before)


async def _start_after_all(tx: RecordingTransaction, thread: Thread, start: Request) -> None:
    await tx.threads.save_state(thread.id, with_problem(thread.state, None), poll_in=None)
    await _show_start(tx, thread, start)


async def _show_start(tx: RecordingTransaction, thread: Thread, before: Request) -> None:
    """Updates the card if there is one or one is due; before a start is prepared, it has none."""
    if thread.card_ts is not None or before.state in {RequestState.WAITING, RequestState.SENDING}:
        await tx.notices.add(thread.id, CARD_CHANGED)
