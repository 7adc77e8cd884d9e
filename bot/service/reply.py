"""Handles a reply in a job's thread: records it, refuses it with a reason, or applies its edit or deletion."""

from collections.abc import Sequence
from dataclasses import replace

from bot.domain.context.message_text import beginning
from bot.domain.jobs.job import ARCHIVED, Problem
from bot.domain.notices import keys
from bot.domain.notices.messages import CARD_CHANGED, ActionAnswer, ActionAnswered, NewNotice, Reaction
from bot.domain.people.permissions import is_outsider
from bot.domain.requests.edits import (
    MAX_QUOTED,
    came_back,
    for_the_agent,
    not_fully_sent,
    offer,
    reaction_of,
    revised,
    taken_back,
    with_new_words,
)
from bot.domain.requests.new_jobs import Written
from bot.domain.requests.request import (
    NO_WORDS,
    NOT_SENT_YET,
    Attachments,
    RejectionReason,
    Reply,
    Request,
    RequestKind,
    RequestState,
    WayIn,
)
from bot.domain.requests.settle import rejection
from bot.domain.threads.direct_messages import may_be_job, meaning_of_line, says_it_is_a_job
from bot.domain.threads.reply_rules import ReplyMeaning, ReplyTerms, asks_for_a_job, meaning, never_began
from bot.domain.threads.thread import Thread
from bot.ports.store import Requests
from bot.ports.transaction import RecordingTransaction
from bot.service.direct_messages import ask_about_lines, begin_job, hold, record_line
from bot.service.edit import revise_start, start_caught_up
from bot.service.start import (
    job_of_reply,
    new_request,
    newest_in,
    reaction_notice,
    record_start,
    request_id,
    source_key_of,
)
from bot.service.words import record_word, tell_that_muted


async def obstacle(requests: Requests, thread: Thread) -> RejectionReason | None:
    """Returns why a follow-up can no longer be sent; None if it can."""
    state = thread.state
    if state.failure.problem is Problem.GONE:
        return RejectionReason.GONE
    if state.job is not None:
        return RejectionReason.ARCHIVED if state.job.status == ARCHIVED else None
    start = await requests.find_start(thread.id)
    if start is None or start.state in {RequestState.REJECTED, RequestState.WITHDRAWN}:
        return RejectionReason.NOT_STARTED
    return None


_ON_ITS_WAY = frozenset({RequestState.SENDING, RequestState.ACCEPTED})
SETTLING = 1.0
"""Seconds that a follow-up waits before it is sent, so that an earlier one that Slack delivers late still precedes it.
"""


async def record_reply(tx: RecordingTransaction, thread: Thread, reply: Reply, terms: ReplyTerms) -> None:
    """Records a message in a job's Slack thread as a follow-up, as a word for Pagehand, or with the reason why it
    cannot be sent. Messages between people are ignored.
    """
    if reply.edited_at and await _revised_before(tx, thread, reply, terms):
        return
    if not reply.edited_at and await tx.requests.get(request_id(source_key_of(reply))):
        return
    if reply.withdrawn:
        # Recorded all the same: the version before the edit or deletion may still arrive.
        withdrawn = replace(_follow_up(tx, thread, reply), text="", state=RequestState.WITHDRAWN)
        await tx.requests.add(withdrawn)
    elif reply.word is not None:
        await record_word(tx, thread, reply, reply.word)
    else:
        await _record_words(tx, thread, reply, terms)


async def _record_words(tx: RecordingTransaction, thread: Thread, reply: Reply, terms: ReplyTerms) -> None:
    means = meaning(reply, thread, terms.modes(thread.channel_id))
    if means is ReplyMeaning.BETWEEN_PEOPLE:
        return
    if means is ReplyMeaning.ASK_FIRST and is_outsider(reply.person, thread):
        means = ReplyMeaning.SEND  # it will be refused, so there is nothing to ask
    match means:
        case ReplyMeaning.MUTED:
            await tell_that_muted(tx, thread, reply)
        case ReplyMeaning.ASK_FIRST:
            await hold(tx, thread, _follow_up(tx, thread, reply))
        case ReplyMeaning.THANKS:
            thanks = replace(_follow_up(tx, thread, reply), state=RequestState.WITHDRAWN)
            if await tx.requests.add(thanks):
                await tx.notices.add(thread.id, reaction_notice(thanks, Reaction.WELCOME))
        case ReplyMeaning.SEND if never_began(thread) and asks_for_a_job(reply):
            await record_start(tx, job_of_reply(reply, thread))
        case ReplyMeaning.SEND:
            request = await checked(tx, thread, _follow_up(tx, thread, reply))
            if await tx.requests.add(request):
                await _explain(tx, request, reply.attachments, terms.merge_seconds)


