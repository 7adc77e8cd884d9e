"""Reads Slack's history (PastMessages of bot.ports.slack), by conversations.history, conversations.replies and
users.conversations.
"""

from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from bot.domain.gaps.past_message import PastMessage
from bot.ports.slack import HistoryPage, PastMessages
from bot.runtime.untrusted_json import LenientModel, Objects, Text, Texts, objects_at
from bot.slack.message_parts.slack_message import LastEdit, Ts
from bot.slack.sending.identity import Identity
from bot.slack.sending.web_api import AnswerPage, call

PAGE_SIZE = 200
_PRIVATE_CHANNELS = "groups:read"
_STOP = "x"
"""Slack's name of the reaction that stops a job."""


class ReactionOfMessage(LenientModel):
    """A reaction to a message. Slack may not list all of its `users`."""

    name: Text = ""
    users: Texts = ()


class DescribedMessage(LenientModel):
    """The parts of a message that decide whether it was missed."""

    ts: Ts = ""
    user: Text = ""
    text: Text = ""
    edited: LastEdit = LastEdit()
    latest_reply: Ts = ""
    reactions: Objects[ReactionOfMessage] = ()


class DescribedConversation(LenientModel):
    """A channel that the app is in."""

    id: Text = ""


class ConversationsPage(AnswerPage):
    """The answer of users.conversations."""

    channels: Objects[DescribedConversation] = ()


class SlackPastMessages(PastMessages):
    """Its `client` leaves Slack's limits to everything that people wait for."""

    def __init__(self, client: AsyncWebClient, identity: Identity) -> None:
        self._client = client
        granted = identity.granted_scopes
        private = ("private_channel",) if granted is None or _PRIVATE_CHANNELS in granted else ()
        self._kinds = ",".join(("public_channel", *private))

    async def messages(
        self, channel_id: str, thread_ts: str, *, oldest: str, cursor: str = ""
    ) -> HistoryPage[PastMessage]:
        """See PastMessages."""
        options: dict[str, Any] = {"channel": channel_id, "oldest": oldest, "limit": PAGE_SIZE}
        options |= {"cursor": cursor} if cursor else {}
        if thread_ts:
            answer = await call(self._client.conversations_replies(ts=thread_ts, **options))
        else:
            answer = await call(self._client.conversations_history(**options))
        described = [(DescribedMessage.read(raw), raw) for raw in objects_at(answer, "messages")]
        messages = [_past(message, raw) for message, raw in described if message.ts]
        return HistoryPage(messages, AnswerPage.read(answer).next_cursor)

    async def channels(self, cursor: str = "") -> HistoryPage[str]:
        """See PastMessages."""
        options: dict[str, Any] = {"cursor": cursor} if cursor else {}
        answer = await call(
            self._client.users_conversations(types=self._kinds, exclude_archived=True, limit=PAGE_SIZE, **options)
        )
        page = ConversationsPage.read(answer)
        return HistoryPage([channel.id for channel in page.channels if channel.id], page.next_cursor)


def _past(message: DescribedMessage, raw: dict[str, Any]) -> PastMessage:
    stops = [person for reaction in message.reactions if reaction.name == _STOP for person in reaction.users]
    return PastMessage(
        ts=message.ts,
        author_id=message.user,
        text=message.text,
        edited_at=message.edited.ts,
        latest_reply=message.latest_reply,
        stops=tuple(dict.fromkeys(stops)),
        raw=raw,
    )
