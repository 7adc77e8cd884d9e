"""Replies in a job's thread: follow-ups. Whether a thread is a job's is for the store to say, not for the listener."""

import logging
from typing import Any

from slack_bolt.app.async_app import AsyncApp

from bot.domain.commands import Aside, FollowUp, parse_reply
from bot.domain.requests import Reply
from bot.runtime.json_fields import text_at
from bot.slack.receiving.payloads.actors import message_author
from bot.slack.receiving.payloads.attachments import attachments_of
from bot.slack.receiving.payloads.fields import ts_at
from bot.slack.receiving.request_recorder import RequestRecorder
from bot.slack.receiving.service_port import ServicePort
from bot.slack.rendering.ephemeral_texts import unknown_job
from bot.slack.rendering.message_context import MessageContext
from bot.slack.sending.identity import Identity

logger = logging.getLogger(__name__)

EVENTS = ("message", "app_mention")
"""A reply that mentions the bot comes as both; the service takes the two for one by the message's `ts`."""

_SUBTYPES_OF_PEOPLE = frozenset({"", "file_share", "me_message", "thread_broadcast"})
"""The third is what `/me` makes of somebody's words."""
_SLACKBOT = "USLACKBOT"


def register(
    app: AsyncApp,
    service: ServicePort,
    recorder: RequestRecorder,
    message_context: MessageContext,
    *,
    identity: Identity,
) -> None:
    """Listens for replies."""

    async def on_message(body: dict[str, Any]) -> None:
        await handle_reply(body, service, recorder, message_context, identity=identity)

    for event in EVENTS:
        app.event(event)(on_message)


async def handle_reply(
    body: dict[str, Any],
    service: ServicePort,
    recorder: RequestRecorder,
    message_context: MessageContext,
    *,
    identity: Identity,
) -> None:
    """Records a person's reply, or tells them that it can go nowhere. Raises NotRecorded where Slack has to bring it
    again.
    """
    event, bot_user_id = body.get("event"), identity.bot_user_id
    if not isinstance(event, dict) or not is_from_a_person(event, bot_user_id=bot_user_id):
        return
    thread_ts, message_ts = ts_at(event, "thread_ts"), ts_at(event, "ts")
    channel_id, person = text_at(event, "channel"), message_author(body, identity)
    if not thread_ts or thread_ts == message_ts:
        return
    if not person.team_id and text_at(event, "type") == "app_mention":
        return  # it comes as a message, too, which tells more in channels that are shared
    if not (message_ts and channel_id):
        logger.warning("a reply without its channel or ts is left alone")
        return
    parsed, attachments = parse_reply(text_at(event, "text"), bot_user_id=bot_user_id), attachments_of(event)
    text = parsed.prompt if isinstance(parsed, FollowUp) else ""
    mentions_us = f"<@{bot_user_id}" in text_at(event, "text")
    if isinstance(parsed, Aside) or not (text or attachments or mentions_us):
        return
    reply = Reply(person, channel_id, thread_ts, message_ts, text, attachments, mentions_us=mentions_us)
    if not await recorder.record_event(service.receive(reply)) and is_reply_to_us(event, bot_user_id=bot_user_id):
        recorder.tell_in_background(person, channel_id, unknown_job(message_context))


def is_reply_to_us(event: dict[str, Any], *, bot_user_id: str) -> bool:
    """Returns whether the thread's first message is ours. A reply that mentions us comes twice: one of them counts."""
    return text_at(event, "parent_user_id") == bot_user_id and text_at(event, "type") == "message"


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
