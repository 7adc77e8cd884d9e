"""The request sender: sends each request to the job API, and records the answer.

Claiming determines what is sent with the request, and opens its round: from then on, all changes of the job are news,
even if a poll sees them before the request is recorded as accepted.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from http import HTTPStatus
from itertools import takewhile
from typing import assert_never

from bot import errors
from bot.domain.context import ContextText, compose, files_reach
from bot.domain.jobs import proposals, stopping
from bot.domain.jobs.job import ARCHIVED
from bot.domain.jobs.observe import open_round
from bot.domain.jobs.poll_pace import Polling, next_poll_in
from bot.domain.messages import keeping_names, mentioned, with_names
from bot.domain.projects import Projects
from bot.domain.pull_requests import after_end
from bot.domain.requests.follow_ups import MOST_MERGED, as_one, continues, merged_with
from bot.domain.requests.request import Doubt, RejectionReason, Request, RequestContext, RequestKind, RequestState
from bot.domain.requests.settle import Accepted, Rejected, SendOutcome, Uncertain, settle
from bot.domain.threads.thread import Thread, ThreadState
from bot.jobapi.models import Mode, PromptCall
from bot.notices.notice import CARD_CHANGED
from bot.ports.job_api import JobApi, Requesters
from bot.ports.slack import DisplayNames
from bot.runtime.logging import LogContext, current_log_context, log_context
from bot.runtime.secrets.masking import SecretMasker
from bot.scheduler.rereading import Rereader
from bot.scheduler.worker import NOTHING, DueWork, JobApiWorker, WorkerSettings, about, job_words, retry_delay
from bot.service.following_jobs import alive
from bot.service.proposals import open_start
from bot.service.settle import give_back, record_result
from bot.store.request_queue import AheadOfCards, ClaimedRequest
from bot.store.store import RequestTransaction, Store

logger = logging.getLogger(__name__)

_LEAVES = frozenset({DueWork.SEND, DueWork.DELIVER})
"""The thread's next request, and notices."""
_NO_MODES = "This project can no longer show a plan first, or only answer."


