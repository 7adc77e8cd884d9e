"""Posts, updates, reactions and searches in Slack: bot.ports.slack.Chat over Slack's Web API."""

from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, TypeVar, assert_never

from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.domain import delivery
from bot.domain.messages import with_names
from bot.domain.projects import ChannelSettings
from bot.domain.threads.thread import NO_FOLLOW_UPS, FollowUpCounts, Thread
from bot.errors import ChatMissingScope, ChatNotInChannel, ChatRejected, ChatTooRich, ChatUncertain
from bot.notices.answers import Introduction
from bot.notices.notice import Notice, ToPerson
from bot.ports.slack import Chat, DisplayNames
from bot.runtime.untrusted_json import text_at
from bot.slack.message_parts.slack_message import Signed
from bot.slack.rendering.blocks import ChatMessage
from bot.slack.rendering.cards import card
from bot.slack.rendering.message_context import MessageContext, leading_to
from bot.slack.rendering.notices import messages
from bot.slack.sending.conversations import Permalinks, raw_messages
from bot.slack.sending.ephemeral import EphemeralSender
from bot.slack.sending.identity import Identity
from bot.slack.sending.people import names_in
from bot.slack.sending.pictures import upload_picture
from bot.slack.sending.rich_blocks import RichBlocks
from bot.slack.sending.web_api import call

Answer = TypeVar("Answer")
Send = Callable[[ChatMessage], Awaitable[Answer]]
_LINK_PATIENCE = 1.0
"""Seconds that an ephemeral message waits for the link to its thread."""
_CLOCK_DIFFERENCE = 2 * 3_600.0
"""Seconds by which our clock may differ from Slack's."""
EVENT_TYPE = "pagehand_notice"