def _follow_up(tx: RecordingTransaction, thread: Thread, reply: Reply) -> Request:
    way_in = WayIn.MENTION if reply.mentions_us else WayIn.REPLY
    request = new_request(thread, RequestKind.FOLLOW_UP, source_key_of(reply), reply.person, reply.text, way_in=way_in)
    request = replace(request, written_at=reply.message_ts, recorded_at=tx.now, edited_at=reply.edited_at)
    return replace(request, attachments=reply.attachments)


async def _revised_before(tx: RecordingTransaction, thread: Thread, reply: Reply, terms: ReplyTerms) -> bool:
    """Records a newer version of a message that was recorded before; False if it was not."""
    first = await tx.requests.get(request_id(source_key_of(reply)))
    if first is None:
        return False
    if first.kind is RequestKind.START:
        await revise_start(tx, thread, first, reply)
    elif first.kind is RequestKind.FOLLOW_UP:
        before = await tx.requests.find_by_reply(thread.id, reply.message_ts)
        line = before[-1]
        if says_it_is_a_job(reply, line):
            asked = job_of_reply(reply, None)
            await begin_job(tx, thread, line, asked, merge_seconds=terms.merge_seconds)
            return True
        await _revise(tx, thread, before, reply, terms)
        if may_be_job(line):
            await ask_about_lines(tx, thread, line.person_id)
    return True


async def record_mention(tx: RecordingTransaction, reply: Reply, terms: ReplyTerms) -> bool:
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
        await record_reply(tx, thread, reply, terms)
    return True


async def catch_up(tx: RecordingTransaction, request: Request) -> None:
    """Applies edits that came while a request was being sent. `request` is its state after sending."""
    after = came_back(request)
    if after != request:
        await tx.requests.save(after)
    if request.kind is RequestKind.START:
        await start_caught_up(tx, request, after)
    elif after.state is not request.state:
        of_reply = await tx.requests.find_by_reply(after.thread_id, after.written_at)
        await _react_to_withdrawal(tx, after, of_reply[:-1])
        await tx.notices.add(after.thread_id, CARD_CHANGED)  # it counts waiting follow-ups
    if (notice := offer(after) or taken_back(after)) is not None:
        await tx.notices.add(after.thread_id, notice)


async def _revise(
    tx: RecordingTransaction, thread: Thread, before: Sequence[Request], reply: Reply, terms: ReplyTerms
) -> None:
    """Records a newer version of a reply by changing the last request made from it."""
    request, mode = before[-1], terms.modes(thread.channel_id)
    means = meaning_of_line(reply) if may_be_job(request) else meaning(reply, thread, mode)
    reply = for_the_agent(reply, request, means)
    after = revised(request, reply)
    reopened = after.state in NOT_SENT_YET and request.state not in NOT_SENT_YET
    if after == request:
        return
    if request.state is after.state is RequestState.AWAITING_PERSON:
        await _revise_held(tx, thread, request, after, means, merge_seconds=terms.merge_seconds)
        return
    if reopened and means is not ReplyMeaning.SEND:
        await _reopen_otherwise(tx, thread, after, reply, means)
        return
    if reopened:
        after = await checked(tx, thread, after)
    await tx.requests.save(after)
    if reopened:
        await _explain(tx, after, reply.attachments, terms.merge_seconds)
    elif after.state is RequestState.WITHDRAWN and request.state is not RequestState.WITHDRAWN:
        await _react_to_withdrawal(tx, after, before[:-1])
        if thread.card_ts is not None:
            await tx.notices.add(thread.id, CARD_CHANGED)  # it counts waiting follow-ups
    elif _holds_more(reply, request) and (after.state in _ON_ITS_WAY or after.uncertain):
        await tx.notices.add(thread.id, not_fully_sent(after, reply.attachments, words_sent=True))
    notice = offer(after) or taken_back(after)
    if notice is not None and after.latest_text != request.latest_text:
        await tx.notices.add(thread.id, notice)


async def _revise_held(
    tx: RecordingTransaction,
    thread: Thread,
    request: Request,
    now: Request,
    means: ReplyMeaning,
    *,
    merge_seconds: float,
) -> None:
    """Revises a held reply: its person is asked about the new text, unless that says whom it is for."""
    says_more = (now.text, now.attachments) != (request.text, request.attachments)
    if means is ReplyMeaning.SEND:
        await release(tx, thread, now, merge_seconds)
        return
    await tx.requests.save(now)
    if says_more and means is ReplyMeaning.ASK_FIRST:
        await hold(tx, thread, now)