class RequestSender(JobApiWorker[ClaimedRequest]):
    """Sends requests that are due.

    Args:
        store: The store.
        job_api: The job API.
        settings: Its settings.
        rereader: Reads messages again.
        polling: How soon a job is polled after a request.
        projects: All projects. If a job API executes a repeated Idempotency-Key once, what may have arrived is sent
            again.
        people: Looks up the names of people whom a request mentions.
        masker: Masks Pagehand's own secrets in what is sent.
        requesters: Looks up requesters; None if no job API accepts them.
    """

    name = "request sender"

    def __init__(
        self,
        store: Store,
        job_api: JobApi,
        settings: WorkerSettings,
        rereader: Rereader,
        *,
        polling: Polling,
        projects: Projects,
        people: DisplayNames,
        masker: SecretMasker,
        requesters: Requesters | None,
    ) -> None:
        super().__init__(store, settings, concurrency=8)
        self._job_api = job_api
        self._rereader = rereader
        self._projects, self._abilities = projects, projects.abilities
        self._polling = polling
        self._people = people
        self._mask_own = masker.mask_own
        self._requesters = requesters
        self._merge = settings.variables.merge_seconds

    async def claim(self, limit: int) -> Sequence[ClaimedRequest]:
        """Claims due requests, each with those sent with it as one message."""
        turn, ahead = self._random(), self._ahead_of_cards()

        async def work(tx: RequestTransaction) -> list[ClaimedRequest]:
            claimed = await tx.requests.claim(self._owner, lease=self._lease, limit=limit, turn=turn, ahead=ahead)
            # Each locks its thread, in the order that `bot.store.session` requires.
            in_order = sorted(claimed, key=lambda item: item.thread.id)
            opened = [await self._open(tx, item) for item in in_order]
            return self._rereader.claimed([item for item in opened if item is not None], tx.now)

        return await self._store.transact(work)

    async def _open(self, tx: RequestTransaction, item: ClaimedRequest) -> ClaimedRequest | None:
        """Prepares a claimed request for sending. None if it has to be prepared again: its job was replaced, an earlier
        one that should include a part of the Slack thread did not arrive, or its files are at another project's job
        API.
        """
        request, thread, state = item.request, item.thread, item.thread.state
        match request.kind:
            case RequestKind.FOLLOW_UP if state.replaced_by and not _fixed(item):
                await _pass_on(tx, item)
                return None
            case RequestKind.FOLLOW_UP:
                up_to_date = continues(request, state.read_until) and files_reach(request, thread.project)
                if not (_fixed(item) or up_to_date):  # gathering the context again would not give the same
                    await tx.requests.prepared(replace(request, state=RequestState.RECEIVED))
                    return None
                item = await self._in_its_mode(tx, await self._with_others(tx, item))
                state = proposals.opened(state, request, may_have_arrived=_fixed(item))
                state = open_round(state, tx.now, self._polling, _asker_id(request, thread))
            case RequestKind.ACCEPT_PROPOSAL:
                started = await open_start(tx, thread, request, may_have_arrived=_fixed(item))
                if started is None:
                    return None
                state = open_round(started, tx.now, self._polling, _asker_id(request, thread))
            case RequestKind.STOP:
                step = stopping.stop_step(state, tx.now, can_cancel=self._abilities(thread.project).cancel)
                if step is stopping.StopStep.ASK_AGENT:
                    state = open_round(state, tx.now, self._polling, _asker_id(request, thread))
                else:
                    state = stopping.opened(state, request, step)
        sent_before = item.uncertain or request.restored
        state = replace(
            state, announcements=replace(state.announcements, restored=state.announcements.restored and sent_before)
        )
        if state == thread.state:
            return item
        poll_in = next_poll_in(state, tx.now, self._polling, jitter=self._random())
        await tx.threads.save_state(thread.id, state, poll_in=poll_in)
        if state.people.stopped_by != thread.state.people.stopped_by:
            await tx.notices.add(thread.id, CARD_CHANGED)
        return replace(item, thread=replace(thread, state=state, revision=thread.revision + 1))

    async def _with_others(self, tx: RequestTransaction, item: ClaimedRequest) -> ClaimedRequest:
        """Returns the request with those sent with it as one message. What was sent with it before is sent with it
        again (a person may have asked for that). If it may have arrived, nothing is added, so that the message stays
        the same.
        """
        request = item.request
        others = tuple(await tx.requests.merged_into(request))
        if not (_fixed(item) or others):
            stopped_at = [stop.recorded_at for stop in await tx.requests.stops(request.thread_id)]
            following = await tx.requests.follow_ups_after(request, limit=MOST_MERGED)
            reached = list(takewhile(lambda each: files_reach(each, item.thread.project), following))
            others = merged_with(request, reached, stopped_at, self._merge)
        if others:
            await tx.requests.merge(request, others, self._owner, lease=self._lease)
        return replace(item, merged=others)

    async def _in_its_mode(self, tx: RequestTransaction, item: ClaimedRequest) -> ClaimedRequest:
        """Returns a follow-up in the mode in which it is sent, and is sent again: the job's can be another by then."""
        mode = item.thread.mode
        if item.request.mode is not None or mode is Mode.EDIT or _fixed(item):
            return item
        await tx.requests.set_mode(item.request.id, mode)
        return replace(item, request=replace(item.request, mode=mode))

    def _ahead_of_cards(self) -> AheadOfCards:
        """Returns which jobs are created before their card: those that can be stopped if it cannot be posted. A
        requester comes with a link to the thread, which has to be there.
        """
        stoppable = [name for name in self._projects.names if self._abilities(name).cancel]
        linked = [name for name in stoppable if self._abilities(name).requester]
        return AheadOfCards([name for name in stoppable if name not in linked], linked)

    def subject(self, item: ClaimedRequest) -> LogContext:
        """See Worker."""
        return about(item.thread, item.request.log_id)

    async def process(self, item: ClaimedRequest, claimed_at: float) -> None:
        """Sends one request, unless it may have been sent before, and records the outcome."""
        if (doubt := self._doubt(item)) is not None:
            outcome: SendOutcome = doubt
        else:
            if not await self._is_as_written(item):
                return
            request = await self._complete(item)
            if not self.lease_covers_call(claimed_at):
                await self._hand_back(item.request)
                return
            outcome = await self._send(request, item.thread)
        jitter = self._random()
        await self.record(lambda tx: self._settle(tx, item, outcome, jitter), leaves=_LEAVES)

    async def _is_as_written(self, item: ClaimedRequest) -> bool:
        """Returns whether a request has the words that its message has now. Otherwise it is handed back, and revised
        or, while Slack cannot tell, tried again soon.
        """
        try:
            newer = await self._rereader.newer(item)
        except errors.ChatError as error:
            await self._hand_back(item.request, due_in=retry_delay(1, error, jitter=self._random()))
            return False
        if newer:
            await self._hand_back(item.request)
            await self._rereader.record(newer)
        return not newer

    def _doubt(self, item: ClaimedRequest) -> Uncertain | None:
        """Returns why a request is not sent unless somebody asks for it again; None if it can be sent."""
        may_repeat = self._may_repeat(item.request, item.thread)
        if item.uncertain and not may_repeat:
            return Uncertain("the process that sent it ended before the answer came")
        if item.request.kind is RequestKind.FOLLOW_UP and item.thread.state.replaced_by and _fixed(item):
            return Uncertain("its job was replaced, and must not be woken")
        # The key under which a follow-up was sent is unknown if it may have been merged with others.
        merged = item.request.kind is RequestKind.FOLLOW_UP and self._merge > 0
        if item.request.restored and (merged or not may_repeat):
            return Uncertain("it was open when the backup was made that was restored")
        return None

    def _may_repeat(self, request: Request, thread: Thread) -> bool:
        """Returns whether a request that may have arrived can be sent again without harm."""
        abilities = self._abilities(thread.project)
        cancels = request.kind is RequestKind.STOP and abilities.cancel
        return cancels or request.kind is RequestKind.DISCARD or abilities.idempotent

    async def _complete(self, item: ClaimedRequest) -> Request:
        """Returns the request as it is sent."""
        requests = [await self._with_names(request) for request in (item.request, *item.merged)]
        first = await self._with_requester(requests[0], item.thread)
        return as_one(first, requests[1:])

    def _prompt_call(self, request: Request, thread: Thread) -> PromptCall:
        """Returns the call that creates a job, or sends a follow-up to one. Raises JobApiRejected if it is to work in a
        mode, and the settings no longer have that.
        """
        mode = request.mode or thread.mode
        if request.kind is RequestKind.ACCEPT_PROPOSAL:
            return replace(_plain_call(proposals.START_WORDS, request, thread), proposal=request.text)
        context, abilities = request.context or RequestContext(), self._abilities(thread.project)
        files = context.files if abilities.files else ()
        words = self._mask_own(request.text)
        told_apart = context.text and abilities.instruction
        if mode is not Mode.EDIT and not abilities.modes:
            raise errors.JobApiRejected("The settings have no modes.", words=_NO_MODES)
        call = _plain_call(compose(words, ContextText(context.text)), request, thread)
        return replace(call, files=files, instruction=words if told_apart else None, mode=mode)

    async def _with_names(self, request: Request) -> Request:
        """Returns the request with the names of mentioned people. They are recorded before it is sent, because the job
        API rejects a repeated key with another text.
        """
        if ids := mentioned(request.text):
            request = replace(request, text=keeping_names(request.text, await self._people.names(ids)))
            await self._keep(request, lambda tx: tx.requests.set_text(request.id, request.text))
        return replace(request, text=with_names(request.text, {}))

    async def _with_requester(self, request: Request, thread: Thread) -> Request:
        """Returns the request with its requester, if the job API accepts one. It is recorded before sending, like
        names; a request attempted without one stays without, because the job API may reject a repeated key with another
        body.
        """
        if self._requesters is None or request.requester is not None or request.attempts > 1:
            return request
        if not self._abilities(thread.project).requester:
            return request
        requester = await self._requesters.requester(request.person_id, thread.channel_id, thread.ts or "")
        await self._keep(request, lambda tx: tx.requests.set_requester(request.id, requester))
        return replace(request, requester=requester)

    async def _keep(self, request: Request, keep: Callable[[RequestTransaction], Awaitable[None]]) -> None:
        """Records what is sent with a request, unless another process has claimed it."""

        async def work(tx: RequestTransaction) -> None:
            if await tx.requests.claimed(request, self._owner, RequestState.SENDING):
                await keep(tx)

        await self.record(work, leaves=NOTHING)

    async def _send(self, request: Request, thread: Thread) -> SendOutcome:
        try:
            outcome = await self._call(request, thread)
        except errors.JobApiError as error:
            return self._failure(request, thread, error)
        if isinstance(outcome, Accepted | stopping.Cancelled):
            self.record_answer(thread.project)
            _log_sent(request, thread, outcome)
        return outcome

    async def _call(self, request: Request, thread: Thread) -> SendOutcome:
        """Makes the call that a request needs, if any. Raises JobApiError."""
        match request.kind:
            case RequestKind.START:
                call = self._prompt_call(request, thread)
                return Accepted(await self._job_api.create(thread.project, call))
            case RequestKind.STOP:
                return await self._stop(request, thread)
            case RequestKind.DISCARD:
                return await self._discard(request, thread)
            case _:
                return await self._follow_up(request, thread)

    async def _follow_up(self, request: Request, thread: Thread) -> SendOutcome:
        if thread.state.job and thread.state.job.status == ARCHIVED:
            return Rejected(RejectionReason.ARCHIVED)  # noticed after the reply was recorded
        call = self._prompt_call(request, thread)
        return Accepted(await self._job_api.send_message(thread.project, _job_id(thread), call))

    async def _stop(self, request: Request, thread: Thread) -> SendOutcome:
        project = thread.project
        can_cancel = self._abilities(project).cancel
        step = stopping.stop_step(thread.state, self._settings.clock.now(), can_cancel=can_cancel)
        match step:
            case stopping.StopStep.NOTHING:
                return Rejected(RejectionReason.NOTHING_TO_STOP)
            case stopping.StopStep.DONE:
                return stopping.Cancelled()
            case stopping.StopStep.CANCEL:
                key, requester = _key_of_attempt(request), request.requester
                job = await self._job_api.cancel(project, _job_id(thread), idempotency_key=key, requester=requester)
                return stopping.Cancelled(job)
            case stopping.StopStep.ASK_AGENT:
                call = replace(_plain_call(stopping.STOP_WORDS, request, thread), mode=thread.mode)
                return Accepted(await self._job_api.send_message(project, _job_id(thread), call))
            case _:
                assert_never(step)

    async def _discard(self, request: Request, thread: Thread) -> SendOutcome:
        if (why := stopping.why_not_discarded(thread.state, self._settings.clock.now())) is not None:
            return stopping.NotDiscarded(why)
        key = _key_of_attempt(request)
        return Accepted(await self._job_api.discard(thread.project, _job_id(thread), idempotency_key=key))

    def _failure(self, request: Request, thread: Thread, error: errors.JobApiError) -> SendOutcome:
        project = thread.project
        logger.info("%s: %s", request.kind, error)
        match error:
            case errors.JobApiBusy(status=HTTPStatus.CONFLICT) if request.kind is RequestKind.ACCEPT_PROPOSAL:
                self.record_answer(project)  # the plan can no longer be started, and its words say why
                return Rejected(RejectionReason.OTHER, error.words, error.status)
            case errors.JobApiUnreachable() | errors.JobApiNotAllowed():
                return self.record_unavailable(project, error)
            case errors.NoSuchProject() | errors.JobGone() | errors.JobApiRejected():
                self.record_answer(project)
                return _refused(error)
            case _:
                self.record_no_answer(project, error)
                answered_error = isinstance(error, errors.JobApiUnreadable) and bool(error.words)
                failed = answered_error or isinstance(error, errors.JobApiFailed)
                doubt = Doubt.SERVER_FAILED if failed else Doubt.NO_ANSWER
                ask_again = self._may_repeat(request, thread) and not answered_error
                return Uncertain(str(error), ask_again=ask_again, doubt=doubt, words=error.words)

    async def _settle(self, tx: RequestTransaction, item: ClaimedRequest, outcome: SendOutcome, jitter: float) -> None:
        thread = await tx.threads.get(item.thread.id)
        held = await tx.requests.claimed(item.request, self._owner, RequestState.SENDING)
        request = held or await tx.requests.get(item.request.id)
        if thread is None or request is None:
            return
        late_truth = request.state is RequestState.UNCERTAIN and isinstance(outcome, Accepted)
        if held is None and not late_truth:
            return
        others = await tx.requests.merged_into(request)
        outcome = self._as_of_now(outcome, request, item.thread, thread)
        polling = self._polling.for_posts(self._projects.posts(thread.channel_id))
        settlement = settle(
            as_one(request, others), _asked_state(request, thread), outcome, tx.now, polling, jitter=jitter
        )
        await record_result(tx, thread, (request, *others), settlement)
        if request.kind is RequestKind.FOLLOW_UP and settlement.request_state is RequestState.ACCEPTED:
            followed = await tx.pull_requests.of(thread.id)
            opens_another = self._abilities(thread.project).pull_request
            if (notice := after_end(followed, opens_another=opens_another)) is not None:
                await tx.notices.add(thread.id, notice)

    def _as_of_now(self, outcome: SendOutcome, request: Request, before: Thread, thread: Thread) -> SendOutcome:
        """Returns the outcome, marked if the job API's answer is not the newest known state."""
        newer_seen = _observed(thread.state) != _observed(before.state)
        match outcome:
            case Accepted():
                # A server that executes a key once may repeat its first answer.
                same_key = self._abilities(thread.project).idempotent and request.kind is not RequestKind.DISCARD
                repeated = same_key and request.attempts > 1
                return replace(outcome, outdated=repeated or newer_seen)
            case stopping.Cancelled() if newer_seen:
                return stopping.Cancelled()
            case _:
                return outcome

    async def _hand_back(self, request: Request, *, due_in: float = 0.0) -> None:
        """Returns a request that was certainly not sent to the queue, unless another process has claimed it."""

        async def work(tx: RequestTransaction) -> None:
            await tx.threads.get(request.thread_id)
            if (newest := await tx.requests.claimed(request, self._owner, RequestState.SENDING)) is not None:
                await give_back(tx, newest, await tx.requests.merged_into(newest), due_in=due_in)

        await self._store.transact(work)


