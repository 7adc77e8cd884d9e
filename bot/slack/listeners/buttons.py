"""Clicks on the buttons of cards and messages."""

import logging
from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck

from bot.slack.blocks import OPEN_PULL_REQUEST, SEND_AGAIN, SHOW_PROMPT
from bot.slack.payload import clicker, field, first, team
from bot.slack.recording import NOT_RECORDED, Outcome, Recorder, Service
from bot.slack.whispers import Whispers

logger = logging.getLogger(__name__)

ACTIONS = (SEND_AGAIN, SHOW_PROMPT, OPEN_PULL_REQUEST)


def register(app: AsyncApp, service: Service, recorder: Recorder, whispers: Whispers) -> None:
    """Listens for clicks. One on a link is reported too, and wants nothing but its acknowledgement."""

    async def click(body: dict[str, Any], ack: AsyncAck) -> None:
        await take(body, service, recorder, whispers)
        await ack()

    async def opened(ack: AsyncAck) -> None:
        await ack()

    app.action(SEND_AGAIN)(click)
    app.action(SHOW_PROMPT)(click)
    app.action(OPEN_PULL_REQUEST)(opened)


async def take(body: dict[str, Any], service: Service, recorder: Recorder, whispers: Whispers) -> None:
    """Records what a button asks for. Slack shows no words in answer to a click, so a failure is told by itself."""
    action, person = first(body, "actions"), clicker(body)
    value, channel_id = field(action, "value"), field(body, "channel", "id") or field(body, "container", "channel_id")
    trigger = field(body, "trigger_id") or field(action, "action_ts")
    if not (value and person.id and channel_id and trigger):
        logger.warning("a click without its value, sender, channel or trigger is left alone")
        return
    whispers.remember(person.id, channel_id, field(body, "response_url"))
    if field(action, "action_id") == SEND_AGAIN:
        work = service.send_again(person, channel_id, value)
    else:
        work = service.show_prompt(person, channel_id, value, source_key=f"click/{team(body)}/{trigger}")
    if await recorder.request(work, person, channel_id) is Outcome.FAILED:
        recorder.whisper(person, channel_id, NOT_RECORDED)
