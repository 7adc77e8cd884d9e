"""Handles a message in a job's thread, when it is written and when it is edited or deleted: a follow-up, a word for
Pagehand (`!stop`), the request for a job, or talk between people.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bot.domain.commands import Options, ThreadWord, has_wrong_option
from bot.domain.jobs.job import Problem
from bot.domain.jobs.stopping import was_stopped_after
from bot.domain.messages import beginning
from bot.domain.permissions import is_outsider
from bot.domain.requests import edits
from bot.domain.requests.held import is_late, meaning_of_line, says_it_is_a_job
from bot.domain.requests.new_jobs import asked_in, job_of_reply, new_request, request_id, source_key_of
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
from bot.domain.threads.reply_rules import ReplyMeaning, ReplyModes, asks_for_a_job, may_ask, meaning, never_began
from bot.domain.threads.thread import Thread
from bot.notices.answers import ActionAnswer, ActionAnswered, HelpRequested
from bot.notices.notice import CARD_CHANGED, NewNotice, NoticeKey, Reaction
from bot.service.direct_messages import ask_about_lines, begin_job, record_line
from bot.service.follow_up import ask, checked, explain, follow_up_of, hold, release, tell_not_sent
from bot.service.following_jobs import alive, end_start, keep_followed
from bot.service.start import newest_in, record_start
from bot.store.store import RecordingTransaction

_KIND_OF: Mapping[ThreadWord, RequestKind] = {
    ThreadWord.STATUS: RequestKind.SHOW_STATUS,
    ThreadWord.MUTE: RequestKind.MUTE,
    ThreadWord.UNMUTE: RequestKind.UNMUTE,
    ThreadWord.STOP: RequestKind.STOP,
    ThreadWord.RETRY: RequestKind.RETRY,
    ThreadWord.DISCARD: RequestKind.DISCARD,
}
"""The kinds of the requests that words make. The others make none."""
_NOT_SENT: Mapping[ReplyMeaning, ActionAnswer] = {
    ReplyMeaning.MUTED: ActionAnswer.REPLY_NOT_SENT_MUTED,
    ReplyMeaning.FOR_A_NEW_JOB: ActionAnswer.REPLY_NOT_SENT_OPTIONS,
}
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
            await begin_job(tx, thread, line, job_of_reply(reply, None))
            return True
        await _revise_follow_up(tx, thread, before, reply, modes)
        if line.may_be_job:
            await ask_about_lines(tx, thread, line.person_id)
    else:
        means = meaning(reply, thread, modes(thread.channel_id))
        await _answer(tx, first, first, edits.without_effect(reply, first, first, means))
    return True


async def catch_up(tx: RecordingTransaction, request: Request) -> None:
    """Applies edits that came while a request was being sent. `request` is its state after sending."""
    after = edits.came_back(request)
    if after != request:
        await tx.requests.save(after)
    if request.kind is RequestKind.START:
        await _start_caught_up(tx, request, after)
    elif after.state is not request.state:
        of_reply = await tx.requests.find_by_reply(after.thread_id, after.written_at)
        await _react_to_withdrawal(tx, after, of_reply[:-1])
        await tx.notices.add(after.thread_id, CARD_CHANGED)  # it counts waiting follow-ups
    if (notice := edits.offer(after) or edits.taken_back(after)) is not None:
        await tx.notices.add(after.thread_id, notice)


async def _revise_follow_up(
    tx: RecordingTransaction, thread: Thread, before: Sequence[Request], reply: Reply, modes: ReplyModes
) -> None:
    """Records a newer version of a reply by changing the last request made from it."""
    request = before[-1]
    means = _meaning(reply, thread, request, modes)
    reply = edits.for_the_agent(reply, request, means)
    after = edits.revised(request, reply)
    if after == request:
        return
    reopened = after.state in NOT_SENT_YET and request.state not in NOT_SENT_YET
    holds_more = bool(reply.attachments) and not reply.withdrawn and reply.attachments != request.attachments
    if request.state is after.state is RequestState.AWAITING_PERSON:
        await _revise_held(tx, thread, request, after, means)
        return
    if reopened:
        await _reopen(tx, thread, request, after, reply=reply, means=means)
        return
    await tx.requests.save(after)
    if after.state is RequestState.WITHDRAWN and request.state is not RequestState.WITHDRAWN:
        await _react_to_withdrawal(tx, after, before[:-1])
        if thread.card_ts is not None:
            await tx.notices.add(thread.id, CARD_CHANGED)  # it counts waiting follow-ups
    elif holds_more and (after.state in _ON_ITS_WAY or after.uncertain):
        await tx.notices.add(thread.id, edits.not_fully_sent(after, reply.attachments, words_sent=True))
    await _answer(tx, request, after, edits.without_effect(reply, request, after, means))


async def _reopen(
    tx: RecordingTransaction, thread: Thread, request: Request, after: Request, *, reply: Reply, means: ReplyMeaning
) -> None:
    """Handles a withdrawn reply whose new text may be for the agent."""
    if means is ReplyMeaning.ASK_FIRST:
        await hold(tx, after, HeldBecause.LATE if is_late(reply, thread) else None, known=True)
    elif means in _NOT_SENT:
        await tell_not_sent(tx, thread, reply, _NOT_SENT[means], ActionAnswered.key_of_muted(reply))
    elif means is ReplyMeaning.SEND and await _was_overtaken_by_a_stop(tx, thread, after):
        await hold(tx, after, HeldBecause.STOPPED, known=True)
    elif means is ReplyMeaning.SEND:
        after = await checked(tx, thread, after)
        await tx.requests.save(after)
        await explain(tx, after)
        await _answer(tx, request, after, edits.without_effect(reply, request, after, means))


async def _answer(tx: RecordingTransaction, before: Request, after: Request, told: NewNotice | None) -> None:
    """Answers an edit with what its author is `told`; otherwise offers to send new words, if the earlier ones were."""
    if told is None and after.latest_text != before.latest_text:
        told = edits.offer(after) or edits.taken_back(after)
    if told is not None:
        await tx.notices.add(after.thread_id, told)


def _meaning(reply: Reply, thread: Thread, request: Request, modes: ReplyModes) -> ReplyMeaning:
    """Returns how a newer version of a reply is handled. A late one is not sent before its writer has said so. That of
    an outsider will be refused, so there is nothing to ask.
    """
    if request.may_be_job:
        return meaning_of_line(reply)
    means = meaning(reply, thread, modes(thread.channel_id))
    if is_outsider(request.person, thread):
        return ReplyMeaning.SEND if means is ReplyMeaning.ASK_FIRST else means
    late = reply.arrival is Arrival.LATE
    return ReplyMeaning.ASK_FIRST if late and means is ReplyMeaning.SEND else means


async def _revise_held(
    tx: RecordingTransaction, thread: Thread, request: Request, now: Request, means: ReplyMeaning
) -> None:
    """Revises a held reply: its person is asked about the new text, unless that says whom it is for."""
    says_more = (now.text, now.attachments) != (request.text, request.attachments)
    if means is ReplyMeaning.SEND and now.held_because is None:
        await release(tx, thread, now)
        return
    await tx.requests.save(now)
    if says_more and means in {ReplyMeaning.ASK_FIRST, ReplyMeaning.SEND}:
        await hold(tx, now, now.held_because)


async def _react_to_withdrawal(tx: RecordingTransaction, request: Request, before: Sequence[Request]) -> None:
    """Removes the reaction of a reply that is not sent, or restores that of its earlier text."""
    reaction = edits.reaction_of(before[-1].state) if before else None
    await tx.notices.add(request.thread_id, edits.reaction_notice(request, reaction))


async def _revise_start(
    tx: RecordingTransaction, thread: Thread, start: Request, reply: Reply, modes: ReplyModes
) -> None:
    """Records a newer version of the message that asked for a job. It changes what is not sent yet. What was sent stays
    unchanged, and the new text is offered as a follow-up.
    """
    options, prompt = asked_in(reply)
    to_us = start.way_in is WayIn.DIRECT_MESSAGE or reply.mentions_us or reply.word is ThreadWord.NEW
    is_wrong = has_wrong_option(reply.text)
    unasked = edits.certainly_unsent(start) and (is_wrong or not to_us)
    gone = reply.withdrawn or unasked or (is_wrong and start.state is RequestState.SENDING)  # which may come back
    after = edits.revised(start, replace(reply, text="" if gone else prompt, withdrawn=gone))
    if after == start:
        return
    if edits.certainly_unsent(start) and not gone:
        after = await _with_options(tx, thread, start, after, options)
    reopened = start.state is not after.state and after.state in NOT_SENT_YET
    if reopened and reply.arrival is Arrival.LATE:
        await hold(tx, after, HeldBecause.LATE, known=True)
        return
    await tx.requests.save(after)
    if after.state is RequestState.WITHDRAWN:
        await keep_followed(tx, thread)
        await end_start(tx, thread, start, Problem.WITHDRAWN)
        if is_wrong and not reply.withdrawn:
            told = ActionAnswered(start.person_id, ActionAnswer.TAKEN_BACK_BY_OPTIONS)
            await tx.notices.add(thread.id, NewNotice(ActionAnswered.key_of_project(after), told))
    elif after.held_because and after.text != start.text:
        await ask(tx, after)
    elif reopened:
        await tx.threads.save_state(thread.id, thread.state.with_problem(None), poll_in=None)
        await _show_start(tx, thread, after)
    elif after.text != start.text:
        await _show_start(tx, thread, start)
    means = meaning(reply, thread, modes(thread.channel_id))
    await _answer(tx, start, after, edits.without_effect(reply, start, after, means))
    if not gone and (late := edits.project_too_late(after, thread.options, options)) is not None:
        await tx.notices.add(thread.id, late)


async def _with_options(
    tx: RecordingTransaction, thread: Thread, start: Request, after: Request, said: Options
) -> Request:
    """Applies the options that the message of an unsent start has now. Whatever they or its text affect is prepared
    again.
    """
    options = edits.revised_options(thread.options, said)
    if options != thread.options:
        project = thread.project
        if options.project_reason is None and thread.options.project_reason is not None:
            earlier = await tx.threads.get(thread.follows) if thread.follows else None
            project = earlier.project if earlier else ""
        await tx.threads.set_project(thread.id, project, options)
    elif start.state is not RequestState.AWAITING_PERSON or after.text == start.text:
        return after
    prepared = after.state in {RequestState.WAITING, RequestState.AWAITING_PERSON} and not after.held_because
    return replace(after, state=RequestState.RECEIVED) if prepared else after


async def _start_caught_up(tx: RecordingTransaction, before: Request, after: Request) -> None:
    """Updates a thread whose start was edited during a failed attempt to send it."""
    thread = None if after == before else await tx.threads.get(after.thread_id)
    if thread is None:
        return
    if after.state is RequestState.WITHDRAWN:
        await keep_followed(tx, thread)
        await end_start(tx, thread, before, Problem.WITHDRAWN)
    elif after.text != before.text:
        await _show_start(tx, thread, before)


async def _show_start(tx: RecordingTransaction, thread: Thread, before: Request) -> None:
    """Updates the card if there is one or one is due; before a start is prepared, it has none."""
    if thread.card_ts is not None or before.state in {RequestState.WAITING, RequestState.SENDING}:
        await tx.notices.add(thread.id, CARD_CHANGED)


async def record_reply(tx: RecordingTransaction, thread: Thread, reply: Reply, modes: ReplyModes) -> None:
    """Records a message in a job's Slack thread as a follow-up, as a word for Pagehand, or with the reason why it
    cannot be sent. Messages between people are ignored.
    """
    if reply.edited_at and await revise(tx, thread, reply, modes):
        return
    if not reply.edited_at and await tx.requests.get(request_id(source_key_of(reply))):
        return
    if reply.withdrawn:
        # Recorded all the same: the version before the edit or deletion may still arrive.
        withdrawn = replace(_follow_up(tx, thread, reply), text="", state=RequestState.WITHDRAWN)
        await tx.requests.add(withdrawn)
        if (told := edits.without_effect(reply, None, None, ReplyMeaning.BETWEEN_PEOPLE)) is not None:
            await tx.notices.add(thread.id, told)
    elif reply.word is not None:
        await _record_word(tx, thread, reply, reply.word)
    else:
        await _record_words(tx, thread, reply, modes)


async def _record_words(tx: RecordingTransaction, thread: Thread, reply: Reply, modes: ReplyModes) -> None:
    means = meaning(reply, thread, modes(thread.channel_id))
    if means is ReplyMeaning.BETWEEN_PEOPLE:
        return
    if means is ReplyMeaning.ASK_FIRST and is_outsider(reply.person, thread):
        means = ReplyMeaning.SEND  # it will be refused, so there is nothing to ask
    late = HeldBecause.LATE if is_late(reply, thread) else None
    match means:
        case ReplyMeaning.MUTED | ReplyMeaning.FOR_A_NEW_JOB:
            await tell_not_sent(tx, thread, reply, _NOT_SENT[means], ActionAnswered.key_of_muted(reply))
        case ReplyMeaning.ASK_FIRST:
            await hold(tx, _follow_up(tx, thread, reply), late)
        case ReplyMeaning.THANKS:
            thanks = replace(_follow_up(tx, thread, reply), state=RequestState.WITHDRAWN)
            if await tx.requests.add(thanks):
                await tx.notices.add(thread.id, edits.reaction_notice(thanks, Reaction.WELCOME))
        case ReplyMeaning.SEND if never_began(thread) and asks_for_a_job(reply):
            await record_start(tx, job_of_reply(reply, thread))
        case ReplyMeaning.SEND if late:
            await hold(tx, _follow_up(tx, thread, reply), late)
        case ReplyMeaning.SEND:
            await _have_sent(tx, thread, reply)


async def _have_sent(tx: RecordingTransaction, thread: Thread, reply: Reply) -> None:
    """Records a follow-up, unless the job was stopped after it was written: Slack delivered it late."""
    request = _follow_up(tx, thread, reply)
    if await _was_overtaken_by_a_stop(tx, thread, request):
        await hold(tx, request, HeldBecause.STOPPED)
        return
    request = await checked(tx, thread, request)
    if await tx.requests.add(request):
        await explain(tx, request)


async def _was_overtaken_by_a_stop(tx: RecordingTransaction, thread: Thread, request: Request) -> bool:
    """Returns whether to ask its writer first. That of an outsider will be refused, so there is nothing to ask."""
    if is_outsider(request.person, thread):
        return False
    return was_stopped_after(request.asked_at, await tx.requests.stops(thread.id))


def _follow_up(tx: RecordingTransaction, thread: Thread, reply: Reply) -> Request:
    return follow_up_of(tx, thread, reply, WayIn.MENTION if reply.mentions_us else WayIn.REPLY)


async def record_mention(tx: RecordingTransaction, reply: Reply, modes: ReplyModes) -> bool:
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
        await record_reply(tx, thread, reply, modes)
    return True


async def thread_of(tx: RecordingTransaction, reply: Reply) -> Thread | None:
    """Returns the thread of a message, locked: that of its request, or else the newest in its Slack thread."""
    request = await tx.requests.get(request_id(source_key_of(reply)))
    if request is not None:
        return await tx.threads.get(request.thread_id)
    return await newest_in(tx.threads, reply.channel_id, reply.thread_ts) if reply.thread_ts else None


async def _record_word(tx: RecordingTransaction, thread: Thread, reply: Reply, word: ThreadWord) -> None:
    """Records what a word asks for. Whether its person may, and what it leads to, is decided later."""
    source_key = source_key_of(reply)
    if (kind := _KIND_OF.get(word)) is not None:
        request = new_request(thread, kind, source_key, reply.person, "", way_in=WayIn.WORD)
        request = replace(request, written_at=reply.message_ts, recorded_at=tx.now)
        if is_late(reply, thread) and kind is not RequestKind.SHOW_STATUS:
            await hold(tx, request, HeldBecause.LATE)
        else:
            await tx.requests.add(request)
    elif word is ThreadWord.NEW and not may_ask(reply.message_ts, reply.edited_at):
        told = ActionAnswered(reply.person.id, ActionAnswer.EDITED_TOO_LATE, beginning(reply.text, edits.MAX_QUOTED))
        await tx.notices.add(thread.id, NewNotice(ActionAnswered.key_of_edit(reply), told))
    elif word is ThreadWord.NEW:
        await record_start(tx, job_of_reply(reply, thread))
    else:
        await tx.notices.add(thread.id, NewNotice(NoticeKey(source_key), help_for(reply)))


def help_for(reply: Reply) -> HelpRequested:
    """The answer to somebody who wants help, or probably meant another word."""
    return HelpRequested(reply.person.id, ThreadWord(reply.text) if reply.text in set(ThreadWord) else None)
