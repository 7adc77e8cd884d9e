"""Edits and deletions of messages, as events tell of them. Whatever changes about a message comes as an edit, a link's
preview for example.
"""

import logging
from dataclasses import dataclass, replace
from typing import Any

from bot.domain.commands.commands import (
    Aside,
    Blank,
    FollowUp,
    Help,
    NoWords,
    OnlyEmoji,
    Start,
    Thanks,
    mentions,
    parse_prompt,
    parse_reply,
    parse_request,
)
from bot.domain.commands.options import WrongOption
from bot.domain.commands.thread_words import ThreadWord, UnclearWord, Word
from bot.domain.requests.request import Reply
from bot.runtime.json_fields import object_at, text_at
from bot.slack.receiving.payloads.actors import actor
from bot.slack.receiving.payloads.attachments import attachments_of
from bot.slack.receiving.payloads.fields import is_direct_message, ts_at
from bot.slack.receiving.payloads.person_message import PersonMessage, is_from_a_person
from bot.slack.receiving.payloads.rich_text import message_text
from bot.slack.sending.identity import Identity

logger = logging.getLogger(__name__)

_DELETED_WITH_REPLIES = "tombstone"
"""What is left of a deleted message whose thread goes on: Slack reports it as an edit."""
Said = Aside | Thanks | OnlyEmoji | NoWords | Word | UnclearWord | FollowUp | Help | Blank | Start | WrongOption
"""What a message is read as: one in a thread, or one that begins a thread."""


@dataclass(frozen=True)
class Edit:
    """What a message says since its author changed it, and what that is as a reply."""

    message: PersonMessage
    reply: Reply


def is_deletion(body: dict[str, Any]) -> bool:
    """Returns whether what Slack reports as an edit is the deletion of a message whose thread goes on."""
    return text_at(body, "event", "message", "subtype") == _DELETED_WITH_REPLIES


def read_edit(body: dict[str, Any], identity: Identity) -> Edit | None:
    """Returns what a message says after its author changed its words or files; None where that is not what happened.
    What begins a thread has no `thread_ts` here: of such a message, only what was made of it matters.
    """
    event, bot_user_id = object_at(body, "event"), identity.bot_user_id
    message, before = object_at(event, "message"), object_at(event, "previous_message")
    message = {"user": text_at(before, "user")} | {name: value for name, value in message.items() if value is not None}
    concerns_us = _concerns_us(message, event, bot_user_id) or _concerns_us(before, event, bot_user_id)
    if not (concerns_us and _is_by_a_person(message, bot_user_id)):
        return None
    if not (_is_changed(message, before, event, bot_user_id) and _is_by_its_author(message, before)):
        return None
    edited_at = ts_at(event, "ts") or ts_at(event, "event_ts") or ts_at(message.get("edited"), "ts")
    if not (edited_at and ts_at(message, "ts") and text_at(event, "channel")):
        logger.warning("an edit without its channel or ts is left alone")
        return None
    edited = _person_message(body, message, identity, edited_at)
    said = _said(edited.text, message, event, bot_user_id)
    said_before = _said(message_text(before), before, event, bot_user_id) if before else None
    reply = _reply(edited, said, said_before)
    return Edit(edited, replace(reply, mentioned_us_before=mentions(message_text(before), bot_user_id)))


def deleted_reply(body: dict[str, Any], identity: Identity) -> Reply | None:
    """Returns the reply that is gone, without its thread where Slack does not name that; None where none is gone."""
    event = object_at(body, "event")
    before, bot_user_id = object_at(event, "previous_message"), identity.bot_user_id
    if is_deletion(body) and not before:
        return None
    if before and not (_concerns_us(before, event, bot_user_id) and _may_be_by_a_person(before, bot_user_id)):
        return None
    message_ts = ts_at(event, "deleted_ts") or ts_at(before, "ts")
    deleted_at, channel_id = ts_at(event, "ts") or ts_at(event, "event_ts"), text_at(event, "channel")
    if not (message_ts and deleted_at and channel_id):
        logger.warning("a deletion without its channel, message or ts is left alone")
        return None
    person = actor(body | {"event": before}, identity)
    thread_ts = ts_at(before, "thread_ts") if _is_reply(before) else ""
    gone = Reply(person, channel_id, thread_ts, message_ts, "", edited_at=deleted_at, withdrawn=True)
    return replace(gone, mentioned_us_before=mentions(message_text(before), bot_user_id))


