"""The slash command: starts a job, opens the modal for one, or shows help."""

import logging
from typing import Any, assert_never

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck

from bot.domain.commands import Blank, Help, Start, WrongOption, parse_slash
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import RequestKind, WayIn
from bot.slack.receiving.dependencies import Dependencies
from bot.slack.receiving.listeners.openings import open_job_modal
from bot.slack.receiving.payloads.payload import CommandPayload, sender_of
from bot.slack.receiving.request_recorder import RecordingOutcome
from bot.slack.rendering.ephemeral_texts import (
    COMMAND_UNREADABLE,
    NOT_RECORDED,
    RECORDED,
    STILL_RECORDING,
    WRONG_OPTION,
    help_text,
)

logger = logging.getLogger(__name__)

_ANSWERS = {
    RecordingOutcome.RECORDED: RECORDED,
    RecordingOutcome.FAILED: NOT_RECORDED,
    RecordingOutcome.LATE: STILL_RECORDING,
}


def register(app: AsyncApp, dependencies: Dependencies) -> None:
    """Listens for the command."""

    async def on_command(body: dict[str, Any], ack: AsyncAck) -> None:
        answer = await handle_command(CommandPayload.read(body), dependencies)
        await (ack(answer) if answer else ack())

    app.command(dependencies.message_context.command)(on_command)


async def handle_command(payload: CommandPayload, dependencies: Dependencies) -> str:
    """Carries out the command, and returns the answer, which only its sender sees; empty if a modal opens."""
    asked, context = parse_slash(payload.text), dependencies.message_context
    match asked:
        case Start():
            return await _start(payload, asked, dependencies)
        case Blank(options):
            open_job_modal(dependencies.opener, payload, dependencies.identity, options)
            return ""
        case Help():
            return help_text(context)
        case WrongOption():
            return context(WRONG_OPTION)
        case _:
            assert_never(asked)


async def _start(payload: CommandPayload, asked: Start, dependencies: Dependencies) -> str:
    person, channel_id = sender_of(payload, dependencies.identity), payload.channel_id
    if not (person.id and channel_id and payload.trigger_id):
        logger.warning("a slash command without its sender, channel or trigger is left alone")
        return COMMAND_UNREADABLE
    if refused := dependencies.opener.known_refusal(person, RequestKind.START):
        return refused
    job = NewJob(
        person=person,
        channel_id=channel_id,
        prompt=asked.prompt,
        source_key=f"command/{payload.workspace_id}/{payload.trigger_id}",
        way_in=WayIn.COMMAND,
        project_said=asked.options.project,
        quiet=asked.options.quiet or None,
        agent=asked.options.agent,
    )
    call = dependencies.service.start(job)
    return _ANSWERS[await dependencies.recorder.record_interaction(call, person, channel_id)]
