"""What a person can ask for. Each is one transaction: when it returns, it is recorded; a redelivery changes nothing."""

import logging
from collections.abc import Callable
from dataclasses import replace
from uuid import NAMESPACE_URL, uuid5

from bot.domain.access import may_steer
from bot.domain.models import (
    ARCHIVED,
    Mark,
    NoticeKind,
    Person,
    Reply,
    Request,
    RequestKind,
    RequestState,
    Saying,
    Thread,
    Trouble,
    What,
)
from bot.domain.settle import mark_key, refusal
from bot.errors import UnreadableRow
from bot.ports import Store, Transaction

logger = logging.getLogger(__name__)

SETTLING = 1.0
"""Seconds that a follow-up waits before it goes out, so that one delivered out of order can still overtake it."""

CARD = Saying("card", What.CARD, kind=NoticeKind.CARD)


def marking(request: Request, mark: Mark) -> Saying:
    """The notice that a reply carries a mark."""
    facts = {"message_ts": request.written_at, "mark": mark.value}
    return Saying(mark_key(request), What.MARK, facts, NoticeKind.MARK)


class Service:
    """The use cases. `recorded` is called after each commit, to wake the loops that have work now."""

    def __init__(self, store: Store, *, project_id: str, recorded: Callable[[], None]) -> None:
        self._store = store
        self._project_id = project_id
        self._recorded = recorded

    async def start(self, person: Person, channel_id: str, prompt: str, *, source_key: str) -> None:
        """Records a job to start, with the card that the channel gets first."""

        async def work(tx: Transaction) -> None:
            thread = Thread(
                id=_id(source_key),
                team_id=person.team_id,
                channel_id=channel_id,
                asker_id=person.id,
                prompt=prompt,
                project_id=self._project_id,
                created_at=tx.now,
            )
            if not await tx.add_thread(thread):
                return
            await tx.add_request(_request(thread, RequestKind.START, source_key, person, prompt))
            await tx.say(thread.id, CARD)

        await self._store.transact(work)
        self._recorded()

    async def steer(self, person: Person, channel_id: str, thread_ts: str, message_ts: str, text: str) -> bool:
        """Records a reply. False, and nothing recorded, where it is not in the thread of a job that is known, or where
        what is known of that can't be read.
        """
        reply = Reply(person, channel_id, thread_ts, message_ts, text)

        async def work(tx: Transaction) -> bool:
            thread, kept = await tx.thread_at(channel_id, thread_ts), False
            if thread is None:
                kept = await tx.keep_early_reply(reply)
                # This waited for the cards on their way: the one in question may have arrived in the meantime, with
                # others still coming.
                thread = await tx.thread_at(channel_id, thread_ts)
            if thread is not None:
                await record_reply(tx, thread, reply)
            return thread is not None or kept

        try:
            recorded = await self._store.transact(work)
        except UnreadableRow as error:
            logger.error("a reply in %s goes nowhere: %s", channel_id, error)  # noqa: TRY400 - a traceback could quote the row
            return False
        if recorded:
            self._recorded()
        return recorded

    async def send_again(self, person: Person, channel_id: str, request_id: str) -> None:
        """Sends a request again of which it is not known whether it arrived, because a person asks for it."""

        async def work(tx: Transaction) -> None:
            found = await _locked(tx, request_id, channel_id)
            if found is None:
                return
            request, thread = found
            answer = "external" if not may_steer(person, thread) else await _again(tx, thread, request)
            key = f"{request.id}/again/{request.attempts}/{person.id}/{answer}"
            await tx.say(thread.id, _tell(person, key, What.ANSWER, answer=answer))

        await self._store.transact(work)
        self._recorded()

    async def show_prompt(self, person: Person, channel_id: str, thread_id: str, *, source_key: str) -> None:
        """Shows a person the whole of a request that the card shortens."""

        async def work(tx: Transaction) -> None:
            thread = await tx.thread(thread_id)
            if thread is not None and thread.channel_id == channel_id:
                await tx.say(thread.id, _tell(person, source_key, What.WHOLE_PROMPT, text=thread.prompt))

        await self._store.transact(work)
        self._recorded()


async def record_reply(tx: Transaction, thread: Thread, reply: Reply) -> None:
    """Records a reply in a job's thread: as a follow-up, or with the reason why it can't be one."""
    if not may_steer(reply.person, thread):
        await tx.say(thread.id, _tell(reply.person, f"{reply.message_ts}/external", What.ANSWER, answer="external"))
        return
    source_key = f"message/{thread.channel_id}/{reply.message_ts}"
    request = _request(thread, RequestKind.FOLLOW_UP, source_key, reply.person, reply.text)
    request = replace(request, written_at=reply.message_ts, recorded_at=tx.now)
    obstacle = await _obstacle(tx, thread)
    if obstacle:
        request = replace(request, state=RequestState.REFUSED, problem=obstacle)
    if not await tx.add_request(request, due_in=SETTLING):
        return
    await tx.say(thread.id, marking(request, Mark.PROBLEM if obstacle else Mark.RECORDED))
    if obstacle:
        await tx.say(thread.id, refusal(request, obstacle))


async def _obstacle(tx: Transaction, thread: Thread) -> str:
    """Why a follow-up can't be sent any more; empty when it can."""
    known = thread.known
    if known.trouble is Trouble.GONE:
        return "gone"
    if known.job is not None:
        return "archived" if known.job.status == ARCHIVED else ""
    start = await tx.start_request(thread.id)
    return "not_started" if start is None or start.state is RequestState.REFUSED else ""


async def _locked(tx: Transaction, request_id: str, channel_id: str) -> tuple[Request, Thread] | None:
    """The request and its thread, locked."""
    request = await tx.request(request_id)
    thread = await tx.thread(request.thread_id) if request else None
    if request is None or thread is None or thread.channel_id != channel_id:
        return None
    return request, thread


async def _again(tx: Transaction, thread: Thread, request: Request) -> str:
    handed_back = request.state is RequestState.UNSURE or request.problem == "too_old"
    if request.state not in {RequestState.UNSURE, RequestState.REFUSED} or not handed_back:
        return "already_taken"
    await tx.settle_request(request.id, RequestState.WAITING, afresh=True)
    if request.kind is RequestKind.FOLLOW_UP:
        await tx.say(thread.id, marking(request, Mark.RECORDED))
    else:
        known = replace(thread.known, trouble=None, trouble_words="")
        await tx.save_known(thread.id, known, poll_in=None)
        await tx.say(thread.id, CARD)
    return "sent_again"


def _request(thread: Thread, kind: RequestKind, source_key: str, person: Person, text: str) -> Request:
    return Request(
        id=_id(source_key),
        thread_id=thread.id,
        kind=kind,
        source_key=source_key,
        person_id=person.id,
        text=text,
        written_at="",
        recorded_at=thread.created_at,
    )


def _tell(person: Person, key: str, what: What, **facts: str) -> Saying:
    return Saying(key, what, {"person": person.id, **facts}, NoticeKind.TELL)


def _id(source_key: str) -> str:
    """The same delivery always makes the same id, so that a second one finds the first."""
    return uuid5(NAMESPACE_URL, f"pagehand:{source_key}").hex
