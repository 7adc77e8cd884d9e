"""Clicks on the buttons of cards and messages."""

import logging
from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck

from bot.domain.actions import Action
from bot.domain.requests import Person, RequestKind
from bot.runtime.json_fields import first_item_at, text_at
from bot.slack.receiving.payloads.actors import interaction_user
from bot.slack.receiving.payloads.fields import workspace_id
from bot.slack.receiving.request_recorder import RecordingOutcome, RequestRecorder
from bot.slack.receiving.service_port import ServicePort
from bot.slack.rendering import blocks
from bot.slack.rendering.blocks import OPEN_PULL_REQUEST, SEND_AGAIN, SEND_NEW_WORDS, SHOW_ANSWER, SHOW_PROMPT
from bot.slack.rendering.ephemeral_texts import NOT_RECORDED
from bot.slack.sending.ephemeral import EphemeralSender
from bot.slack.sending.identity import Identity

logger = logging.getLogger(__name__)

ACTIONS = (SEND_AGAIN, SEND_NEW_WORDS, SHOW_ANSWER, SHOW_PROMPT, OPEN_PULL_REQUEST)


def register(
    app: AsyncApp,
    service: ServicePort,
    recorder: RequestRecorder,
    ephemeral_sender: EphemeralSender,
    *,
    identity: Identity,
) -> None:
    """Listens for clicks. One on a link is reported too, and wants nothing but its acknowledgement."""

    async def on_click(body: dict[str, Any], ack: AsyncAck) -> None:
        await handle_click(body, service, recorder, ephemeral_sender, identity=identity)
        await ack()

    async def on_link(ack: AsyncAck) -> None:
        await ack()

    app.action(SEND_AGAIN)(on_click)
    app.action(SEND_NEW_WORDS)(on_click)
    app.action(SHOW_ANSWER)(on_click)
    app.action(SHOW_PROMPT)(on_click)
    app.action(OPEN_PULL_REQUEST)(on_link)


async def handle_click(
    body: dict[str, Any],
    service: ServicePort,
    recorder: RequestRecorder,
    ephemeral_sender: EphemeralSender,
    *,
    identity: Identity,
) -> None:
    """Records what a button asks for. Slack shows no text in answer to a click, so a failure is told separately."""
    action, person = first_item_at(body, "actions"), interaction_user(body, identity)
    channel_id = text_at(body, "channel", "id") or text_at(body, "container", "channel_id")
    value, trigger_id = text_at(action, "value"), text_at(body, "trigger_id") or text_at(action, "action_ts")
    if not (value and person.id and channel_id and trigger_id):
        logger.warning("a click without its value, sender, channel or trigger is left alone")
        return
    ephemeral_sender.remember(person.id, channel_id, text_at(body, "response_url"))
    source_key = f"click/{workspace_id(body)}/{trigger_id}"
    match text_at(action, "action_id"):
        case blocks.SEND_AGAIN:
            call = service.act(_about_request(person, RequestKind.SEND_AGAIN, value, source_key))
        case blocks.SEND_NEW_WORDS:
            call = service.act(_about_request(person, RequestKind.SEND_NEW_WORDS, value, source_key))
        case blocks.SHOW_ANSWER:
            thread_id, _, answer_id = value.partition("/")
            call = service.show_answer(person, channel_id, thread_id, answer_id, source_key=source_key)
        case _:
            call = service.show_prompt(person, channel_id, value, source_key=source_key)
    if await recorder.record_interaction(call, person, channel_id) is RecordingOutcome.FAILED:
        recorder.tell_in_background(person, channel_id, NOT_RECORDED)


def _about_request(person: Person, kind: RequestKind, request_id: str, source_key: str) -> Action:
    return Action(person, kind, source_key, argument=request_id)
