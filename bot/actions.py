"""What becomes of what people do about a job: a button, a word, a reaction. Each function is part of a transaction in
which the thread is locked, and by which it is known that the person may.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from bot.audit_trail import note
from bot.domain.audit import AuditAction
from bot.domain.edits import MAX_QUOTED, with_new_words
from bot.domain.home import can_be_retried
from bot.domain.mentions import beginning
from bot.domain.new_jobs import NewJob
from bot.domain.notices import keys
from bot.domain.notices.messages import (
    CARD_CHANGED,
    ActionAnswer,
    ActionAnswered,
    AnswerRequested,
    JobIdRequested,
    NewNotice,
    PersonalMessage,
    ProjectAsked,
    PromptRequested,
    Reaction,
    StatusRequested,
)
from bot.domain.observe import Polling, next_poll_in, with_problem
from bot.domain.projects import ProjectReason, Projects
from bot.domain.reply_rules import steered_by
from bot.domain.requests import RejectionReason, Request, RequestKind, RequestState, WayIn
from bot.domain.threads import Thread, ThreadState
from bot.holds import ask_again
from bot.ports import HasAudit, HasLimits, HasNotices, HasNow, HasRequestQueue, HasThreads
from bot.replies import catch_up, release, send_new_words
from bot.start_endings import reaction_notice
from bot.starts import record_start

NOT_SENT = frozenset(
    {RequestState.RECEIVED, RequestState.PREPARING, RequestState.WAITING, RequestState.AWAITING_PERSON}
)
"""Of a start: its job can be changed or taken back before the job API hears of it."""


class ActionTransaction(HasNow, HasThreads, HasRequestQueue, HasNotices, HasAudit, HasLimits, Protocol):
    """What carrying out an action touches."""


@dataclass(frozen=True)
class ActionTerms:
    """What actions go by: which projects there are, how jobs are polled, and a random number from 0 to 1."""

    projects: Projects
    polling: Polling
    jitter: float = 0.5


_AUDITED: Mapping[ActionAnswer, AuditAction] = {
    ActionAnswer.MUTED: AuditAction.MUTED,
    ActionAnswer.UNMUTED: AuditAction.UNMUTED,
    ActionAnswer.STOPPED_UNSENT: AuditAction.STOPPED,
    ActionAnswer.SENT_AGAIN: AuditAction.RETRIED,
    ActionAnswer.STARTED_AGAIN: AuditAction.RETRIED,
    ActionAnswer.PROJECT_CHOSEN: AuditAction.PROJECT_CHOSEN,
    ActionAnswer.PROJECT_SWITCHED: AuditAction.PROJECT_CHOSEN,
    ActionAnswer.NEW_WORDS_SENT: AuditAction.STEERED,
}
"""What of it the audit trail keeps. A held reply that is sent is noted when it goes out, as every other."""


_ABOUT_REPLIES = frozenset(
    {RequestKind.SEND_NEW_WORDS, RequestKind.SEND_HELD, RequestKind.SEND_ALL_HELD, RequestKind.DISCARD_HELD}
)
"""The text of each is the id of a reply's request."""


async def writer_of(tx: ActionTransaction, action: Request) -> str:
    """Who wrote the reply that an action is about; empty where it is about none that is known."""
    reply = await tx.requests.get(action.text) if action.kind in _ABOUT_REPLIES else None
    return "" if reply is None or reply.thread_id != action.thread_id else reply.person_id


async def carry_out(tx: ActionTransaction, thread: Thread, action: Request, terms: ActionTerms) -> None:
    """Does what an action asks for, answers it, and ends it."""
    if (shown := _shown(thread, action)) is not None:
        await tx.notices.add(thread.id, NewNotice(keys.action_answered(action.source_key), shown))
        if action.kind is RequestKind.SHOW_STATUS:
            await ask_again(tx, thread, action)
    elif (answer := await _answer(tx, thread, action, terms)) is not None:
        told = ActionAnswered(action.person_id, answer)
        await tx.notices.add(thread.id, NewNotice(keys.action_answered(action.source_key), told))
        if answer in _AUDITED:
            await note(tx, _AUDITED[answer], action, thread)
    await tx.requests.prepared(replace(action, state=RequestState.ACCEPTED))


def _shown(thread: Thread, action: Request) -> PersonalMessage | None:
    """What somebody wants to see."""
    match action.kind:
        case RequestKind.SHOW_STATUS:
            return StatusRequested(action.person_id)
        case RequestKind.SHOW_PROMPT:
            return PromptRequested(action.person_id, thread.prompt)
        case RequestKind.SHOW_ANSWER:
            return AnswerRequested(action.person_id, action.text)
        case RequestKind.SHOW_JOB_ID:
            return JobIdRequested(action.person_id)
        case _:
            return None