async def _pass_on(tx: RequestTransaction, item: ClaimedRequest) -> None:
    """Moves a follow-up to the job that replaced its own while it was being sent, in vain."""
    job = await alive(tx.threads, item.thread)
    await tx.requests.move([item.request], job.id)
    for changed in (item.thread, job):
        if changed.card_ts is not None:
            await tx.notices.add(changed.id, CARD_CHANGED)  # it counts waiting follow-ups


def _fixed(item: ClaimedRequest) -> bool:
    """Returns whether the request may have arrived; then it can only be sent again unchanged."""
    return item.uncertain or item.request.uncertain


def _plain_call(words: str, request: Request, thread: Thread) -> PromptCall:
    agent = thread.options.agent
    return PromptCall(words, request.id, request.requester, model=agent.model, effort=agent.effort)


def _asker_id(request: Request, thread: Thread) -> str:
    """Returns the writer of a follow-up if that is not the thread's requester: the agent's questions go to them."""
    return "" if request.person_id == thread.requester_id else request.person_id


def _key_of_attempt(request: Request) -> str:
    """A new key for each attempt of a call that is safe to repeat: a server that executes a key once would repeat its
    first answer.
    """
    return f"{request.id}.{request.attempts}"


def _job_id(thread: Thread) -> str:
    if thread.state.job is None:
        raise errors.JobGone("the thread has no job")
    return thread.state.job.id


