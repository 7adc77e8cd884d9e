"""Edits and deletions of replies. Whatever changes about a message comes as an edit, a link's preview for example."""

import logging
from typing import Any

from slack_bolt.app.async_app import AsyncApp

from bot.domain.commands import FollowUp, NoWords, mentions, parse_reply
from bot.domain.requests import Reply
from bot.runtime.json_fields import object_at, text_at
from bot.slack.receiving.dependencies import Dependencies
from bot.slack.receiving.payloads.actors import is_in_shared_channel, message_author
from bot.slack.receiving.payloads.attachments import attachments_of
from bot.slack.receiving.payloads.fields import is_direct_message, ts_at
from bot.slack.receiving.payloads.person_message import is_from_a_person
from bot.slack.receiving.payloads.rich_text import message_text
from bot.slack.sending.identity import Identity

logger = logging.getLogger(__name__)


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
    """Returns what a reply says after its author changed its words or files; None where that is not what happened."""
    event, bot_user_id = object_at(body, "event"), identity.bot_user_id
    message, before = object_at(event, "message"), object_at(event, "previous_message")
    message = {"user": text_at(before, "user")} | {name: value for name, value in message.items() if value is not None}
    if not _is_reply(message) or not _is_by_a_person(message, bot_user_id):
        return None
    changed = _content(message, bot_user_id) not in {None, _content(before, bot_user_id)}
    if not (changed and _is_by_its_author(message, before)):
        return None
    edited_at = ts_at(event, "ts") or ts_at(event, "event_ts") or ts_at(message.get("edited"), "ts")
    channel_id = text_at(event, "channel")
    if not (edited_at and channel_id):
        logger.warning("an edit without its channel or ts is left alone")
        return None
    return _revised(body, message, identity, edited_at)


def _revised(body: dict[str, Any], message: dict[str, Any], identity: Identity, edited_at: str) -> Reply:
    """An edit gives no order: a reply that became a word for Pagehand is only not for the agent any more."""
    channel_id, text = text_at(body, "event", "channel"), message_text(message)
    attachments, in_direct_message = attachments_of(message), is_direct_message(channel_id)
    said = parse_reply(
        text,
        bot_user_id=identity.bot_user_id,
        among_people=not in_direct_message,
        has_attachments=bool(attachments),
    )
    return Reply(
        person=message_author(body | {"event": message}, identity),
        channel_id=channel_id,
        thread_ts=ts_at(message, "thread_ts"),
        message_ts=ts_at(message, "ts"),
        text=said.prompt if isinstance(said, FollowUp) else "",
        attachments=attachments,
        edited_at=edited_at,
        withdrawn=not isinstance(said, FollowUp | NoWords),
        mentions_us=mentions(text, identity.bot_user_id),
        in_direct_message=in_direct_message,
        in_shared_channel=is_in_shared_channel(body),
    )


def deleted_reply(body: dict[str, Any], identity: Identity) -> Reply | None:
    """Returns the reply that is gone, without its thread where Slack does not name that; None where none is gone."""
    event = object_at(body, "event")
    before = object_at(event, "previous_message")
    if before and not (_is_reply(before) and _may_be_by_a_person(before, identity.bot_user_id)):
        return None
    message_ts = ts_at(event, "deleted_ts") or ts_at(before, "ts")
    deleted_at, channel_id = ts_at(event, "ts") or ts_at(event, "event_ts"), text_at(event, "channel")
    if not (message_ts and deleted_at and channel_id):
        logger.warning("a deletion without its channel, message or ts is left alone")
        return None
    person, thread_ts = message_author(body | {"event": before}, identity), ts_at(before, "thread_ts")
    return Reply(person, channel_id, thread_ts, message_ts, "", edited_at=deleted_at, withdrawn=True)


def _is_reply(message: dict[str, Any]) -> bool:
    thread_ts, message_ts = ts_at(message, "thread_ts"), ts_at(message, "ts")
    return bool(thread_ts and message_ts) and thread_ts != message_ts


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


def _content(message: dict[str, Any], bot_user_id: str) -> object:
    """Returns what two versions are compared by: the words as the agent gets them, which files there are, and whether
    there is a forwarded message; what Slack tells of these can change by itself. None where it does not tell the words.
    """
    if not isinstance(message.get("text"), str):
        return None
    attachments = attachments_of(message)
    files = tuple((file.id, file.name) for file in attachments.files)
    return parse_reply(message["text"], bot_user_id=bot_user_id), files, bool(attachments.forwarded)
