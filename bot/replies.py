"""What becomes of a reply in a job's thread: recorded, refused with its reason, edited, withdrawn.

Each function is part of a transaction in which the thread is locked.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol
from uuid import NAMESPACE_URL, uuid5

from bot.domain.edits import came_back, not_fully_sent, offer, reaction_of, revised, with_new_words
from bot.domain.jobs import ARCHIVED, Problem
from bot.domain.new_jobs import NewJob
from bot.domain.notices import keys
from bot.domain.notices.messages import CARD_CHANGED, ActionAnswer, ActionAnswered, NewNotice, Reaction, ReactionChanged
from bot.domain.permissions import may_steer
from bot.domain.requests import (
    NO_WORDS,
    NOT_SENT_YET,
    Attachments,
    Person,
    RejectionReason,
    Reply,
    Request,
    RequestKind,
    RequestState,
)
from bot.domain.settle import rejection
from bot.domain.threads import Thread, ThreadOptions
from bot.ports import HasNotices, HasNow, HasRequests, HasThreads

_ON_ITS_WAY = frozenset({RequestState.WAITING, RequestState.SENDING, RequestState.ACCEPTED})
SETTLING = 1.0
"""Seconds that a follow-up waits before it goes out, so that one delivered out of order can still overtake it."""


class RequestTransaction(HasNow, HasThreads, HasRequests, HasNotices, Protocol):
    """What recording what people ask for touches: nothing is claimed, sent or delivered by that."""


def reaction_notice(request: Request, reaction: Reaction | None) -> NewNotice:
    """The notice that a reply is to carry a reaction, or none any more."""
    return NewNotice(keys.reaction(request), ReactionChanged(request.written_at, reaction))


async def record_start(tx: RequestTransaction, asked: NewJob) -> bool:
    """Records a job to start. False, and nothing recorded, where it was recorded before, or where the Slack thread got
    its first job a moment ago.
    """
    thread = Thread(
        id=request_id(asked.source_key),
        team_id=asked.person.team_id,
        channel_id=asked.channel_id,
        requester_id=asked.person.id,
        prompt=asked.prompt,
        project="",
        created_at=tx.now,
        ts=asked.thread_ts or None,
        origin=asked.origin,
        options=ThreadOptions(asked.way_in, quiet=bool(asked.quiet), project_said=asked.project_said),
    )
    if not await tx.threads.add(thread):
        return False
    start = new_request(thread, RequestKind.START, asked.source_key, asked.person, asked.prompt)
    start = replace(start, written_at=asked.message_ts, attachments=asked.attachments, context=asked.context)
    return await tx.requests.add(start)


async def record_reply(tx: RequestTransaction, thread: Thread, reply: Reply) -> None:
    """Records a reply in a job's thread: as a follow-up, or with the reason why it cannot be one."""
    before = await tx.requests.find_by_reply(thread.id, reply.message_ts) if reply.edited_at else ()
    if before:
        await _revise(tx, thread, before, reply)
        return
    if not (reply.withdrawn or may_steer(reply.person, thread)):
        await _turn_away(tx, thread, reply)
        return
    request = new_request(thread, RequestKind.FOLLOW_UP, source_key_of(reply), reply.person, reply.text)
    request = replace(request, written_at=reply.message_ts, recorded_at=tx.now, edited_at=reply.edited_at)
    request = replace(request, attachments=reply.attachments)
    if reply.withdrawn:
        # Kept all the same: what was written before the edit or the deletion may come later.
        await tx.requests.add(replace(request, text="", state=RequestState.WITHDRAWN))
        return
    request = await _checked(tx, thread, request)
    if await tx.requests.add(request):
        await _explain(tx, request, reply.attachments)


async def record_written(tx: RequestTransaction, thread: Thread, person: Person, text: str, *, source_key: str) -> None:
    """Records a follow-up that is no message of the thread, so that it carries no mark."""
    request = new_request(thread, RequestKind.FOLLOW_UP, source_key, person, text)
    request = await _checked(tx, thread, replace(request, written_at=f"{tx.now:.6f}", recorded_at=tx.now))
    if await tx.requests.add(request) and request.state not in NOT_SENT_YET:
        await tx.notices.add(request.thread_id, rejection(request, RejectionReason(request.problem)))


async def catch_up(tx: RequestTransaction, request: Request) -> None:
    """Does what edits ask for that came while a request was being sent. `request` is as it came back from that."""
    after = came_back(request)
    if after != request:
        await tx.requests.save(after)
    if after.state is not request.state:
        of_reply = await tx.requests.find_by_reply(after.thread_id, after.written_at)
        await _react_to_withdrawal(tx, after, of_reply[:-1])
    if (notice := offer(after)) is not None:
        await tx.notices.add(after.thread_id, notice)