async def _answer(tx: ActionTransaction, thread: Thread, action: Request, terms: ActionTerms) -> ActionAnswer | None:
    match action.kind:
        case RequestKind.SEND_AGAIN:
            answer: ActionAnswer | None = await _send_again(tx, thread, await tx.requests.get(action.text))
        case RequestKind.SEND_NEW_WORDS:
            answer = await _send_new_words(tx, thread, action)
        case RequestKind.MUTE:
            answer = await _mute(tx, thread, action.person_id, terms)
        case RequestKind.UNMUTE:
            answer = await _mute(tx, thread, "", terms)
        case RequestKind.RETRY:
            answer = await _retry(tx, thread, action)
        case RequestKind.SEND_HELD | RequestKind.SEND_ALL_HELD | RequestKind.DISCARD_HELD:
            answer = await _held(tx, thread, action, terms)
        case RequestKind.CHOOSE_PROJECT:
            answer = await _choose_project(tx, thread, action, terms)
        case _:
            answer = None
    return answer


async def _send_again(tx: ActionTransaction, thread: Thread, request: Request | None) -> ActionAnswer:
    if request is not None and request.merged_into:
        request = await tx.requests.get(request.merged_into)
    if request is None or request.thread_id != thread.id:
        return ActionAnswer.ALREADY_ACCEPTED
    handed_back = request.state is RequestState.UNCERTAIN or request.problem == RejectionReason.TOO_OLD
    if request.state not in {RequestState.UNCERTAIN, RequestState.REJECTED} or not handed_back:
        return ActionAnswer.ALREADY_ACCEPTED
    if request.latest_text == "":
        with_others = await tx.requests.merged_into(request.id)
        return ActionAnswer.FIRST_WITHDRAWN if with_others else ActionAnswer.WITHDRAWN
    await _wait_again(tx, thread, request)
    return ActionAnswer.SENT_AGAIN


async def _wait_again(tx: ActionTransaction, thread: Thread, request: Request) -> None:
    await tx.requests.settle(request.id, RequestState.WAITING, afresh=True)
    await catch_up(tx, replace(request, state=RequestState.WAITING))
    if request.kind is not RequestKind.START:
        if request.written_at:
            await tx.notices.add(thread.id, reaction_notice(request, Reaction.RECORDED))
        return
    await tx.threads.save_state(thread.id, with_problem(thread.state, None), poll_in=None)
    await tx.notices.add(thread.id, CARD_CHANGED)


async def _send_new_words(tx: ActionTransaction, thread: Thread, action: Request) -> ActionAnswer | None:
    request = await tx.requests.get(action.text)
    if request is None:
        return ActionAnswer.NOTHING_NEW
    answer = await send_new_words(tx, await _alive(tx, thread), request)
    if answer is ActionAnswer.NEW_WORDS_SENT:
        await tx.limits.count(action.person_id, with_new_words(request, tx.now).id)
    return answer


async def _alive(tx: ActionTransaction, thread: Thread) -> Thread:
    """The thread of the job that was started instead, however often that was done."""
    seen = {thread.id}
    while thread.state.replaced_by not in {"", *seen}:
        instead = await tx.threads.get(thread.state.replaced_by)
        if instead is None:
            break
        seen.add(instead.id)
        thread = instead
    return thread


async def _mute(tx: ActionTransaction, thread: Thread, muted_by: str, terms: ActionTerms) -> ActionAnswer:
    if not (muted_by or thread.state.muted_by):
        return ActionAnswer.NOT_MUTED
    await keep_polling(tx, thread, replace(thread.state, muted_by=muted_by), terms)
    await tx.notices.add(thread.id, CARD_CHANGED)
    return ActionAnswer.MUTED if muted_by else ActionAnswer.UNMUTED


async def _retry(tx: ActionTransaction, thread: Thread, action: Request) -> ActionAnswer | None:
    """The same once more: a start that may have arrived is sent again, what ended badly becomes a job of its own."""
    start = await tx.requests.find_start(thread.id)
    if start is None:
        return ActionAnswer.NOT_TO_BE_RETRIED
    if start.state is RequestState.UNCERTAIN or start.problem == RejectionReason.TOO_OLD:
        return await _send_again(tx, thread, start)
    if not can_be_retried(thread):
        return ActionAnswer.NOT_TO_BE_RETRIED
    await record_start(tx, _once_more(thread, start, action))
    return None


