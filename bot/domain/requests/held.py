"""Requests that wait for their person, and what is asked about them. Pure.

Among them are lines of a direct message outside its threads, each a new job or for the one above.
"""

from collections.abc import Iterable, Sequence

from bot.domain.commands import NO_OPTIONS
from bot.domain.jobs.stopping import is_at_work
from bot.domain.messages import beginning
from bot.domain.permissions import is_outsider
from bot.domain.requests.edits import MAX_QUOTED
from bot.domain.requests.request import (
    Arrival,
    Reply,
    Request,
    RequestState,
    Surface,
)
from bot.domain.threads.reply_rules import ReplyMeaning, is_emoji_alone, is_thanks_alone
from bot.domain.threads.thread import Thread, waits_for_person, waits_for_start
from bot.notices.questions import HeldAsked, HeldQuestion, JobOrReplyAsked, ReplyHeld

IN_ONE_GO = 5.0
"""Seconds within which the next line belongs to the previous one, so that one question is asked about both."""


def job_in_hand(newest_first: Iterable[Thread], now: float) -> Thread | None:
    """Returns the newest of these jobs that is starting, running or waiting for an answer, and not muted."""
    return next((thread for thread in newest_first if _is_in_hand(thread, now)), None)


def _is_in_hand(thread: Thread, now: float) -> bool:
    state = thread.state
    if state.people.muted_by or state.replaced_by:
        return False
    begins = state.job is None and state.failure.problem is None
    return begins or is_at_work(state, now) or waits_for_person(thread) or waits_for_start(state)


def lines_with(line: Request, waiting: Sequence[Request]) -> list[Request]:
    """Returns the waiting lines that belong together with this one, in order."""
    runs = _runs([*(each for each in waiting if each.id != line.id), line])
    run = next((run for run in runs if line in run), [])
    return [each for each in run if each.state is RequestState.AWAITING_PERSON]


def to_ask_about(waiting: Sequence[Request]) -> list[Request]:
    """Returns the held requests that need a question: the first of each group of lines that belong together."""
    first = {run[0].id for run in _runs(waiting)}
    return [each for each in waiting if each.id in first or not each.may_be_job]


def _runs(requests: Sequence[Request]) -> list[list[Request]]:
    """Returns the lines, grouped by those that belong together."""
    lines = sorted((each for each in requests if each.may_be_job), key=lambda line: (float(line.written_at), line.id))
    runs: list[list[Request]] = []
    for line in lines:
        if runs and float(line.written_at) - float(runs[-1][-1].written_at) <= IN_ONE_GO:
            runs[-1].append(line)
        else:
            runs.append([line])
    return runs


def meaning_of_line(reply: Reply) -> ReplyMeaning:
    """Returns how a newer version of a line that may be a new job is handled."""
    nothing = is_thanks_alone(reply) or is_emoji_alone(reply)
    return ReplyMeaning.THANKS if nothing else ReplyMeaning.ASK_FIRST


def says_it_is_a_job(reply: Reply, line: Request) -> bool:
    """Returns whether an edit adds an option to a held line, which only a job can have."""
    if reply.options in {None, NO_OPTIONS} or reply.withdrawn or not (reply.text or reply.attachments):
        return False
    newer = reply.edited_at > line.edited_at and reply.person.id == line.person_id
    return newer and line.may_be_job and line.state is RequestState.AWAITING_PERSON


def question_about(request: Request) -> HeldQuestion:
    """Returns the question to the person of a request that waits for them."""
    text = beginning(request.text, MAX_QUOTED)
    if request.held_because is not None:
        return HeldAsked(request.person_id, request.id, text, request.held_because, request.kind)
    if request.may_be_job:
        return JobOrReplyAsked(request.person_id, request.id, text, asked_on=Surface.TOP_LEVEL)
    return ReplyHeld(request.person_id, request.id, text)


def is_late(reply: Reply, thread: Thread) -> bool:
    """Returns whether the writer of a message is asked before anything is done, because it was written while Pagehand
    was away. Somebody of another workspace is refused, so there is nothing to ask.
    """
    return reply.arrival is Arrival.LATE and not is_outsider(reply.person, thread)
