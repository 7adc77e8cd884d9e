"""Finds messages of our own again, by the key in their metadata."""

from collections.abc import AsyncIterator, Awaitable, Callable

from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.runtime.untrusted_json import LenientModel, Objects, Text
from bot.slack.message_parts.slack_message import Signed
from bot.slack.sending.identity import Identity
from bot.slack.sending.web_api import AnswerPage, call

CLOCK_DIFFERENCE = 2 * 3_600.0
"""Seconds by which our clock may differ from Slack's."""
PAGE_SIZE, _MOST_PAGES = 200, 25


class KeyPayload(LenientModel):
    """The content of our messages' metadata."""

    key: Text = ""


class MessageMetadata(LenientModel):
    """The metadata of a message."""

    event_type: Text = ""
    event_payload: KeyPayload = KeyPayload()


class PostedMessage(Signed):
    """The parts of a message that show whether it is one of ours. Its blocks are not read."""

    ts: Text = ""
    metadata: MessageMetadata = MessageMetadata()


class PostedMessages(AnswerPage):
    """The answer of conversations.replies and conversations.history."""

    messages: Objects[PostedMessage] = ()


def metadata_with(event_type: str, key: str) -> dict[str, object]:
    """Returns the metadata by which a message is found again."""
    return {"event_type": event_type, "event_payload": {"key": key}}


def oldest_since(at: float) -> str:
    """Returns the `oldest` of a search for what was posted since a time, in seconds since the epoch."""
    return f"{max(at - CLOCK_DIFFERENCE, 0.0):.6f}"


async def posted_with(
    event_type: str, key: str, identity: Identity, page: Callable[[str], Awaitable[AsyncSlackResponse]]
) -> AsyncIterator[str]:
    """Yields the `ts` of each message of ours with this metadata, in at most 5,000 messages. `page` calls Slack for the
    page at a cursor. Raises ChatError.
    """
    cursor = ""
    for _ in range(_MOST_PAGES):
        answer = PostedMessages.read(await call(page(cursor)))
        for message in answer.messages:
            has_key = (message.metadata.event_type, message.metadata.event_payload.key) == (event_type, key)
            if has_key and message.ts and identity.wrote(message):
                yield message.ts
        cursor = answer.next_cursor
        if not cursor:
            return