@dataclass(frozen=True)
class SlackChat(Chat):
    """One per process. `identity` is ours in Slack, to recognize our own messages. `people` knows the
    names of mentioned people: shown as names, since a real mention would notify them. `settings` returns how a
    channel, given its id, wants to be notified.
    """

    client: AsyncWebClient
    identity: Identity
    message_context: MessageContext
    ephemeral_sender: EphemeralSender
    _: KW_ONLY
    people: DisplayNames | None = None
    settings: Callable[[str], ChannelSettings] = lambda _: ChannelSettings()
    permalinks: Permalinks | None = None
    rich_blocks: RichBlocks = field(default_factory=RichBlocks)

    async def post_card(
        self, thread: Thread, key: str, *, follow_ups: FollowUpCounts = NO_FOLLOW_UPS, without_blocks: bool = False
    ) -> str:
        """See Chat."""
        post = partial(self._post, thread, key)
        return await self._send_card(thread, follow_ups, post, without_blocks=without_blocks)

    async def update_card(
        self, thread: Thread, *, follow_ups: FollowUpCounts = NO_FOLLOW_UPS, without_blocks: bool = False
    ) -> None:
        """See Chat. Without blocks, existing blocks are removed."""
        if thread.card_ts is None:
            raise ChatRejected("card_not_posted")
        update = partial(self._update, thread.channel_id, thread.card_ts)
        await self._send_card(thread, follow_ups, update, without_blocks=without_blocks)

    async def post(self, thread: Thread, notice: Notice) -> str:
        """See Chat."""
        in_thread = not isinstance(notice.message, Introduction)
        if in_thread and (thread.card_ts is None or thread.ts is None):
            raise ChatRejected("card_not_posted")  # without a thread, it would be a message in the channel
        message = (await self._messages(thread, notice))[0]
        broadcast = delivery.shown_in_channel(thread, notice.message, self.settings(thread.channel_id))
        return await self._post(thread, notice.key, message, broadcast=broadcast)

    async def update(self, thread: Thread, notice: Notice, ts: str) -> None:
        """See Chat."""
        await self._update(thread.channel_id, ts, (await self._messages(thread, notice))[0])

    async def upload(self, name: str, content: bytes, *, words: str) -> str:
        """See Chat."""
        return await upload_picture(self.client, name, content, words)

    async def find(self, thread: Thread, key: str) -> str | None:
        """See Chat. Searches what was posted since the thread was recorded: in it, or in the channel if it has no first
        message yet. A thread whose first message was deleted is empty.
        """
        oldest = f"{max(thread.created_at - _CLOCK_DIFFERENCE, 0.0):.6f}"
        place = (self.client, thread.channel_id, thread.ts or "")
        try:
            async for message in raw_messages(*place, oldest=oldest, include_all_metadata=True):
                if self._is_ours(message, key):
                    return text_at(message, "ts")
        except ChatRejected as rejected:
            if rejected.reason == "thread_not_found":
                return None
            raise
        return None

    async def react(self, thread: Thread, message_ts: str, call: delivery.ReactionCall) -> None:
        """See Chat. A message that was deleted needs no reaction."""
        at = {"channel": thread.channel_id, "timestamp": message_ts, "name": call.reaction.value}
        if call.removes:
            await _call_unless(self.client.reactions_remove(**at), "no_reaction", "message_not_found")
        else:
            await _call_unless(self.client.reactions_add(**at), "already_reacted", "message_not_found")

    async def tell(self, thread: Thread, notice: Notice, *, follow_ups: FollowUpCounts = NO_FOLLOW_UPS) -> None:
        """See Chat."""
        person_id = notice.message.about
        if not person_id:
            raise ChatRejected("nobody_to_tell")
        place = delivery.private_place(thread, notice.message)
        shown = await self._messages(thread, notice, follow_ups)
        if isinstance(notice.message, ToPerson) and notice.message.leads_to and self.permalinks:
            link = await self.permalinks.soon(thread.channel_id, notice.message.leads_to, seconds=_LINK_PATIENCE)
            shown = [leading_to(link, message, "Go there") for message in shown]
        for message in shown:
            await self._tell(thread, person_id, place, message)

    async def _tell(self, thread: Thread, person_id: str, place: delivery.PrivatePlace, message: ChatMessage) -> None:
        sender = self.ephemeral_sender
        match place:
            case delivery.Directly():
                await sender.send_directly(person_id, leading_to(await self._link(thread), message))
            case delivery.InConversation(thread_ts) if thread_ts:
                await sender.send(person_id, thread.channel_id, message, thread_ts=thread_ts)
            case delivery.InConversation():
                await sender.send(person_id, thread.channel_id, leading_to(await self._link(thread), message))
            case _:
                assert_never(place)

    async def _link(self, thread: Thread) -> str:
        """Returns the link to the card or, before it is posted, to the message it replies to; empty if unavailable."""
        ts = thread.card_ts or thread.ts or thread.root_ts or ""
        links = self.permalinks
        return await links.soon(thread.channel_id, ts, seconds=_LINK_PATIENCE) if links else ""

    async def join(self, channel_id: str) -> None:
        """See Chat. For a private channel, Slack answers as if it did not exist. Without the scope for joining, an
        invitation is needed in the same way.
        """
        try:
            await call(self.client.conversations_join(channel=channel_id))
        except ChatMissingScope:
            raise ChatNotInChannel("not_in_channel") from None
        except ChatRejected as rejected:
            if rejected.reason in _NOT_JOINABLE:
                raise ChatNotInChannel(rejected.reason) from None
            raise

    async def _messages(
        self, thread: Thread, notice: Notice, follow_ups: FollowUpCounts = NO_FOLLOW_UPS
    ) -> list[ChatMessage]:
        names = await names_in(notice.message.texts, self.people)
        message = notice.message.with_texts(lambda text: with_names(text, names))
        notice, settings = replace(notice, message=message), self.settings(thread.channel_id)
        named = await self._named(thread)
        return messages(named, notice, self.message_context, follow_ups=follow_ups, settings=settings)

    async def _send_card(
        self, thread: Thread, follow_ups: FollowUpCounts, send: Send[Answer], *, without_blocks: bool
    ) -> Answer:
        """Sends a card, without the kinds of block that Slack refuses. Raises ChatTooRich if it may take a plainer
        one.
        """
        named, rich = await self._named(thread), self.rich_blocks
        whole = card(named, self.message_context, follow_ups)
        if without_blocks:
            return await send(whole.without_blocks())
        left_out = rich.left_out(thread.id, whole)
        try:
            sent = await send(card(named, self.message_context, follow_ups, without=left_out))
        except ChatRejected as rejected:
            reason = rejected.reason
            if reason in delivery.BLOCKS_REFUSED and rich.refused(thread.id, whole, left_out, reason):
                raise ChatTooRich(reason) from None
            raise
        rich.taken(thread.id, whole, left_out)
        return sent

    async def _named(self, thread: Thread) -> Thread:
        return replace(thread, prompt=with_names(thread.prompt, await names_in([thread.prompt], self.people)))

    async def _update(self, channel_id: str, ts: str, message: ChatMessage) -> None:
        await call(self.client.chat_update(channel=channel_id, ts=ts, **message.content))

    async def _post(self, thread: Thread, key: str, message: ChatMessage, *, broadcast: bool = False) -> str:
        answer = await call(
            self.client.chat_postMessage(
                channel=thread.channel_id,
                thread_ts=thread.ts,
                reply_broadcast=broadcast or None,
                **message.content,
                metadata={"event_type": EVENT_TYPE, "event_payload": {"key": key}},
                unfurl_links=False,
                unfurl_media=False,
            )
        )
        if not (ts := text_at(answer, "ts")):
            raise ChatUncertain("answer_without_ts")
        return ts

    def _is_ours(self, message: dict[str, Any], key: str) -> bool:
        """Returns whether we posted a message with this key in its metadata."""
        metadata = message.get("metadata")
        named = (text_at(metadata, "event_type"), text_at(metadata, "event_payload", "key"))
        return named == (EVENT_TYPE, key) and bool(text_at(message, "ts")) and self.identity.wrote(Signed.read(message))


_NOT_JOINABLE = frozenset({"channel_not_found", "method_not_supported_for_channel_type", "not_in_channel"})


async def _call_unless(request: Awaitable[AsyncSlackResponse], *nothing_to_do: str) -> None:
    """Awaits a call. Ignores the error codes `nothing_to_do`, which mean that the wanted state already exists."""
    try:
        await call(request)
    except ChatRejected as rejected:
        if rejected.reason not in nothing_to_do:
            raise
