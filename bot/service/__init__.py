"""The use cases: what a person can ask for. The entry point to the other modules here.

Each method of `Service` is one transaction: when it returns, the request is recorded, and a redelivery changes nothing.
The functions of the other modules run inside such a transaction, with the thread locked.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from bot.domain.people import Preference
from bot.domain.requests.new_jobs import NewJob, Written, new_request, request_id, source_key_of
from bot.domain.requests.request import Action, Arrival, MessageVersion, Reply, log_id
from bot.domain.threads.reply_rules import ReplyModes, everyone, may_be_for_us
from bot.domain.threads.thread import Thread
from bot.errors import NotRecorded, StoreError, UnreadableRow
from bot.runtime.logging import LogContext, log_context
from bot.service import channels
from bot.service.direct_messages import record_line, record_thanks
from bot.service.follow_up import record_written
from bot.service.following_jobs import alive
from bot.service.reply import record_mention, record_reply, thread_of
from bot.service.start import record_start
from bot.store.store import RecordingTransaction, Store, Transaction

logger = logging.getLogger(__name__)
T = TypeVar("T")


class Service:
    """The use cases. `on_commit` runs after each commit and wakes the workers that have work now. `modes` say which
    replies count.
    """

    def __init__(self, store: Store, *, on_commit: Callable[[], None], modes: ReplyModes = everyone) -> None:
        self._store = store
        self._on_commit = on_commit
        self._modes = modes

    async def start(self, asked: NewJob) -> None:
        """Records a job to start, unless a newer version of the message that asks for it was seen before."""

        async def work(tx: RecordingTransaction) -> None:
            if asked.version is None or await channels.is_newest(tx, asked.version):
                known = await channels.known_job(tx, asked)
                if not await record_line(tx, known):
                    await record_start(tx, known)

        await self._transact(work, asked.source_key)

    async def thank(self, thanks: Reply) -> None:
        """Records thanks written in a direct message outside its threads."""

        async def work(tx: RecordingTransaction) -> None:
            if await channels.is_newest(tx, thanks.version):
                await record_thanks(tx, await channels.known_reply(tx, thanks))

        await self._transact(work, source_key_of(thanks))

    async def receive(self, reply: Reply) -> bool:
        """Records a message in a thread: for the job there, or, if there is none and it mentions Pagehand, as a job to
        start. False, with nothing recorded, if it is neither, or if the thread's row cannot be read.
        """

        async def work(tx: RecordingTransaction) -> bool:
            if may_be_for_us(reply) and not await channels.is_newest(tx, reply.version):
                return True
            known = await channels.known_reply(tx, reply)
            thread, kept = await thread_of(tx, known), False
            if thread is None and known.arrival is Arrival.LIVE:
                kept = await tx.early_replies.keep(known)
                # `keep` waited for the cards being posted: the relevant one may have arrived meanwhile, with others
                # still to come.
                thread = await thread_of(tx, known)
            if thread is not None:
                await record_reply(tx, thread, known, self._modes)
            return thread is not None or kept or await record_mention(tx, known, self._modes)

        try:
            return await self._transact(work, source_key_of(reply))
        except UnreadableRow:
            return False

    async def revise(self, reply: Reply) -> bool:
        """Records a message's text after an edit, or its deletion, in any order. Returns the same as `receive`."""
        return await self.receive(reply)

    async def act(self, action: Action) -> bool:
        """Records an action on a job. Whether the person may do it, and what it leads to, is decided later. False if
        the job, or the request that the action is about, is unknown.
        """

        async def work(tx: RecordingTransaction) -> bool:
            thread = await _thread_of(tx, action)
            if thread is not None:
                request = new_request(
                    thread, action.kind, action.source_key, action.person, action.argument, way_in=action.way_in
                )
                await tx.requests.add(replace(request, written_at=action.at, recorded_at=tx.now))
            return thread is not None

        return await self._transact(work, action.source_key)

    async def follow_up(self, written: Written) -> bool:
        """Records a follow-up that was not written in the thread; its time is when it is recorded. False if the job is
        unknown.
        """

        async def work(tx: RecordingTransaction) -> bool:
            thread = await tx.threads.get(written.thread_id)
            if thread is not None:  # somebody may look at the card of a job that another one has replaced
                await record_written(tx, await alive(tx.threads, thread), written)
            return thread is not None

        return await self._transact(work, written.source_key)

    async def follow_channel(self, old: str, new: str, at: float) -> None:
        """Records a channel's new id and since when it has it, in seconds."""
        await self._transact(lambda tx: tx.channel_ids.changed(old, new, at))

    async def introduce(self, team_id: str, channel_id: str) -> None:
        """Records that Pagehand was invited to a channel, where it then introduces itself once."""
        await self._transact(lambda tx: channels.record_introduction(tx, team_id, channel_id))

    async def is_first_answer(self, version: MessageVersion) -> bool:
        """Returns whether the writer of a message still has to get a private answer that is not a notice: another
        process that received the same message may have sent it. The answer is lost if this process ends first.
        """
        return await self._store.transact(lambda tx: channels.is_first_answer(tx, version))

    async def draft(self, person_id: str, place: str) -> str:
        """Returns the draft that somebody left in a modal opened here."""
        return await self._store.transact(lambda tx: tx.drafts.get(person_id, place))

    async def save_draft(self, person_id: str, place: str, text: str) -> None:
        """Saves a draft, or deletes it if it is blank."""

        async def work(tx: Transaction) -> None:
            if text.strip():
                await tx.drafts.save(person_id, place, text)
            else:
                await tx.drafts.delete(person_id, place)

        await self._store.transact(work)

    async def preference(self, person_id: str) -> Preference:
        """Returns a person's preference."""
        return await self._store.transact(lambda tx: tx.preferences.get(person_id))

    async def save_preference(self, person_id: str, preference: Preference) -> None:
        """Saves a person's preference."""
        await self._transact(lambda tx: tx.preferences.save(person_id, preference))

    async def open_home(self, person_id: str, *, page: int = 0) -> None:
        """Publishes somebody's Home now, and from now on whenever it changes."""
        await self._transact(lambda tx: tx.homes.opened(person_id, page=page))

    async def _transact(self, work: Callable[[Transaction], Awaitable[T]], source_key: str = "") -> T:
        """Runs a transaction that Slack waits for, and reports the commit unless the result is False, when nothing was
        recorded. The log says if it fails, and names the request.
        """
        with log_context(LogContext(log_id(request_id(source_key)) if source_key else "")):
            try:
                result = await self._store.transact(work, urgent=True)
            except StoreError as error:
                logger.warning("not recorded: %s", error)
                raise
            except Exception as error:  # noqa: BLE001 - whatever it was, nothing was recorded
                # An error of another class may quote what people wrote.
                logger.error("not recorded, because of an unexpected %s", type(error).__name__)  # noqa: TRY400 - so may its traceback
                raise NotRecorded from None
        if result is not False:
            self._on_commit()
        return result


async def _thread_of(tx: RecordingTransaction, action: Action) -> Thread | None:
    if action.argument and not action.thread_id and not action.card_ts:
        request = await tx.requests.get(action.argument)
        return await tx.threads.get(request.thread_id) if request else None
    return await channels.known_thread(tx, action)
