"""What a person can ask for. Each is one transaction: when it returns, it is recorded; a redelivery changes nothing."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from bot.domain.notices import keys
from bot.domain.notices.messages import (
    CARD_CHANGED,
    ActionAnswer,
    ActionAnswered,
    AnswerRequested,
    NewNotice,
    PromptRequested,
    Reaction,
)
from bot.domain.observe import with_problem
from bot.domain.permissions import may_steer
from bot.domain.requests import (
    NO_ATTACHMENTS,
    Attachments,
    Person,
    RejectionReason,
    Reply,
    Request,
    RequestKind,
    RequestState,
)
from bot.domain.threads import Thread
from bot.errors import UnreadableRow
from bot.ports import HasEarlyReplies, HasNotices, HasThreads, Store
from bot.replies import (
    RequestTransaction,
    catch_up,
    new_request,
    reaction_notice,
    record_reply,
    request_id,
    send_new_words,
    thread_of,
)

logger = logging.getLogger(__name__)


class ReplyTransaction(RequestTransaction, HasEarlyReplies, Protocol):
    """What recording a reply touches."""


class PromptTransaction(HasThreads, HasNotices, Protocol):
    """What showing a prompt or an answer touches."""


class Service:
    """The use cases. `on_commit` is called after each commit, to wake the workers that have work now."""

    def __init__(self, store: Store, *, project_id: str, on_commit: Callable[[], None]) -> None:
        self._store = store
        self._project_id = project_id
        self._on_commit = on_commit

    async def start(self, person: Person, channel_id: str, prompt: str, *, source_key: str) -> None:
        """Records a job to start, with the card that the channel gets first."""

        async def work(tx: RequestTransaction) -> None:
            thread = Thread(
                id=request_id(source_key),
                team_id=person.team_id,
                channel_id=channel_id,
                requester_id=person.id,
                prompt=prompt,
                project_id=self._project_id,
                created_at=tx.now,
            )
            if not await tx.threads.add(thread):
                return
            await tx.requests.add(new_request(thread, RequestKind.START, source_key, person, prompt))
            await tx.notices.add(thread.id, CARD_CHANGED)

        await self._store.transact(work, urgent=True)
        self._on_commit()

    async def steer(
        self,
        person: Person,
        channel_id: str,
        thread_ts: str,
        message_ts: str,
        text: str,
        *,
        attachments: Attachments = NO_ATTACHMENTS,
    ) -> bool:
        """Records a reply; `text` is empty where it holds no words. False, and nothing recorded, where it is not in the
        thread of a job that is known, or where what is known of that cannot be read.
        """
        return await self.revise(Reply(person, channel_id, thread_ts, message_ts, text, attachments))

    async def revise(self, reply: Reply) -> bool:
        """Records what a reply says as of an edit or a deletion, whatever order these come in. False: see `steer`."""

        async def work(tx: ReplyTransaction) -> bool:
            thread, kept = await thread_of(tx, reply), False
            if thread is None:
                kept = await tx.early_replies.keep(reply)
                # This waited for the cards on their way: the one in question may have arrived in the meantime, with
                # others still coming.
                thread = await thread_of(tx, reply)
            if thread is not None:
                await record_reply(tx, thread, reply)
            return thread is not None or kept

        try:
            recorded = await self._store.transact(work, urgent=True)
        except UnreadableRow as error:
            logger.error("a reply in %s goes nowhere: %s", reply.channel_id, error)  # noqa: TRY400 - a traceback could quote the row
            return False
        if recorded:
            self._on_commit()
        return recorded

    async def send_again(self, person: Person, channel_id: str, request_id: str, *, source_key: str) -> None:
        """Sends a request again of which it is not known whether it arrived, because a person asks for it."""

        async def work(tx: RequestTransaction) -> None:
            found = await _locked(tx, request_id, channel_id)
            if found is None or await tx.notices.has(found[1].id, keys.action_answered(source_key)):
                return
            request, thread = found
            # Where a person belongs to is told less exactly of a click than of a message: whoever wrote it may.
            allowed = may_steer(person, thread) or person.id == request.person_id
            answer = await _again(tx, thread, request) if allowed else ActionAnswer.OTHER_WORKSPACE
            await tx.notices.add(thread.id, _answered(person, source_key, answer))

        await self._store.transact(work, urgent=True)
        self._on_commit()

    async def send_new_words(self, person: Person, edited_id: str, *, source_key: str) -> None:
        """Sends what a reply says after an edit, as a follow-up, because its person asks for it. They may do so in a
        direct message, where they are asked if that cannot be in the channel. `edited_id`: the request that was edited.
        """

        async def work(tx: RequestTransaction) -> None:
            request = await tx.requests.get(edited_id)
            thread = await tx.threads.get(request.thread_id) if request else None
            if request is not None and thread is not None:
                answer = await send_new_words(tx, thread, request, person)
                await tx.notices.add(thread.id, _answered(person, source_key, answer))

        await self._store.transact(work, urgent=True)
        self._on_commit()

    async def show_answer(
        self, person: Person, channel_id: str, thread_id: str, answer_id: str, *, source_key: str
    ) -> None:
        """Shows a person the whole of an agent's answer that the thread shortens."""

        async def work(tx: PromptTransaction) -> None:
            thread = await tx.threads.get(thread_id)
            if thread is not None and thread.channel_id == channel_id:
                message = AnswerRequested(person.id, answer_id)
                await tx.notices.add(thread.id, NewNotice(keys.action_answered(source_key), message))

        await self._store.transact(work, urgent=True)
        self._on_commit()

    async def show_prompt(self, person: Person, channel_id: str, thread_id: str, *, source_key: str) -> None:
        """Shows a person the whole of a request that the card shortens."""

        async def work(tx: PromptTransaction) -> None:
            thread = await tx.threads.get(thread_id)
            if thread is not None and thread.channel_id == channel_id:
                message = PromptRequested(person.id, thread.prompt)
                await tx.notices.add(thread.id, NewNotice(keys.action_answered(source_key), message))

        await self._store.transact(work, urgent=True)
        self._on_commit()


def _answered(person: Person, source_key: str, answer: ActionAnswer) -> NewNotice:
    return NewNotice(keys.action_answered(source_key), ActionAnswered(person.id, answer))


async def _locked(tx: RequestTransaction, request_id: str, channel_id: str) -> tuple[Request, Thread] | None:
    """The request and its thread, locked."""
    request = await tx.requests.get(request_id)
    thread = await tx.threads.get(request.thread_id) if request else None
    if request is None or thread is None or thread.channel_id != channel_id:
        return None
    return request, thread


async def _again(tx: RequestTransaction, thread: Thread, request: Request) -> ActionAnswer:
    handed_back = request.state is RequestState.UNCERTAIN or request.problem == RejectionReason.TOO_OLD
    if request.state not in {RequestState.UNCERTAIN, RequestState.REJECTED} or not handed_back:
        return ActionAnswer.ALREADY_ACCEPTED
    if request.latest_text == "":
        return ActionAnswer.WITHDRAWN
    await tx.requests.settle(request.id, RequestState.WAITING, afresh=True)
    await catch_up(tx, replace(request, state=RequestState.WAITING))
    if request.kind is RequestKind.FOLLOW_UP:
        await tx.notices.add(thread.id, reaction_notice(request, Reaction.RECORDED))
    else:
        state = with_problem(thread.state, None)
        await tx.threads.save_state(thread.id, state, poll_in=None)
        await tx.notices.add(thread.id, CARD_CHANGED)
    return ActionAnswer.SENT_AGAIN