async def _revise(tx: RequestTransaction, thread: Thread, before: Sequence[Request], reply: Reply) -> None:
    """Records a newer version of a reply. What was made of it last is what it changes."""
    request = before[-1]
    after = revised(request, reply)
    reopened = after.state in NOT_SENT_YET and request.state not in NOT_SENT_YET
    if after == request:
        return
    if reopened and not may_steer(reply.person, thread):
        await _turn_away(tx, thread, reply)
        return
    if reopened:
        after = await _checked(tx, thread, after)
    await tx.requests.save(after)
    if reopened:
        await _explain(tx, after, reply.attachments)
    elif after.state is not request.state:
        await _react_to_withdrawal(tx, after, before[:-1])
    elif reply.attachments and not reply.withdrawn and after.state in _ON_ITS_WAY:
        await tx.notices.add(thread.id, not_fully_sent(after, reply.attachments, words_sent=True))
    notice = offer(after)
    if notice is not None and after.latest_text != request.latest_text:
        await tx.notices.add(thread.id, notice)


async def _turn_away(tx: RequestTransaction, thread: Thread, reply: Reply) -> None:
    """Tells somebody who is not known to be of the thread's workspace that their reply is not sent."""
    answer = ActionAnswer.OTHER_WORKSPACE if reply.person.team_id else ActionAnswer.UNKNOWN_WORKSPACE
    await tx.notices.add(thread.id, NewNotice(keys.reply_not_allowed(reply), ActionAnswered(reply.person.id, answer)))


async def _react_to_withdrawal(tx: RequestTransaction, request: Request, before: Sequence[Request]) -> None:
    """Takes the reaction off a reply that is not sent, or goes back to that of its earlier words."""
    reaction = reaction_of(before[-1].state) if before else None
    await tx.notices.add(request.thread_id, reaction_notice(request, reaction))
    await tx.notices.add(request.thread_id, CARD_CHANGED)  # it counts what waits


async def _checked(tx: RequestTransaction, thread: Thread, request: Request) -> Request:
    """A new request, refused where there is a reason for it."""
    obstacle = await _obstacle(tx, thread) or ("" if request.text else NO_WORDS)
    return replace(request, state=RequestState.REJECTED, problem=obstacle) if obstacle else request


async def _explain(tx: RequestTransaction, request: Request, attachments: Attachments) -> None:
    """Puts the reaction on the reply of a request that was just recorded, and says what of it is not sent."""
    await tx.notices.add(request.thread_id, reaction_notice(request, reaction_of(request.state)))
    sent = request.state in NOT_SENT_YET
    if request.problem == NO_WORDS or (sent and attachments):
        await tx.notices.add(request.thread_id, not_fully_sent(request, attachments, words_sent=sent))
    elif not sent:
        await tx.notices.add(request.thread_id, rejection(request, RejectionReason(request.problem)))


async def send_new_words(tx: RequestTransaction, thread: Thread, request: Request, person: Person) -> ActionAnswer:
    """Records the newest words of a reply as a follow-up; the answer says how that went."""
    if person.id != request.person_id:  # who wrote it may steer: that was looked at when it was recorded
        return ActionAnswer.NOT_YOURS if may_steer(person, thread) else ActionAnswer.OTHER_WORKSPACE
    if offer(request) is None:
        return ActionAnswer.NOTHING_NEW
    follow_up = await _checked(tx, thread, with_new_words(request, tx.now))
    if not await tx.requests.add(follow_up):
        return ActionAnswer.ALREADY_ACCEPTED
    await tx.requests.save(replace(request, latest_text=None))  # what is edited from now on changes the follow-up
    await _explain(tx, follow_up, Attachments())
    waits = follow_up.state in NOT_SENT_YET
    return ActionAnswer.NEW_WORDS_SENT if waits else ActionAnswer.SEE_THREAD


async def thread_of(tx: RequestTransaction, reply: Reply) -> Thread | None:
    """The thread of a reply, locked. Of one whose deletion alone is known, it is that of what was made of it."""
    if reply.thread_ts:
        return await tx.threads.find_newest(reply.channel_id, reply.thread_ts)
    request = await tx.requests.get(request_id(source_key_of(reply)))
    return await tx.threads.get(request.thread_id) if request else None


async def _obstacle(tx: RequestTransaction, thread: Thread) -> RejectionReason | None:
    """Why a follow-up cannot be sent any more; None when it can."""
    state = thread.state
    if state.problem is Problem.GONE:
        return RejectionReason.GONE
    if state.job is not None:
        return RejectionReason.ARCHIVED if state.job.status == ARCHIVED else None
    start = await tx.requests.find_start(thread.id)
    if start is None or start.state is RequestState.REJECTED:
        return RejectionReason.NOT_STARTED
    return None


def new_request(thread: Thread, kind: RequestKind, source_key: str, person: Person, text: str) -> Request:
    """A request that waits to be sent."""
    return Request(
        id=request_id(source_key),
        thread_id=thread.id,
        kind=kind,
        source_key=source_key,
        person_id=person.id,
        text=text,
        written_at="",
        recorded_at=thread.created_at,
        team_id=person.team_id,
    )


def source_key_of(reply: Reply) -> str:
    """The same for all deliveries and versions of a reply."""
    return f"message/{reply.channel_id}/{reply.message_ts}"


def request_id(source_key: str) -> str:
    """The same delivery always makes the same id, so that a second one finds the first."""
    return uuid5(NAMESPACE_URL, f"pagehand:{source_key}").hex
