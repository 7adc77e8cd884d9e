"""What may be a job of its own, or for the job above it: what people write in a direct message outside its threads.
Pure.
"""

from collections.abc import Iterable, Sequence

from bot.domain.commands.options import NO_OPTIONS
from bot.domain.jobs.stopping import is_at_work
from bot.domain.people.home import waits_for_person
from bot.domain.requests.request import Reply, Request, RequestKind, RequestState, WayIn
from bot.domain.threads.reply_rules import ReplyMeaning, is_emoji_alone, is_thanks_alone
from bot.domain.threads.thread import Thread

IN_ONE_GO = 5.0
"""Seconds after a line within which the next one belongs to it: one question is asked about both."""
_UNANSWERED = frozenset({RequestState.AWAITING_PERSON, RequestState.WITHDRAWN})


def may_be_job(request: Request) -> bool:
    """Whether a follow-up was written outside the threads, and its person did not say yet what it is."""
    line = request.kind is RequestKind.FOLLOW_UP and request.way_in is WayIn.DIRECT_MESSAGE
    return line and request.state in _UNANSWERED


def job_in_hand(newest_first: Iterable[Thread], now: float) -> Thread | None:
    """The newest job of these that begins, is at work or waits for an answer, and hears replies."""
    return next((thread for thread in newest_first if _is_in_hand(thread, now)), None)


def _is_in_hand(thread: Thread, now: float) -> bool:
    state = thread.state
    if state.people.muted_by or state.replaced_by:
        return False
    begins = state.job is None and state.failure.problem is None
    return begins or is_at_work(state, now) or waits_for_person(thread)


def lines_with(line: Request, waiting: Sequence[Request]) -> list[Request]:
    """Those of the waiting lines that were written in one go with this one, the first first."""
    runs = _runs([*(each for each in waiting if each.id != line.id), line])
    run = next((run for run in runs if line in run), [])
    return [each for each in run if each.state is RequestState.AWAITING_PERSON]


def to_ask_about(waiting: Sequence[Request]) -> list[Request]:
    """Of what waits for its person, that which needs a question: of lines that were written in one go, the first."""
    first = {run[0].id for run in _runs(waiting)}
    return [each for each in waiting if each.id in first or not may_be_job(each)]


def _runs(requests: Sequence[Request]) -> list[list[Request]]:
    """The lines among these, those together that were written in one go."""
    lines = sorted(filter(may_be_job, requests), key=lambda line: (float(line.written_at), line.id))
    runs: list[list[Request]] = []
    for line in lines:
        if runs and float(line.written_at) - float(runs[-1][-1].written_at) <= IN_ONE_GO:
            runs[-1].append(line)
        else:
            runs.append([line])
    return runs


def meaning_of_line(reply: Reply) -> ReplyMeaning:
    """What is to be made of a newer version of what may be a job of its own."""
    nothing = is_thanks_alone(reply) or is_emoji_alone(reply)
    return ReplyMeaning.THANKS if nothing else ReplyMeaning.ASK_FIRST


def says_it_is_a_job(reply: Reply, line: Request) -> bool:
    """Whether an edit of a line that waits for its person has an option in front, which only a job has."""
    if reply.options in {None, NO_OPTIONS} or reply.withdrawn or not (reply.text or reply.attachments):
        return False
    newer = reply.edited_at > line.edited_at and reply.person.id == line.person_id
    return newer and may_be_job(line) and line.state is RequestState.AWAITING_PERSON
