"""Edits and deletions of replies, and of messages that asked for a job. Whatever changes about a message comes as an
edit, a link's preview for example.
"""

import logging
from typing import Any

from slack_bolt.app.async_app import AsyncApp

from bot.domain.commands import Blank, FollowUp, NoWords, Start, mentions, parse_reply, parse_request
from bot.domain.requests import Attachments, Reply
from bot.runtime.json_fields import object_at, text_at
from bot.slack.receiving.dependencies import Dependencies
from bot.slack.receiving.payloads.actors import actor
from bot.slack.receiving.payloads.attachments import attachments_of
from bot.slack.receiving.payloads.fields import is_direct_message, ts_at
from bot.slack.receiving.payloads.person_message import is_from_a_person
from bot.slack.receiving.payloads.rich_text import message_text
from bot.slack.sending.identity import Identity

logger = logging.getLogger(__name__)

_DELETED_WITH_REPLIES = "tombstone"
"""What is left of a deleted message whose thread goes on: Slack reports it as an edit."""


def register(app: AsyncApp, dependencies: Dependencies) -> None:
    """Listens for edits and deletions. Has to come before whatever listens for all messages."""
    service, recorder, identity = dependencies.service, dependencies.recorder, dependencies.identity

    async def on_edit(body: dict[str, Any]) -> None:
        reply = edited_reply(body, identity)
        if reply is not None:
            await recorder.record_event(service.revise(reply))

    async def on_deletion(body: dict[str, Any]) -> None:
        reply = deleted_reply(body, identity)
        if reply is not None:
            await recorder.record_event(service.revise(reply))

    app.event({"type": "message", "subtype": "message_changed"})(on_edit)
    app.event({"type": "message", "subtype": "message_deleted"})(on_deletion)


def edited_reply(body: dict[str, Any], identity: Identity) -> Reply | None:
    """Returns what a message says after its author changed its words or files; None where that is not what happened.
    What begins a thread has no `thread_ts` here: of such a message, only what was made of it matters.
    """
    event, bot_user_id = object_at(body, "event"), identity.bot_user_id
    message, before = object_at(event, "message"), object_at(event, "previous_message")
    if text_at(message, "subtype") == _DELETED_WITH_REPLIES:
        return deleted_reply(body, identity) if before else None
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
    return _revised(body, message, identity, edited_at)


def _revised(body: dict[str, Any], message: dict[str, Any], identity: Identity, edited_at: str) -> Reply:
    event, text, attachments = object_at(body, "event"), message_text(message), attachments_of(message)
    words = _words_for_job(text, message, event, identity.bot_user_id, attachments)
    return Reply(
        person=actor(body | {"event": message}, identity),
        channel_id=text_at(event, "channel"),
        thread_ts=ts_at(message, "thread_ts") if _is_reply(message) else "",
        message_ts=ts_at(message, "ts"),
        text=words or "",
        attachments=attachments,
        edited_at=edited_at,
        withdrawn=words is None,
        mentions_us=mentions(text, identity.bot_user_id),
        in_direct_message=is_direct_message(text_at(event, "channel")),
    )


def deleted_reply(body: dict[str, Any], identity: Identity) -> Reply | None:
    """Returns the reply that is gone, without its thread where Slack does not name that; None where none is gone."""
    event = object_at(body, "event")
    before, bot_user_id = object_at(event, "previous_message"), identity.bot_user_id
    if before and not (_concerns_us(before, event, bot_user_id) and _may_be_by_a_person(before, bot_user_id)):
        return None
    message_ts = ts_at(event, "deleted_ts") or ts_at(before, "ts")
    deleted_at, channel_id = ts_at(event, "ts") or ts_at(event, "event_ts"), text_at(event, "channel")
    if not (message_ts and deleted_at and channel_id):
        logger.warning("a deletion without its channel, message or ts is left alone")
        return None
    person = actor(body | {"event": before}, identity)
    thread_ts = ts_at(before, "thread_ts") if _is_reply(before) else ""
    return Reply(person, channel_id, thread_ts, message_ts, "", edited_at=deleted_at, withdrawn=True)


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
    """Whether two versions differ in the words that the agent gets, or in attachments; False where Slack does not tell
    the words. Compared are the flat ones, which each version has.
    """
    if not isinstance(message.get("text"), str):
        return False
    return _content(message, event, bot_user_id) != _content(before, event, bot_user_id)


def _content(message: dict[str, Any], event: dict[str, Any], bot_user_id: str) -> object:
    text, attachments = message.get("text"), attachments_of(message)
    if not isinstance(text, str):
        return None
    return _words_for_job(text, message, event, bot_user_id, attachments), attachments


def _words_for_job(
    text: str, message: dict[str, Any], event: dict[str, Any], bot_user_id: str, attachments: Attachments
) -> str | None:
    """Returns the words that are for the agent; None where the message is not for it any more. An edit gives no order:
    what became a word for Pagehand is only not for the agent.
    """
    among_people, has_attachments = not is_direct_message(text_at(event, "channel")), bool(attachments)
    said = (
        parse_reply(text, bot_user_id=bot_user_id, among_people=among_people, has_attachments=has_attachments)
        if _is_reply(message)
        else parse_request(text, bot_user_id=bot_user_id, has_attachments=has_attachments)
    )
    match said:
        case FollowUp(prompt) | Start(prompt):
            return prompt
        case NoWords() | Blank():
            return ""
        case _:
            return None
