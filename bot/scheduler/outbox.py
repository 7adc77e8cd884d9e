"""The outbox: the only part that posts in threads. It delivers each notice once, in its thread's order."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, assert_never

from bot import errors
from bot.domain import delivery
from bot.domain.delivery import DeliveryFailure, FailureKind
from bot.domain.jobs.job import NO_DETAILS, digest
from bot.domain.permissions import PermissionRules, refusal_in
from bot.domain.requests.held import question_about
from bot.domain.requests.request import RequestState, Surface
from bot.domain.slack_limits import SLACK_LIMITS, SlackLimits, SlackMethod
from bot.domain.threads.reply_rules import ReplyModes, everyone
from bot.domain.threads.thread import Thread
from bot.notices.answers import AnswerMissing, AnswerRequested, Introduction
from bot.notices.notice import (
    CARD_CHANGED,
    CardChanged,
    Delivery,
    NewNotice,
    PostOutdated,
    ReactionChanged,
    within_thread,
)
from bot.notices.pictures import PicturesShown
from bot.notices.questions import HeldAsked, JobOrReplyAsked, ReplyHeld
from bot.ports.job_api import JobApi
from bot.ports.slack import ChannelReader, Chat
from bot.runtime.logging import LogContext
from bot.scheduler.pictures import PATIENCE, only_named, with_uploaded
from bot.scheduler.worker import ANYTHING, DueWork, SlackWorker, WorkerSettings, about
from bot.service.delivery import card_posted, give_up
from bot.store.notice_queue import ClaimedNotice
from bot.store.store import OutboxTransaction, Store

logger = logging.getLogger(__name__)

ANSWER_PATIENCE = 8.0
"""Seconds to fetch a full answer while the notice is claimed."""


MOST_UPLOADING, BUSY_PAUSE, MOST_TRIES_OF_PICTURES = 4, 2.0, 5
"""Notices whose pictures are uploaded at a time; the seconds that others wait, and how often before they go without."""


async def whole_answer(job_api: JobApi, thread: Thread, wanted: AnswerRequested) -> AnswerRequested:
    """Returns the notice with the agent's full answer, of which Pagehand keeps only the beginning, or with the reason
    why it cannot be shown. The person can press the button again.
    """
    if thread.state.job is None:
        return replace(wanted, missing=AnswerMissing.GONE)
    try:
        async with asyncio.timeout(ANSWER_PATIENCE):
            job = await job_api.get(thread.project, thread.state.job.id)
    except errors.JobGone:
        return replace(wanted, missing=AnswerMissing.GONE)
    except (errors.JobApiError, TimeoutError):
        return replace(wanted, missing=AnswerMissing.NOT_NOW)
    details = job.details or NO_DETAILS
    texts = (details.summary, details.proposal and details.proposal.text)
    text = next((each for each in texts if each and digest(each) == wanted.answer_id), None)
    return replace(wanted, missing=AnswerMissing.GONE) if text is None else replace(wanted, text=text)


def delivery_failure(error: errors.ChatError) -> DeliveryFailure:
    """Returns what a call's error means for the notice to deliver."""
    match error:
        case errors.ChatUnreachable():
            return DeliveryFailure(FailureKind.UNREACHABLE, error.reason)
        case errors.ChatUncertain():
            return DeliveryFailure(FailureKind.UNCERTAIN, error.reason)
        case errors.ChatNotAllowed():
            return DeliveryFailure(FailureKind.NOT_ALLOWED, error.reason)
        case _:
            return DeliveryFailure(
                FailureKind.REJECTED,
                error.reason,
                blocks_refused=error.reason in delivery.BLOCKS_REFUSED,
                plainer=isinstance(error, errors.ChatTooRich),
                missing_scopes=error.scopes if isinstance(error, errors.ChatMissingScope) else (),
            )


Delivered = Callable[[str, BaseException | None], None]
"""Is told of each try to deliver a notice: its kind, and the error with which it ended, if any."""


class PausedTooLongError(Exception):
    """The process was paused for so long that another one may have claimed the notice."""


