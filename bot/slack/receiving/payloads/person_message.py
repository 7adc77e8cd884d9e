"""A message that a person has just written."""

import logging
from dataclasses import dataclass

from bot.domain.commands.commands import mentions
from bot.domain.requests.request import Arrival, Attachments, Person
from bot.slack.message_parts.attachments import attachments_of
from bot.slack.message_parts.slack_message import SlackMessage
from bot.slack.message_parts.written_words import message_text
from bot.slack.receiving.payloads.actors import author_of
from bot.slack.receiving.payloads.events import MessagePayload
from bot.slack.receiving.payloads.payload import is_direct_message
from bot.slack.sending.identity import Identity

logger = logging.getLogger(__name__)

_SUBTYPES_OF_PEOPLE = frozenset({"", "file_share", "me_message", "thread_broadcast"})
"""`me_message` is the result of `/me`."""
_SLACKBOT = "USLACKBOT"
_MENTION = "app_mention"
_PRIVATE_MESSAGES = "groups:history"


@dataclass(frozen=True)
class PersonMessage:
    """A message by a person. `text` is in Slack's escaped form. `thread_ts` is empty for a message outside a thread,
    even if it begins one. `answers_us`: the thread's first message is ours. `edited_at` is the `ts` of the last edit;
    empty for a message that was just written.
    """

    person: Person
    channel_id: str
    ts: str
    thread_ts: str
    text: str
    attachments: Attachments
    mentions_us: bool
    answers_us: bool
    in_direct_message: bool
    edited_at: str = ""
    arrival: Arrival = Arrival.LIVE

    @property
    def may_concern_us(self) -> bool:
        """Whether it may have an effect."""
        return bool(self.thread_ts) or self.is_to_us

    @property
    def is_to_us(self) -> bool:
        """Whether it is written to Pagehand."""
        return self.mentions_us or self.in_direct_message

    @property
    def key(self) -> str:
        """Made from Slack's own ids, so it is the same for both events about one message."""
        return f"message/{self.channel_id}/{self.ts}"


def read_message(payload: MessagePayload, identity: Identity, arrival: Arrival = Arrival.LIVE) -> PersonMessage | None:
    """Returns the message of an event; None if no person can have written it (see `may_be_from_a_person`), or if its
    other event has more information.
    """
    event, bot_user_id = payload.event, identity.bot_user_id
    if event.hidden or event.is_edited or not may_be_from_a_person(event, event.user, identity):
        return None
    person, is_mention = author_of(payload, identity), event.type == _MENTION
    if is_mention and not person.team_id and _comes_as_message(identity):
        return None
    if not (event.ts and event.channel):
        logger.warning("a message without its channel or ts is left alone")
        return None
    text = message_text(event)
    return PersonMessage(
        person=person,
        channel_id=event.channel,
        ts=event.ts,
        thread_ts=event.thread_ts if event.is_reply else "",
        text=text,
        attachments=attachments_of(event),
        mentions_us=is_mention or mentions(text, bot_user_id),
        answers_us=event.parent_user_id == bot_user_id,
        in_direct_message=is_direct_message(event.channel) or event.channel_type == "im",
        arrival=arrival,
    )


def may_be_from_a_person(message: SlackMessage, author_id: str, identity: Identity) -> bool:
    """Returns whether a person wrote this, or an app that is not ours in the name of its author, who may be a bot
    (bot.slack.receiving.authors). False for system messages.
    """
    return (
        author_id not in {"", identity.bot_user_id, _SLACKBOT}
        and message.subtype in _SUBTYPES_OF_PEOPLE
        and not identity.wrote(message)
    )


def _comes_as_message(identity: Identity) -> bool:
    """Returns whether each mention also comes as a message, which says more about people in shared channels."""
    return identity.granted_scopes is None or _PRIVATE_MESSAGES in identity.granted_scopes