_ACCEPTED = {RequestKind.START: "job created", RequestKind.DISCARD: "partial work discarded"}


def _log_sent(request: Request, thread: Thread, outcome: Accepted | stopping.Cancelled) -> None:
    """Logs what the job API has taken, with the job as it showed it."""
    job = outcome.job or thread.state.job
    with log_context(replace(current_log_context(), job=job.id if job else "")):
        accepted = _ACCEPTED.get(request.kind, "message sent")
        logger.info("%s: %s", accepted if isinstance(outcome, Accepted) else "job cancelled", job_words(job))


def _refused(error: errors.NoSuchProject | errors.JobGone | errors.JobApiRejected) -> Rejected:
    match error:
        case errors.NoSuchProject():
            return Rejected(RejectionReason.PROJECT, error.words)
        case errors.JobGone():
            return Rejected(RejectionReason.GONE, error.words)
        case errors.JobApiRejected(status=HTTPStatus.PAYMENT_REQUIRED):
            return Rejected(RejectionReason.HANDED_BACK, error.words, error.status)
        case errors.JobApiRejected():
            wrong_address = error.status in range(300, 400)
            reason = RejectionReason.ADDRESS if wrong_address else RejectionReason.API
            return Rejected(reason, error.words, error.status)


def _asked_state(request: Request, thread: Thread) -> ThreadState:
    """Returns the state with the requester as asker: the end of an earlier round may have been reported meanwhile. A
    stop asks nothing.
    """
    if request.kind in {RequestKind.STOP, RequestKind.DISCARD}:
        return thread.state
    return replace(thread.state, people=replace(thread.state.people, asker_id=_asker_id(request, thread)))


def _observed(state: ThreadState) -> tuple[object, ...]:
    """Returns the parts of the state that a poll can have changed."""
    return state.job, state.round, state.announcements.announced, state.announcements.links