async def _reopen_otherwise(
    tx: RecordingTransaction, thread: Thread, request: Request, reply: Reply, means: ReplyMeaning
) -> None:
    """Reopens a withdrawn reply whose new text cannot simply be sent."""
    match means:
        case ReplyMeaning.ASK_FIRST:
            await tx.requests.save(replace(request, state=RequestState.AWAITING_PERSON))
            await hold(tx, thread, replace(request, state=RequestState.AWAITING_PERSON))
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


async def checked(tx: RecordingTransaction, thread: Thread, request: Request) -> Request:
    """Returns a new request, rejected if there is a reason."""
    problem = await obstacle(tx.requests, thread) or ("" if request.text or request.attachments else NO_WORDS)
    return replace(request, state=RequestState.REJECTED, problem=problem) if problem else request


async def _explain(tx: RecordingTransaction, request: Request, attachments: Attachments, merge_seconds: float) -> None:
    """Adds the reaction to a newly recorded reply, and reports why it is not sent, if so."""
    reaction = reaction_of(request.state)
    await tx.notices.add(request.thread_id, reaction_notice(request, reaction, merge_seconds=merge_seconds))
    sent = request.state in NOT_SENT_YET
    if request.problem == NO_WORDS:
        await tx.notices.add(request.thread_id, not_fully_sent(request, attachments, words_sent=False))
    elif not sent:
        await tx.notices.add(request.thread_id, rejection(request, RejectionReason(request.problem)))


async def release(tx: RecordingTransaction, thread: Thread, held: Request, merge_seconds: float) -> bool:
    """Passes a held reply on to the agent. False, and its person is told, if that is not possible."""
    released = await checked(tx, thread, replace(held, state=RequestState.RECEIVED))
    await tx.requests.save(released)
    await _explain(tx, released, held.attachments, merge_seconds)
    return released.state in NOT_SENT_YET


async def send_new_words(
    tx: RecordingTransaction, thread: Thread, request: Request, merge_seconds: float
) -> ActionAnswer:
    """Records a message's newest text as a follow-up to this job, which may have replaced the one that got the earlier
    text. Returns the answer to show.
    """
    if offer(request) is None:
        return ActionAnswer.NOTHING_NEW
    follow_up = await checked(tx, thread, replace(with_new_words(request, tx.now), thread_id=thread.id))
    if not await tx.requests.add(follow_up):
        return ActionAnswer.ALREADY_ACCEPTED
    await tx.requests.save(replace(request, latest_text=None))  # later edits change the follow-up
    await _explain(tx, follow_up, Attachments(), merge_seconds)
    waits = follow_up.state in NOT_SENT_YET
    return ActionAnswer.NEW_WORDS_SENT if waits else ActionAnswer.SEE_THREAD


async def thread_of(tx: RecordingTransaction, reply: Reply) -> Thread | None:
    """Returns the thread of a message, locked: that of its request, or else the newest in its Slack thread."""
    request = await tx.requests.get(request_id(source_key_of(reply)))
    if request is not None:
        return await tx.threads.get(request.thread_id)
    return await newest_in(tx.threads, reply.channel_id, reply.thread_ts) if reply.thread_ts else None


async def record_written(tx: RecordingTransaction, thread: Thread, written: Written) -> None:
    """Records, once, a follow-up that is not a message of its thread and so has no reaction.

    Pressing its button again shows the result of the first time.
    """
    first = await tx.requests.get(request_id(written.source_key))
    if first is not None:
        if written.way_in is WayIn.BUTTON:
            answer = ActionAnswered(written.person.id, _answer_again(first))
            await tx.notices.add(first.thread_id, NewNotice(keys.action_answered(written.source_key), answer))
        return
    if thread.state.people.muted_by:
        about = beginning(written.text, MAX_QUOTED)
        told = ActionAnswered(written.person.id, ActionAnswer.REPLY_NOT_SENT_MUTED, about)
        await tx.notices.add(thread.id, NewNotice(keys.action_answered(written.source_key), told))
        return
    request = await checked(tx, thread, _written_follow_up(tx, thread, written))
    if await tx.requests.add(request) and request.state not in NOT_SENT_YET:
        await tx.notices.add(request.thread_id, rejection(request, RejectionReason(request.problem)))


def _written_follow_up(tx: RecordingTransaction, thread: Thread, written: Written) -> Request:
    person, text, way_in = written.person, written.text, written.way_in
    request = new_request(thread, RequestKind.FOLLOW_UP, written.source_key, person, text, way_in=way_in)
    return replace(request, written_at=f"{tx.now:.6f}", recorded_at=tx.now)


def _answer_again(first: Request) -> ActionAnswer:
    return ActionAnswer.SEE_THREAD if first.state is RequestState.REJECTED else ActionAnswer.ALREADY_ACCEPTED
