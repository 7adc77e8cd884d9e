"""Replies in a job's thread: follow-ups. Whether a thread is a job's is for the store to say, not for the listener."""

import logging
from typing import Any

from slack_bolt.app.async_app import AsyncApp

from bot.domain.commands import FollowUp, parse_reply
from bot.slack.payload import author, field, timestamp
from bot.slack.recording import Recorder, Service
from bot.slack.wording import Wording, unknown_job

logger = logging.getLogger(__name__)

EVENTS = ("message", "app_mention")
"""A reply that mentions the bot comes as both; the service takes the two for one by the message's `ts`."""

_FROM_PEOPLE = frozenset({"", "file_share", "thread_broadcast"})
_SLACKBOT = "USLACKBOT"


def register(app: AsyncApp, service: Service, recorder: Recorder, wording: Wording, *, bot_user_id: str) -> None:
    """Listens for replies."""

    async def reply(body: dict[str, Any]) -> None:
        await take(body, service, recorder, wording, bot_user_id=bot_user_id)

    for event in EVENTS:
        app.event(event)(reply)


async def take(
    body: dict[str, Any], service: Service, recorder: Recorder, wording: Wording, *, bot_user_id: str
) -> None:
    """Records a person's reply, or tells them that it can go nowhere. Raises NotRecorded where Slack has to bring it
    again.
    """
    event = body.get("event")
    if not isinstance(event, dict) or not is_from_a_person(event, bot_user_id=bot_user_id):
        return
    thread_ts, message_ts = timestamp(event, "thread_ts"), timestamp(event, "ts")
    channel_id, person = field(event, "channel"), author(body)
    if not thread_ts or thread_ts == message_ts:
        return
    if not (message_ts and channel_id):
        logger.warning("a reply without its channel or ts is left alone")
        return
    said = parse_reply(field(event, "text"), bot_user_id=bot_user_id)
    if not isinstance(said, FollowUp):
        return
    known = await recorder.event(service.steer(person, channel_id, thread_ts, message_ts, said.prompt))
    if not known and answers_a_card(event, bot_user_id=bot_user_id):
        recorder.whisper(person, channel_id, unknown_job(wording))


def answers_a_card(event: dict[str, Any], *, bot_user_id: str) -> bool:
    """Whether the thread's first message is ours. A reply that mentions us comes twice; one of the two counts."""
    return field(event, "parent_user_id") == bot_user_id and field(event, "type") == "message"


def is_from_a_person(event: dict[str, Any], *, bot_user_id: str) -> bool:
    """Whether a person has just written this: no bot (nor ourselves), no edit, no deletion, no system message."""
    user = field(event, "user")
    subtype = event.get("subtype")
    return (
        bool(user)
        and user not in {bot_user_id, _SLACKBOT}
        and (subtype is None or subtype in _FROM_PEOPLE)
        and not any(event.get(trace) for trace in ("bot_id", "bot_profile", "hidden", "edited"))
    )
