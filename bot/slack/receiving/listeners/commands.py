"""The slash command: help, or a job to start."""

import logging
from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck

from bot.domain.commands import Help, parse_slash
from bot.domain.new_jobs import NewJob
from bot.domain.threads import WayIn
from bot.runtime.json_fields import text_at
from bot.slack.receiving.payloads.actors import command_user
from bot.slack.receiving.payloads.fields import workspace_id
from bot.slack.receiving.request_recorder import RecordingOutcome, RequestRecorder
from bot.slack.receiving.service_port import ServicePort
from bot.slack.rendering.ephemeral_texts import (
    COMMAND_UNREADABLE,
    GOT_IT,
    NOT_IN_A_CHANNEL,
    NOT_RECORDED,
    STILL_RECORDING,
)
from bot.slack.rendering.help import help_text
from bot.slack.rendering.message_context import MessageContext
from bot.slack.sending.ephemeral import EphemeralSender
from bot.slack.sending.identity import Identity

logger = logging.getLogger(__name__)

_DIRECT_MESSAGE = "D"
"""How the ids of direct messages begin."""

_ANSWERS = {
    RecordingOutcome.RECORDED: GOT_IT,
    RecordingOutcome.FAILED: NOT_RECORDED,
    RecordingOutcome.LATE: STILL_RECORDING,
}


def register(
    app: AsyncApp,
    service: ServicePort,
    recorder: RequestRecorder,
    ephemeral_sender: EphemeralSender,
    message_context: MessageContext,
    *,
    identity: Identity,
) -> None:
    """Listens for the command."""

    async def on_command(body: dict[str, Any], ack: AsyncAck) -> None:
        await ack(await handle_command(body, service, recorder, ephemeral_sender, message_context, identity=identity))

    app.command(message_context.command)(on_command)


async def handle_command(
    body: dict[str, Any],
    service: ServicePort,
    recorder: RequestRecorder,
    ephemeral_sender: EphemeralSender,
    message_context: MessageContext,
    *,
    identity: Identity,
) -> str:
    """Records what the command asks for, and returns the answer, which its sender alone sees."""
    asked = parse_slash(text_at(body, "text"))
    if isinstance(asked, Help):
        return help_text(message_context, asked.meant)
    person = command_user(body, identity)
    channel_id, trigger_id = text_at(body, "channel_id"), text_at(body, "trigger_id")
    if not (person.id and channel_id and trigger_id):
        logger.warning("a slash command without its sender, channel or trigger is left alone")
        return COMMAND_UNREADABLE
    if channel_id.startswith(_DIRECT_MESSAGE):
        return NOT_IN_A_CHANNEL
    ephemeral_sender.remember(person.id, channel_id, text_at(body, "response_url"))
    source_key = f"command/{workspace_id(body)}/{trigger_id}"
    call = service.start(NewJob(person, channel_id, asked.prompt, source_key, WayIn.COMMAND))
    return _ANSWERS[await recorder.record_interaction(call, person, channel_id)]
