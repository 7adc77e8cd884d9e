"""The slash command: a job to start, the modal in which to ask for one, or help."""

import logging
from typing import Any, assert_never

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck

from bot.domain.command_options import WrongOption
from bot.domain.commands import Blank, Help, Start, parse_slash
from bot.domain.new_jobs import NewJob
from bot.domain.requests import Person
from bot.domain.threads import WayIn
from bot.runtime.json_fields import text_at
from bot.slack.receiving.dependencies import Dependencies
from bot.slack.receiving.payloads.actors import command_user
from bot.slack.receiving.payloads.fields import workspace_id
from bot.slack.receiving.request_recorder import RecordingOutcome
from bot.slack.rendering.ephemeral_texts import (
    COMMAND_UNREADABLE,
    GOT_IT,
    NOT_RECORDED,
    STILL_RECORDING,
    modal_not_opened,
    wrong_option,
)
from bot.slack.rendering.help import help_text

logger = logging.getLogger(__name__)

_ANSWERS = {
    RecordingOutcome.RECORDED: GOT_IT,
    RecordingOutcome.FAILED: NOT_RECORDED,
    RecordingOutcome.LATE: STILL_RECORDING,
}


def register(app: AsyncApp, dependencies: Dependencies) -> None:
    """Listens for the command."""

    async def on_command(body: dict[str, Any], ack: AsyncAck) -> None:
        answer = await handle_command(body, dependencies)
        await (ack(answer) if answer else ack())

    app.command(dependencies.message_context.command)(on_command)


async def handle_command(body: dict[str, Any], dependencies: Dependencies) -> str:
    """Does what the command asks for, and returns the answer, which its sender alone sees; empty: a modal opens."""
    asked, context = parse_slash(text_at(body, "text")), dependencies.message_context
    match asked:
        case Help(meant):
            return help_text(context, meant)
        case WrongOption():
            return wrong_option(asked, context)
        case Blank() if dependencies.modals is None:
            return help_text(context)
        case Blank() | Start():
            return await _asked_for_a_job(body, asked, dependencies)
        case _:
            assert_never(asked)


async def _asked_for_a_job(body: dict[str, Any], asked: Blank | Start, dependencies: Dependencies) -> str:
    person = command_user(body, dependencies.identity)
    channel_id, trigger_id = text_at(body, "channel_id"), text_at(body, "trigger_id")
    if not (person.id and channel_id and trigger_id):
        logger.warning("a slash command without its sender, channel or trigger is left alone")
        return COMMAND_UNREADABLE
    dependencies.ephemeral_sender.remember(person.id, channel_id, text_at(body, "response_url"))
    if isinstance(asked, Blank):
        _open_modal(trigger_id, person, channel_id, asked, dependencies)
        return ""
    job = NewJob(
        person=person,
        channel_id=channel_id,
        prompt=asked.prompt,
        source_key=f"command/{workspace_id(body)}/{trigger_id}",
        way_in=WayIn.COMMAND,
        project_said=asked.options.project,
        quiet=asked.options.quiet or None,
    )
    return _ANSWERS[await dependencies.recorder.record_interaction(dependencies.service.start(job), person, channel_id)]


def _open_modal(trigger_id: str, person: Person, channel_id: str, asked: Blank, dependencies: Dependencies) -> None:
    if dependencies.modals is not None:
        opening = dependencies.modals.open_job_modal(trigger_id, person, channel_id, asked.options)
        on_failure = modal_not_opened(dependencies.message_context)
        dependencies.recorder.run_in_background(opening, person, channel_id, on_failure)
