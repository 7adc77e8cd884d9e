"""How a start ends without a job. Each function is part of a transaction in which the thread is locked."""

from dataclasses import dataclass
from typing import Protocol

from bot.domain.jobs.job import Problem
from bot.domain.jobs.observe import with_problem
from bot.domain.notices import keys
from bot.domain.notices.messages import CARD_CHANGED, NewNotice, Reaction, ReactionChanged
from bot.domain.requests.request import RejectionReason, Request, RequestState
from bot.domain.requests.settle import rejection
from bot.domain.threads.thread import Thread
from bot.ports.ports import HasNotices, HasRequests, HasThreads

_WITH_A_CARD = frozenset({RequestState.WAITING, RequestState.SENDING, RequestState.AWAITING_PERSON})
"""A start in one of these has a card, or one is on its way."""


class EndingTransaction(HasThreads, HasRequests, HasNotices, Protocol):
    """What ending a start touches."""


_SENDING = 2.0
"""Seconds in which a reply goes out where nothing is in its way, once no other can be merged with it."""


@dataclass(frozen=True)
class StartEnding:
    """Why there will be no job.

    Attributes:
        problem: What the card, or Home, shows.
        reason: Why the request ended.
        problem_text: What the card shows besides: Slack's words, or the job API's.
        state: How the request ended.
    """

    problem: Problem
    reason: str = ""
    problem_text: str = ""
    state: RequestState = RequestState.REJECTED


async def end_start(tx: EndingTransaction, thread: Thread, start: Request, ending: StartEnding) -> bool:
    """Ends a start, has the card show it, and tells those who have replied already. False where there is no card, and
    none to come: then replies in the Slack thread are for this job no more.
    """
    await tx.requests.settle(start.id, ending.state, problem=ending.reason)
    state = with_problem(thread.state, ending.problem, ending.problem_text)
    await tx.threads.save_state(thread.id, state, poll_in=None)
    on_its_way = start.state in _WITH_A_CARD and ending.problem is not Problem.CANNOT_POST
    has_card = thread.card_ts is not None or on_its_way
    if has_card:
        await tx.notices.add(thread.id, CARD_CHANGED)
    else:
        await tx.threads.detach(thread.id)
    await refuse_follow_ups(tx, thread.id)
    return has_card


async def refuse_follow_ups(tx: EndingTransaction, thread_id: str) -> None:
    """Tells those who have replied already that there will be no job to steer."""
    for follow_up in await tx.requests.waiting_follow_ups(thread_id):
        await tx.requests.settle(follow_up.id, RequestState.REJECTED, problem=RejectionReason.NOT_STARTED)
        await tx.notices.add(thread_id, reaction_notice(follow_up, Reaction.PROBLEM))
        await tx.notices.add(thread_id, rejection(follow_up, RejectionReason.NOT_STARTED))


def reaction_notice(request: Request, reaction: Reaction | None, *, merge_seconds: float = 0.0) -> NewNotice:
    """The notice that a reply is to carry a reaction, or none any more. What is sent soon gets that of what was sent
    alone, which is one call of Slack's instead of three.
    """
    due_in = merge_seconds + _SENDING if reaction is Reaction.RECORDED else 0.0
    return NewNotice(keys.reaction(request), ReactionChanged(request.written_at, reaction), due_in)
