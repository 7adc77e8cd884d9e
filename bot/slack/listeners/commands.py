"""The slash command: help, or a job to start."""

import logging
from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck

from bot.domain.commands import Help, parse_slash
from bot.slack.payload import commander, field, team
from bot.slack.recording import LATE, NOT_RECORDED, Outcome, Recorder, Service
from bot.slack.whispers import Whispers
from bot.slack.wording import Wording, help_text

logger = logging.getLogger(__name__)

GOT_IT = "Got it. A card that tells how it goes appears here in a moment."
UNREADABLE = "Slack's message about that could not be read, so nothing was started. Please try again."

_ANSWERS = {Outcome.RECORDED: GOT_IT, Outcome.FAILED: NOT_RECORDED, Outcome.LATE: LATE}


def register(app: AsyncApp, service: Service, recorder: Recorder, whispers: Whispers, wording: Wording) -> None:
    """Listens for the command."""

    async def start(body: dict[str, Any], ack: AsyncAck) -> None:
        await ack(await answer(body, service, recorder, whispers, wording))

    app.command(wording.command)(start)


async def answer(
    body: dict[str, Any], service: Service, recorder: Recorder, whispers: Whispers, wording: Wording
) -> str:
    """Does what the command asks for, and says so in words for its sender only."""
    asked = parse_slash(field(body, "text"))
    if isinstance(asked, Help):
        return help_text(wording)
    person, channel_id, trigger = commander(body), field(body, "channel_id"), field(body, "trigger_id")
    if not (person.id and channel_id and trigger):
        logger.warning("a slash command without its sender, channel or trigger is left alone")
        return UNREADABLE
    whispers.remember(person.id, channel_id, field(body, "response_url"))
    work = service.start(person, channel_id, asked.prompt, source_key=f"command/{team(body)}/{trigger}")
    return _ANSWERS[await recorder.request(work, person, channel_id)]
