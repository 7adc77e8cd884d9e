"""Plans that the agent proposes before it changes anything: seen, waiting, started, dropped, replaced. Pure.

Only a press of *Start* accepts one. Words in the thread ask for another, and a stop takes it back.
"""

from collections.abc import Sequence
from dataclasses import replace

from bot.domain.jobs.job import ARCHIVED, COMPLETED, FAILED, SHOWN_FILES, Problem, answer_of
from bot.domain.jobs.poll_pace import Polling
from bot.domain.requests.request import Request, RequestKind, RequestState
from bot.domain.threads.thread import Planning, ProposalEnd, Thread, ThreadState, owes_proposal, waits_for_start
from bot.jobapi.models import Job, JobDetails, Proposal, ProposalState
from bot.notices.notice import NewNotice, PostOutdated
from bot.notices.proposals import ProposalMade, ProposalOver, ProposalWaits

START_WORDS = "Carry out the plan."
"""The message to the agent that accepts its plan."""
DAY = 86_400.0
_MAYBE_STARTED = frozenset({None, ProposalEnd.STARTED})
"""What is known of a plan while somebody's start of it is being sent, or may have arrived."""
REMINDED_AFTER = (DAY, 7 * DAY)
"""Seconds after which a line in the thread tells that a plan still waits."""


def tells_of_an_end(state: ThreadState, job: Job, details: JobDetails) -> bool:
    """Returns whether the plan's post tells of the end of this round, after `note_proposal`. That of an earlier round
    does not: what was written since had no other result.
    """
    told = details.proposal
    if told is None or told.state is not ProposalState.PROPOSED or job.status != COMPLETED:
        return False
    return ProposalMade.key(told.id) in state.announcements.announced


def note_proposal(state: ThreadState, job: Job, details: JobDetails, now: float) -> tuple[ThreadState, list[NewNotice]]:
    """Records and announces a plan that a poll shows, once; that of a muted job, once it is no longer muted."""
    told, planning = details.proposal, state.planning
    if told is None or state.replaced_by:
        return state, []
    if told.id != planning.proposal_id:
        return _note_new(state, job, told, now)
    if told.state is ProposalState.PROPOSED:
        if not owes_proposal(state):
            return state, []
        return replace(state, planning=replace(planning, proposal_untold=False)), [_post(state, told)]
    known = planning.proposal_end
    if told.state is ProposalState.ACCEPTED and (known is not ProposalEnd.STARTED or planning.proposal_asked):
        # Also one that somebody dropped while nobody knew that it was started.
        return ended(state, ProposalEnd.STARTED, planning.proposal_end_by if known in _MAYBE_STARTED else "")
    return ended(state, ProposalEnd.OVER) if waits_for_start(state) else (state, [])


def _note_new(state: ThreadState, job: Job, told: Proposal, now: float) -> tuple[ThreadState, list[NewNotice]]:
    made, before = Planning(told.id, now), state.planning.proposal_id
    outdated = [NewNotice(ProposalMade.key(before), PostOutdated())] if before else []
    if told.state is ProposalState.ACCEPTED:  # while nobody looked, as after a restored backup
        return replace(state, planning=replace(made, proposal_end=ProposalEnd.STARTED), edits_now=True), outdated
    if told.state is not ProposalState.PROPOSED or job.status != COMPLETED:
        return ended(state, ProposalEnd.OVER) if waits_for_start(state) else (state, [])
    made = replace(made, proposal_untold=bool(state.people.muted_by))
    announced = state.announcements.announced | {ProposalMade.key(told.id)}
    announcements = replace(state.announcements, announced=announced)
    return replace(state, planning=made, announcements=announcements), [*outdated, _post(state, told)]


def _post(state: ThreadState, told: Proposal) -> NewNotice:
    pages = told.pages[:SHOWN_FILES]
    made = ProposalMade(told.id, answer_of(told.text), pages, len(told.pages), person_id=state.people.asker_id)
    return NewNotice(ProposalMade.key(told.id), made)


def ended(state: ThreadState, end: ProposalEnd, by: str = "") -> tuple[ThreadState, list[NewNotice]]:
    """Ends the newest plan, whose post then has no buttons any more. `by`: who did it; empty: nobody, or unknown."""
    planning = replace(
        state.planning, proposal_end=end, proposal_end_by=by, proposal_asked=False, proposal_untold=False
    )
    outdated = NewNotice(ProposalMade.key(planning.proposal_id), PostOutdated())
    edits_now = state.edits_now or end is ProposalEnd.STARTED
    return replace(state, planning=planning, edits_now=edits_now), [outdated]


def note_waiting(state: ThreadState, now: float, polling: Polling) -> tuple[ThreadState, list[NewNotice]]:
    """Ends a plan that can no longer be started, and reminds of one that has waited for a day, and for a week."""
    planning, job = state.planning, state.job
    if not waits_for_start(state) or job is None:
        return state, []
    if job.status in {ARCHIVED, FAILED} or state.failure.problem is Problem.GONE:
        return ended(state, ProposalEnd.OVER)
    waited = now - planning.proposed_at
    if waited >= polling.keep_for:
        state, outdated = ended(state, ProposalEnd.OVER)
        over = NewNotice(ProposalOver.key(planning.proposal_id), ProposalOver(planning.proposed_at))
        return state, [*outdated, over]
    due = sum(waited >= after for after in REMINDED_AFTER)
    if due <= planning.reminders:
        return state, []
    reminder = NewNotice(ProposalWaits.key(planning.proposal_id, due), ProposalWaits(planning.proposed_at))
    return replace(state, planning=replace(planning, reminders=due)), [reminder]


def why_not(thread: Thread, press: Request) -> ProposalEnd | None:
    """Returns why a press about a plan comes too late; None if it counts."""
    planning = thread.state.planning
    if thread.state.replaced_by:
        return ProposalEnd.OVER
    return planning.proposal_end if press.text == planning.proposal_id else ProposalEnd.OUTDATED


def opened(state: ThreadState, request: Request, *, may_have_arrived: bool) -> ThreadState:
    """Records that a request is being sent that will end the waiting plan: a start, or words. Until its outcome is
    known, nobody else can start the plan. Words that may have arrived before may have led to that plan.
    """
    starts = request.kind is RequestKind.ACCEPT_PROPOSAL
    if not waits_for_start(state) or (may_have_arrived and not starts):
        return state
    end = ProposalEnd.STARTED if starts else ProposalEnd.REVISED
    planning = replace(state.planning, proposal_end=end, proposal_end_by=request.person_id, proposal_asked=True)
    return replace(state, planning=planning)


def settled(
    request: Request, state: ThreadState, outcome: RequestState, *, uncertain: bool
) -> tuple[ThreadState, Sequence[NewNotice]]:
    """Records the outcome of such a request: the plan ends if the job API accepted it, and waits again if it did not,
    or if nobody knows: then a poll shows what became of it.
    """
    planning = state.planning
    starts = request.kind is RequestKind.ACCEPT_PROPOSAL and request.text == planning.proposal_id
    if not (starts or (request.kind is RequestKind.FOLLOW_UP and planning.proposal_asked)):
        return state, ()
    if outcome is RequestState.ACCEPTED:
        return ended(state, ProposalEnd.STARTED if starts else ProposalEnd.REVISED, request.person_id)
    if planning.proposal_asked and not (outcome is RequestState.WAITING and uncertain):
        by = request.person_id if uncertain else ""
        planning = replace(planning, proposal_end=None, proposal_end_by=by, proposal_asked=False)
    return replace(state, planning=planning), ()