class Outbox(SlackWorker[ClaimedNotice]):
    """Delivers notices, each in at most `max_attempts` attempts. `job_api` has agents' full answers; `rules` say
    in which of the `channels` Pagehand may be used, `modes` which replies count, and `limits` how often Slack may be
    called. `upload_patience`: see PATIENCE. `delivered`: see Delivered.
    """

    name = "outbox"

    def __init__(
        self,
        store: Store,
        chat: Chat,
        settings: WorkerSettings,
        *,
        job_api: JobApi,
        rules: PermissionRules,
        channels: ChannelReader,
        max_attempts: int = delivery.MAX_ATTEMPTS,
        modes: ReplyModes = everyone,
        limits: SlackLimits = SLACK_LIMITS,
        upload_patience: float = PATIENCE,
        delivered: Delivered = lambda _, __: None,
    ) -> None:
        super().__init__(store, settings, concurrency=16)
        self._max_attempts = max_attempts
        self._modes = modes
        self._chat = chat
        self._job_api = job_api
        self._rules = rules
        self._channels = channels
        self._limits = limits
        self._delivered = delivered
        self._reacting = 0
        self._upload_patience = upload_patience
        self._uploads = asyncio.Semaphore(MOST_UPLOADING)

    async def claim(self, limit: int) -> Sequence[ClaimedNotice]:
        """Claims due notices, of each kind as many as Slack's limits allow. Reactions get at most half the slots: if
        Slack is slow to accept them, the others are free for posts.
        """
        most = max(self._concurrency // 2 - self._reacting, 0)
        modes: Any = {"lease": self._lease, "limit": limit, "limits": self._limits, "max_reactions": most}
        claimed = await self._store.transact(lambda tx: tx.notices.claim(self._owner, **modes))
        self._reacting += sum(_is_reaction(item) for item in claimed)
        return claimed

    def subject(self, item: ClaimedNotice) -> LogContext:
        """See Worker."""
        return about(item.thread)

    async def process(self, item: ClaimedNotice, claimed_at: float) -> None:
        """Delivers one notice, and records the result."""
        try:
            ts = await self._deliver(item, claimed_at)
        except PausedTooLongError:
            return
        except errors.ChatRateLimited as error:
            self._count(item, error)
            self.record_answer()
            await self.record(partial(self._record_rate_limited, item, error))
        except errors.ChatError as error:
            self._count(item, error)
            failure = delivery_failure(error)
            if failure.kind is FailureKind.REJECTED:
                self.record_answer()
            else:
                self.record_no_answer(error)
            await self.record(partial(self._record_failed, item, failure, self._random()))
        except errors.StoreError as error:  # what is shown is read before it is sent
            failure = DeliveryFailure(FailureKind.UNREACHABLE, str(error))
            await self.record(partial(self._record_failed, item, failure, self._random()))
        except Exception as error:
            logger.exception("notice %s (%s) trips a fault", item.notice.key, item.notice.message.kind)
            self._count(item, error)
            fault = DeliveryFailure(FailureKind.FAULT, f"unexpected {type(error).__name__}")
            if item.notice.attempts < delivery.MAX_FAULTS:
                self.item_failed(fault.reason)
            await self.record(partial(self._record_failed, item, fault, self._random()))
        else:
            self._count(item, None)
            self.works(None)
            self.record_answer()
            # A start and early replies may have waited for the first card; otherwise only the thread's next notice did.
            first_card = item.notice.delivery is Delivery.CARD and item.thread.card_ts is None
            leaves = ANYTHING if first_card else frozenset({DueWork.DELIVER})
            await self.record(partial(self._record_delivered, item, ts), leaves=leaves)
        finally:
            self._reacting -= _is_reaction(item)

    def _count(self, item: ClaimedNotice, error: BaseException | None) -> None:
        in_place = item.notice.delivery in {Delivery.CARD, Delivery.REACTION}
        self._delivered(item.notice.delivery if in_place else item.notice.message.kind, error)

    async def _deliver(self, item: ClaimedNotice, claimed_at: float) -> str | None:
        try:
            return await self._speak(item, claimed_at)
        except errors.ChatNotInChannel:
            if isinstance(item.notice.message, Introduction):
                raise  # the people who removed Pagehand do not want it back
            self._require_lease(claimed_at)
            await self.bounded(self._chat.join(item.thread.channel_id))
            return await self._speak(item, claimed_at)

    async def _speak(self, item: ClaimedNotice, claimed_at: float) -> str | None:
        self._require_lease(claimed_at)
        notice, thread = item.notice, item.thread
        match notice.message:
            case ReactionChanged() as wanted:
                if (reaction_call := delivery.next_call(notice, wanted)) is not None:
                    await self.bounded(self._chat.react(thread, wanted.message_ts, reaction_call))
                return None
            case CardChanged() if thread.card_ts is not None:
                await self._update_card(item, thread)
                return thread.card_ts
            case message if message.delivery is Delivery.EPHEMERAL:
                await self._tell(item, claimed_at)
                return None
            case Introduction():  # where nobody may use Pagehand, it posts nothing; people who try are told
                channel = await self.bounded(self._channels.channel(thread.channel_id))
                if (refusal := refusal_in(channel, self._rules)) is not None:
                    raise errors.ChatRejected(refusal)
                self._require_lease(claimed_at)
                return await self._say_once(item, claimed_at)
            case PicturesShown() as pictures if pictures.to_upload:
                item = await self._with_pictures(item, pictures)
                self._require_lease(claimed_at)
                return await self._say_once(item, claimed_at)
            case _:
                return await self._say_once(item, claimed_at)

    async def _with_pictures(self, item: ClaimedNotice, message: PicturesShown) -> ClaimedNotice:
        """Uploads the pictures, and records that before they are posted, so that it is not done twice. A few at a time:
        posts must not wait for Slack to look at pictures.
        """
        if item.notice.attempts > MOST_TRIES_OF_PICTURES:
            message = only_named(message)
        else:
            if self._uploads.locked():
                raise errors.ChatRateLimited("others_upload", retry_after=BUSY_PAUSE, method="files")
            async with self._uploads:
                message = await with_uploaded(self._job_api, self._chat, item.thread, message, self._upload_patience)
        notice = replace(item.notice, message=message)
        if not await self._store.transact(lambda tx: tx.notices.keep_content(notice, self._owner)):
            raise PausedTooLongError
        return replace(item, notice=notice)

    async def _tell(self, item: ClaimedNotice, claimed_at: float) -> None:
        notice, thread = item.notice, item.thread
        match notice.message:
            case AnswerRequested() as wanted:
                notice = replace(notice, message=await whole_answer(self._job_api, thread, wanted))
            case ReplyHeld() | JobOrReplyAsked() | HeldAsked() as asked if asked.asked_on is Surface.HOME:
                request = await self._store.transact(lambda tx: tx.requests.get(asked.request_id))
                if request is None or request.state is not RequestState.AWAITING_PERSON:
                    return  # it was answered, so that there is no need for the reminder
                notice = replace(notice, message=replace(question_about(request), asked_on=Surface.HOME))
        self._require_lease(claimed_at)
        await self.bounded(self._chat.tell(thread, notice, follow_ups=item.follow_ups))

    async def _say_once(self, item: ClaimedNotice, claimed_at: float) -> str:
        notice, thread = item.notice, item.thread
        if notice.posted_ts is not None:
            await self.bounded(self._chat.update(thread, notice, notice.posted_ts))
            return notice.posted_ts
        if notice.uncertain or thread.state.announcements.restored:
            found = await self.bounded(self._chat.find(thread, notice.key))
            self._require_lease(claimed_at)
            if found is not None:
                if notice.delivery is Delivery.CARD:  # it shows the state at its posting
                    await self._update_card(item, replace(thread, card_ts=found))
                elif notice.revision:  # what became of it since
                    await self.bounded(self._chat.update(thread, notice, found))
                return found
        if notice.delivery is Delivery.CARD:
            plain, counts = notice.without_blocks, item.follow_ups
            return await self.bounded(self._chat.post_card(thread, notice.key, follow_ups=counts, without_blocks=plain))
        return await self.bounded(self._chat.post(thread, notice))

    async def _update_card(self, item: ClaimedNotice, thread: Thread) -> None:
        plain, counts = item.notice.without_blocks, item.follow_ups
        await self.bounded(self._chat.update_card(thread, follow_ups=counts, without_blocks=plain))

    def _require_lease(self, claimed_at: float) -> None:
        if not self.lease_covers_call(claimed_at):
            raise PausedTooLongError

    async def _record_delivered(self, item: ClaimedNotice, ts: str | None, tx: OutboxTransaction) -> None:
        if isinstance(item.notice.message, ReactionChanged):
            wanted = item.notice.message
            progress = delivery.after_call(item.notice, wanted, delivery.next_call(item.notice, wanted))
            if not await tx.notices.reacted(item.notice, self._owner, progress):
                await _show_again(tx, item)
            return
        if _is_new_post(item):
            await tx.slack_calls.posted(item.thread.channel_id, failed=False)
        posted_card = item.notice.delivery is Delivery.CARD and item.thread.card_ts is None
        thread = await tx.threads.get(item.thread.id) if posted_card else None
        held = await tx.notices.delivered(item.notice, self._owner, ts=ts)
        if held and thread is not None and thread.card_ts is None and ts:
            await card_posted(tx, thread, ts, self._modes)
        if held and item.notice.delivery is Delivery.CARD:
            await tx.homes.changed(item.thread.requester_id)
        if not held:
            await _show_again(tx, item)

    async def _record_rate_limited(
        self, item: ClaimedNotice, error: errors.ChatRateLimited, tx: OutboxTransaction
    ) -> None:
        """The notice keeps its place if its own method is limited: the budget holds it back then, and what came later
        must not overtake it.
        """
        own, channel_id, wait = _method_of(item), item.thread.channel_id, error.retry_after
        method = error.method or own
        if method in set(SlackMethod):
            await tx.slack_calls.with_budget(
                [method], self._limits, lambda budget: budget.refuse(method, wait, channel_id)
            )
        due_in = 0.0 if method == own else wait
        await tx.notices.postpone(item.notice, self._owner, due_in=due_in, problem=error.reason)

    async def _record_failed(
        self, item: ClaimedNotice, failure: DeliveryFailure, jitter: float, tx: OutboxTransaction
    ) -> None:
        if _is_new_post(item):
            await tx.slack_calls.posted(item.thread.channel_id, failed=True)
        match delivery.after_failure(item.notice, failure, max_attempts=self._max_attempts, jitter=jitter):
            case delivery.RetryLater() as later:
                held = await tx.notices.postpone(
                    item.notice,
                    self._owner,
                    due_in=later.due_in,
                    uncertain=later.uncertain,
                    without_blocks=later.without_blocks,
                    problem=later.reason,
                )
                if not held and later.uncertain:
                    await _show_again(tx, item)
            case delivery.GiveUp() as given_up:
                await give_up(tx, item, given_up, self._owner, self._modes)
            case other:
                assert_never(other)


async def _show_again(tx: OutboxTransaction, item: ClaimedNotice) -> None:
    """The process was paused. Its call came late, and may have overwritten what another process has shown."""
    notice = item.notice
    changes = notice.delivery in {Delivery.CARD, Delivery.REACTION} or notice.posted_ts is not None
    if changes and await tx.threads.get(item.thread.id):
        outdated = NewNotice(within_thread(item.thread.id, notice.key), PostOutdated())
        await tx.notices.add(item.thread.id, CARD_CHANGED if notice.delivery is Delivery.CARD else outdated)


def _is_reaction(item: ClaimedNotice) -> bool:
    return item.notice.delivery is Delivery.REACTION


def _is_new_post(item: ClaimedNotice) -> bool:
    return item.notice.posted_ts is None and _method_of(item) is SlackMethod.POST_MESSAGE


def _method_of(item: ClaimedNotice) -> SlackMethod:
    """Returns the method that delivers a notice."""
    match item.notice.message:
        case ReactionChanged() as wanted:
            reaction_call = delivery.next_call(item.notice, wanted)
            removes = reaction_call is not None and reaction_call.removes
            return SlackMethod.REMOVE_REACTION if removes else SlackMethod.ADD_REACTION
        case CardChanged() if item.thread.card_ts is not None:
            return SlackMethod.UPDATE
        case message if message.delivery is Delivery.EPHEMERAL:
            return SlackMethod.POST_EPHEMERAL
        case _:
            return SlackMethod.POST_MESSAGE