def _once_more(thread: Thread, start: Request, action: Request) -> NewJob:
    """The same job, for whoever wants it once more. It is answered when it has passed its checks."""
    return NewJob(
        person=replace(action.person, team_id=thread.team_id),
        channel_id=thread.channel_id,
        prompt=thread.prompt,
        source_key=f"retry/{action.source_key}",
        way_in=WayIn.RETRY,
        project_said=thread.options.project_said,
        quiet=thread.options.quiet,
        thread_ts=thread.ts or thread.root_ts,
        origin=thread.origin,
        attachments=start.attachments,
        context=start.context,
        context_chosen=thread.options.context_chosen,
        read_until=start.written_at or thread.state.read_until,
        follows=thread.id,
    )


async def _held(tx: ActionTransaction, thread: Thread, action: Request, terms: ActionTerms) -> ActionAnswer:
    """Does with a held reply what its person answered."""
    waiting = await tx.requests.held(thread.id, action.person_id)
    held = next((request for request in waiting if request.id == action.text), None)
    if action.kind is RequestKind.DISCARD_HELD:
        return await _discard(tx, held)
    if action.kind is RequestKind.SEND_HELD:
        if held is None:
            return ActionAnswer.NOTHING_NEW
        return ActionAnswer.HELD_SENT if await release(tx, thread, held) else ActionAnswer.SEE_THREAD
    await note_steering(tx, thread, action.person_id, terms, counts=True)
    released = [await release(tx, thread, request) for request in waiting]
    return ActionAnswer.HELD_ALL_SENT if all(released) else ActionAnswer.SEE_THREAD


async def _discard(tx: ActionTransaction, held: Request | None) -> ActionAnswer:
    if held is None:
        return ActionAnswer.NOTHING_NEW
    await tx.requests.save(replace(held, state=RequestState.WITHDRAWN))
    return ActionAnswer.HELD_DISCARDED


async def _choose_project(
    tx: ActionTransaction, thread: Thread, action: Request, terms: ActionTerms
) -> ActionAnswer | None:
    """Of a job that waits for the choice, or another one than was chosen for it; without a name, which is asked."""
    start, project = await tx.requests.find_start(thread.id), terms.projects.named(action.text)
    if start is not None and not action.text:
        await ask_for_project(tx, thread, action, ProjectQuestion(terms.projects.names))
        return None
    if start is None or project is None:
        return ActionAnswer.PROJECT_SETTLED
    if start.state in NOT_SENT and not start.uncertain:
        options = replace(thread.options, project_said=project.name, project_reason=ProjectReason.CHOSEN)
        await tx.threads.set_project(thread.id, project.name, options)
        prepared_for_it = start.state is RequestState.WAITING and thread.project == project.name
        if start.state in {RequestState.AWAITING_PERSON, RequestState.WAITING} and not prepared_for_it:
            await tx.requests.settle(start.id, RequestState.RECEIVED, afresh=True)
            await tx.threads.save_state(thread.id, with_problem(thread.state, None), poll_in=None)
        return ActionAnswer.PROJECT_CHOSEN
    return await _switch_project(tx, thread, start, action, project.name)


async def _switch_project(
    tx: ActionTransaction, thread: Thread, start: Request, action: Request, project: str
) -> ActionAnswer | None:
    """The same job for another project, in the same thread, instead of the one that was sent."""
    settled = start.state not in {RequestState.ACCEPTED, RequestState.REJECTED} or project == thread.project
    if settled or thread.state.replaced_by:
        return ActionAnswer.PROJECT_SETTLED
    other = replace(_once_more(thread, start, action), way_in=WayIn.SWITCH, project_said=project)
    await record_start(tx, replace(other, source_key=f"switch/{action.source_key}"))
    return None


@dataclass(frozen=True)
class ProjectQuestion:
    """Which of these a request is for. `said` is the name that was given and is none; empty: none was."""

    names: tuple[str, ...]
    said: str = ""


async def ask_for_project(tx: ActionTransaction, thread: Thread, request: Request, question: ProjectQuestion) -> None:
    """Asks somebody, privately, which project a job is for."""
    text = beginning(thread.prompt, MAX_QUOTED)
    asked = ProjectAsked(request.person_id, thread.id, question.names, question.said, text)
    await tx.notices.add(thread.id, NewNotice(keys.project_asked(request), asked))


async def note_steering(
    tx: ActionTransaction, thread: Thread, person_id: str, terms: ActionTerms, *, counts: bool
) -> None:
    """Notes that somebody steers a job. `counts`: from now on all that they write in its thread does."""
    state = steered_by(thread, person_id, counts=counts)
    if state != thread.state:
        await keep_polling(tx, thread, state, terms)


async def keep_polling(tx: ActionTransaction, thread: Thread, state: ThreadState, terms: ActionTerms) -> None:
    """Saves what is known of a job that is polled on, if it is polled."""
    poll_in = next_poll_in(state, tx.now, terms.polling, jitter=terms.jitter)
    await tx.threads.save_state(thread.id, state, poll_in=poll_in)
