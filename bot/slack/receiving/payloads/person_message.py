"""A message that a person has just written, edited or deleted. Slack reports any change of a message as an edit, even
a preview that it adds.
"""

import logging
from dataclasses import dataclass, replace

from bot.domain import commands
from bot.domain.commands import ThreadWord
from bot.domain.requests.request import Arrival, Reply
from bot.slack.message_parts.contents import attachments_of
from bot.slack.message_parts.slack_message import SlackMessage
from bot.slack.message_parts.written_words import message_text, pasted_words
from bot.slack.receiving.payloads.payload import (
    MessagePayload,
    RevisionPayload,
    author_of,
    is_direct_message,
    message_author,
)
from bot.slack.sending.identity import Identity

logger = logging.getLogger(__name__)

_SUBTYPES_OF_PEOPLE = frozenset({"", "file_share", "me_message", "thread_broadcast"})
"""`me_message` is the result of `/me`."""


def read_message(payload: MessagePayload, identity: Identity, arrival: Arrival = Arrival.LIVE) -> Reply | None:
    """Returns the message of an event, with its text in Slack's escaped form; None if no person can have written it
    (see `may_be_from_a_person`), or if its other event has more information.
    """
    event, bot_user_id = payload.event, identity.bot_user_id
    if event.hidden or event.is_edited or not may_be_from_a_person(event, event.user, identity):
        return None
    person, is_mention = author_of(payload, identity), event.type == "app_mention"
    if is_mention and not person.team_id and _comes_as_message(identity):
        return None
    if not (event.ts and event.channel):
        logger.warning("a message without its channel or ts is left alone")
        return None
    text = message_text(event)
    return Reply(
        person=person,
        channel_id=event.channel,
        message_ts=event.ts,
        thread_ts=event.thread_ts if event.is_reply else "",
        text=text,
        attachments=attachments_of(event),
        mentions_us=is_mention or commands.mentions(text, bot_user_id),
        answers_us=event.parent_user_id == bot_user_id,
        in_direct_message=is_direct_message(event.channel) or event.channel_type == "im",
        arrival=arrival,
    )


def may_be_from_a_person(message: SlackMessage, author_id: str, identity: Identity) -> bool:
    """Returns whether a person wrote this, or an app that is not ours in the name of its author, who may be a bot
    (bot.slack.receiving.dependencies). False for system messages.
    """
    return (
        author_id not in {"", identity.bot_user_id, "USLACKBOT"}
        and message.subtype in _SUBTYPES_OF_PEOPLE
        and not identity.wrote(message)
    )


def _comes_as_message(identity: Identity) -> bool:
    """Returns whether each mention also comes as a message, which says more about people in shared channels."""
    return identity.granted_scopes is None or "groups:history" in identity.granted_scopes


TOMBSTONE = "tombstone"
"""The subtype of a deleted message whose thread remains: Slack reports its deletion as an edit."""


Parsed = commands.ParsedRequest | commands.ParsedReply


@dataclass(frozen=True)
class _Version:
    """A message before or after it was changed. The old one's author counts if the new one does not name its own."""

    message: SlackMessage
    author_id: str
    channel_id: str
    identity: Identity

    @property
    def text(self) -> str:
        return message_text(self.message)

    @property
    def in_direct_message(self) -> bool:
        return is_direct_message(self.channel_id)

    @property
    def mentions_us(self) -> bool:
        return commands.mentions(self.text, self.identity.bot_user_id)

    @property
    def thread_ts(self) -> str:
        """Empty for a message that begins a thread, which only matters if a request was made from it."""
        return self.message.thread_ts if self.message.is_reply else ""

    def may_concern_us(self) -> bool:
        """Returns whether it may have had an effect: a reply, a mention, a direct message."""
        return self.message.is_reply or self.in_direct_message or self.mentions_us

    def parsed(self, text: str) -> Parsed:
        has_attachments = bool(attachments_of(self.message))
        if not self.message.is_reply:
            return commands.parse_request(text, bot_user_id=self.identity.bot_user_id, has_attachments=has_attachments)
        return commands.parse_reply(
            text,
            bot_user_id=self.identity.bot_user_id,
            among_people=not self.in_direct_message,
            has_attachments=has_attachments,
        )

    def content(self) -> object:
        """Returns the relevant parts of the flat text, which every version has, of what was pasted and of the
        attachments. None if Slack does not include the text.
        """
        if not self.message.has_text:
            return None
        text, pasted = self.message.text, pasted_words(self.message)
        mentions_us = commands.mentions(text, self.identity.bot_user_id)
        return self.parsed(text), mentions_us, pasted, attachments_of(self.message)