def _person_message(body: dict[str, Any], message: dict[str, Any], identity: Identity, edited_at: str) -> PersonMessage:
    channel_id, text = text_at(body, "event", "channel"), message_text(message)
    return PersonMessage(
        person=actor(body | {"event": message}, identity),
        channel_id=channel_id,
        ts=ts_at(message, "ts"),
        thread_ts=ts_at(message, "thread_ts") if _is_reply(message) else "",
        text=text,
        attachments=attachments_of(message),
        mentions_us=mentions(text, identity.bot_user_id),
        answers_us=False,
        in_direct_message=is_direct_message(channel_id),
        edited_at=edited_at,
    )


def _reply(edited: PersonMessage, said: Said, said_before: Said | None) -> Reply:
    """An edit gives no order: what became a word for Pagehand is only not for the agent. But what asked for another job
    before asks for that in its new words.
    """
    reply = Reply(
        person=edited.person,
        channel_id=edited.channel_id,
        thread_ts=edited.thread_ts,
        message_ts=edited.ts,
        text="",
        attachments=edited.attachments,
        edited_at=edited.edited_at,
        mentions_us=edited.mentions_us,
        in_direct_message=edited.in_direct_message,
    )
    match said:
        case FollowUp(prompt):
            return replace(reply, text=prompt)
        case Start(prompt, options):
            return replace(reply, text=prompt, options=options)
        case Blank(options):
            return replace(reply, options=options)
        case NoWords():
            return reply
        case Word(ThreadWord.NEW, prompt) if isinstance(said_before, Word | None) and _can_be_started(prompt):
            return replace(reply, text=prompt, word=ThreadWord.NEW)
        case _:  # emoji that were held as an answer may still be one
            return replace(reply, text=said.words if isinstance(said, OnlyEmoji) else "", withdrawn=True)


def _can_be_started(prompt: str) -> bool:
    return not isinstance(parse_prompt(prompt), WrongOption | Blank)


def _is_reply(message: dict[str, Any]) -> bool:
    thread_ts, message_ts = ts_at(message, "thread_ts"), ts_at(message, "ts")
    return bool(thread_ts and message_ts) and thread_ts != message_ts


def _concerns_us(message: dict[str, Any], event: dict[str, Any], bot_user_id: str) -> bool:
    """Whether a message may be one that something was made of: a reply, a mention, a direct message."""
    in_direct_message = is_direct_message(text_at(event, "channel"))
    return _is_reply(message) or (bool(message) and in_direct_message) or mentions(message_text(message), bot_user_id)


def _is_by_a_person(message: dict[str, Any], bot_user_id: str) -> bool:
    as_written = {name: value for name, value in message.items() if name not in {"edited", "hidden"}}
    return is_from_a_person(as_written, bot_user_id=bot_user_id)


def _may_be_by_a_person(message: dict[str, Any], bot_user_id: str) -> bool:
    """As `_is_by_a_person`, but a message without its user counts as a person's."""
    return _is_by_a_person(message if text_at(message, "user") else message | {"user": "U"}, bot_user_id)


def _is_by_its_author(message: dict[str, Any], before: dict[str, Any]) -> bool:
    """Where Slack names no editor, it counts as the author's edit if Slack tells what the message said before."""
    editor = text_at(message.get("edited"), "user")
    return editor == text_at(message, "user") if editor else bool(before)


def _is_changed(message: dict[str, Any], before: dict[str, Any], event: dict[str, Any], bot_user_id: str) -> bool:
    """Whether two versions differ in what they say to us, or in attachments; False where Slack does not tell the words.
    Compared are the flat ones, which each version has.
    """
    if not isinstance(message.get("text"), str):
        return False
    return _content(message, event, bot_user_id) != _content(before, event, bot_user_id)


def _content(message: dict[str, Any], event: dict[str, Any], bot_user_id: str) -> object:
    text = message.get("text")
    if not isinstance(text, str):
        return None
    said = _said(text, message, event, bot_user_id)
    return said, mentions(text, bot_user_id), attachments_of(message)


def _said(text: str, message: dict[str, Any], event: dict[str, Any], bot_user_id: str) -> Said:
    among_people, has_attachments = not is_direct_message(text_at(event, "channel")), bool(attachments_of(message))
    if _is_reply(message):
        return parse_reply(text, bot_user_id=bot_user_id, among_people=among_people, has_attachments=has_attachments)
    return parse_request(text, bot_user_id=bot_user_id, has_attachments=has_attachments)
