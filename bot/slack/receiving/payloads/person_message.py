"""A message that a person has just written, as an event tells of it."""

import logging
from dataclasses import dataclass
from typing import Any

from bot.domain.commands.commands import mentions
from bot.domain.requests.request import Attachments, Person
from bot.runtime.json_fields import object_at, text_at
from bot.slack.receiving.payloads.actors import actor
from bot.slack.receiving.payloads.attachments import attachments_of
from bot.slack.receiving.payloads.fields import is_direct_message, ts_at
from bot.slack.receiving.payloads.rich_text import message_text
from bot.slack.sending.identity import Identity

logger = logging.getLogger(__name__)

_SUBTYPES_OF_PEOPLE = frozenset({"", "file_share", "me_message", "thread_broadcast"})
"""The third is what `/me` makes of somebody's words."""
_SLACKBOT = "USLACKBOT"
_MENTION = "app_mention"
_PRIVATE_MESSAGES = "groups:history"


@dataclass(frozen=True)
class PersonMessage:
    """What somebody wrote. `text` is in Slack's escaped form; `thread_ts` is empty for what begins no thread and is in
    none. `answers_us`: the thread's first message is ours. `edited_at` is the `ts` of the edit that it comes from;
    empty: it was just written.
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

    @property
    def key(self) -> str:
        """Made of Slack's own ids: the same for both events that tell of one message."""
        return f"message/{self.channel_id}/{self.ts}"


def read_message(body: dict[str, Any], identity: Identity) -> PersonMessage | None:
    """Returns the message of an event; None where it is no person's, or the other event of it tells more."""
    event = object_at(body, "event")
    if not is_from_a_person(event, bot_user_id=identity.bot_user_id):
        return None
    person, is_mention = actor(body, identity), text_at(event, "type") == _MENTION
    if is_mention and not person.team_id and _comes_as_message(identity):
        return None
    ts, thread_ts, channel_id = ts_at(event, "ts"), ts_at(event, "thread_ts"), text_at(event, "channel")
    text = message_text(event)
    if not (ts and channel_id):
        logger.warning("a message without its channel or ts is left alone")
        return None
    return PersonMessage(
        person=person,
        channel_id=channel_id,
        ts=ts,
        thread_ts="" if thread_ts == ts else thread_ts,
        text=text,
        attachments=attachments_of(event),
        mentions_us=is_mention or mentions(text, identity.bot_user_id),
        answers_us=text_at(event, "parent_user_id") == identity.bot_user_id,
        in_direct_message=is_direct_message(channel_id) or text_at(event, "channel_type") == "im",
    )


def is_from_a_person(event: dict[str, Any], *, bot_user_id: str) -> bool:
    """Returns whether a person has just written this: no bot, nor ourselves; no edit, deletion or system message."""
    user = text_at(event, "user")
    subtype = event.get("subtype")
    return (
        bool(user)
        and user not in {bot_user_id, _SLACKBOT}
        and (subtype is None or subtype in _SUBTYPES_OF_PEOPLE)
        and not any(event.get(trace) for trace in ("bot_id", "bot_profile", "hidden", "edited"))
    )


def _comes_as_message(identity: Identity) -> bool:
    """Whether each mention comes as a message as well, which tells more of people in channels that are shared."""
    return identity.granted_scopes is None or _PRIVATE_MESSAGES in identity.granted_scopes