def is_deletion(payload: RevisionPayload) -> bool:
    """Returns whether a reported edit is in fact the deletion of a message whose thread remains."""
    return payload.event.message.subtype == TOMBSTONE


def read_edit(
    payload: RevisionPayload, identity: Identity, arrival: Arrival = Arrival.LIVE, *, concerns_us: bool = False
) -> tuple[Reply, Reply] | None:
    """Returns a message after its author changed its text or files, and what it means as a reply; None if that is not
    what happened. `concerns_us`: it is known to have had an effect.
    """
    event = payload.event
    message, previous = event.message, event.previous_message
    before = _Version(previous, previous.user, event.channel, identity) if previous else None
    after = _Version(message, message.user or (previous.user if previous else ""), event.channel, identity)
    concerns_us = concerns_us or after.may_concern_us() or (before is not None and before.may_concern_us())
    theirs = may_be_from_a_person(message, after.author_id, identity) and _is_by_its_author(after, before)
    changed = message.has_text and after.content() != (before.content() if before else None)  # for us
    if not (concerns_us and theirs and changed):
        return None
    edited_at = event.ts or event.event_ts or message.edited.ts
    if not (edited_at and message.ts and event.channel):
        logger.warning("an edit without its channel or ts is left alone")
        return None
    edited = Reply(
        person=replace(message_author(message, payload, identity), id=after.author_id),
        channel_id=event.channel,
        message_ts=message.ts,
        thread_ts=after.thread_ts,
        text=after.text,
        attachments=attachments_of(message),
        mentions_us=after.mentions_us,
        in_direct_message=after.in_direct_message,
        edited_at=edited_at,
        arrival=arrival,
    )
    reply = _reply(edited, after.parsed(after.text), before.parsed(before.text) if before else None)
    return edited, replace(reply, mentioned_us_before=before is not None and before.mentions_us)


def deleted_reply(payload: RevisionPayload, identity: Identity) -> Reply | None:
    """Returns the deleted reply, without its thread if Slack does not name that; None if no reply was deleted."""
    event = payload.event
    previous = event.previous_message
    if previous is None and is_deletion(payload):
        return None
    message = previous or SlackMessage()
    before = _Version(message, message.user, event.channel, identity)
    somebodys = may_be_from_a_person(message, message.user or "U", identity)  # Slack may not name the author
    if previous is not None and not (before.may_concern_us() and somebodys):
        return None
    message_ts, deleted_at = event.deleted_ts or message.ts, event.ts or event.event_ts
    if not (message_ts and deleted_at and event.channel):
        logger.warning("a deletion without its channel, message or ts is left alone")
        return None
    return Reply(
        person=message_author(message, payload, identity),
        channel_id=event.channel,
        thread_ts=before.thread_ts,
        message_ts=message_ts,
        text="",
        edited_at=deleted_at,
        withdrawn=True,
        mentioned_us_before=before.mentions_us,
    )


def _reply(edited: Reply, now: Parsed, before: Parsed | None) -> Reply:
    """An edit gives no commands: a message that became a word for Pagehand is no longer for the agent, and names the
    word, about which its author is told. But one that already asked for another job asks for it with its new text.
    """
    reply = replace(edited, text="")
    match now:
        case commands.FollowUp(prompt):
            return replace(reply, text=prompt)
        case commands.Start(options=options) | commands.Blank(options):
            return replace(reply, text=now.prompt if isinstance(now, commands.Start) else "", options=options)
        case commands.NoWords():
            return reply
        case commands.Word(ThreadWord.NEW, prompt) if isinstance(before, commands.Word | None) and not isinstance(
            commands.parse_prompt(prompt), commands.WrongOption | commands.Blank
        ):
            return replace(reply, text=prompt, word=ThreadWord.NEW)
        case commands.OnlyEmoji(emoji):  # emoji that are held as a possible answer may still be one
            return replace(reply, text=emoji, withdrawn=True)
        case _:
            return replace(reply, word=_word_in(now), withdrawn=True)


def _word_in(now: Parsed) -> ThreadWord | None:
    """Returns the word for Pagehand that a message is, or was probably meant to be."""
    match now:
        case commands.Word(word) | commands.UnclearWord(word):
            return word
        case commands.Help():
            return ThreadWord.HELP
        case _:
            return None


def _is_by_its_author(after: _Version, before: _Version | None) -> bool:
    """If Slack names no editor, the edit counts as the author's if Slack includes the text before it."""
    editor = after.message.edited.user
    return editor == after.author_id if editor else before is not None
