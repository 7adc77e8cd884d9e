"""Whatever else Slack sends: answered too, since without an answer people see an error, or it comes again."""

import logging
import re
from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck

from bot.runtime.json_fields import first_item_at, text_at
from bot.slack.receiving.dependencies import Dependencies
from bot.slack.receiving.first_occurrences import FirstOccurrences
from bot.slack.receiving.payloads.actors import actor
from bot.slack.receiving.payloads.fields import payload_kind
from bot.slack.rendering.ephemeral_texts import unknown_command, unknown_interaction

logger = logging.getLogger(__name__)

ANYTHING = re.compile("")
_AWAITED_BY_A_PERSON = frozenset({"block_actions", "interactive_message", "message_action", "shortcut"})
"""After these a person waits for something to happen."""


def register(app: AsyncApp, dependencies: Dependencies) -> None:
    """Listens last, for what no other listener takes."""
    logged = dependencies.logged

    async def on_command(ack: AsyncAck) -> None:
        await ack(unknown_command(dependencies.message_context))

    async def on_interaction(body: dict[str, Any], ack: AsyncAck) -> None:
        log_unused(body, logged)
        tell_if_awaited(body, dependencies)
        await ack()

    async def on_options(body: dict[str, Any], ack: AsyncAck) -> None:
        log_unused(body, logged)
        await ack(options=[])

    async def on_event(body: dict[str, Any]) -> None:
        """Bolt acknowledges an event itself."""
        log_unused(body, logged)

    app.command(ANYTHING)(on_command)
    app.action(ANYTHING)(on_interaction)
    app.shortcut(ANYTHING)(on_interaction)
    app.view_submission(ANYTHING)(on_interaction)
    app.view_closed(ANYTHING)(on_interaction)
    app.options(ANYTHING)(on_options)
    app.event(ANYTHING)(on_event)


def log_unused(body: dict[str, Any], first_occurrences: FirstOccurrences) -> None:
    """Logs a kind the first time that it comes."""
    if first_occurrences.is_first(payload_kind(body)):
        logger.info("Slack sends what Pagehand has no use for; it is acknowledged: %s", payload_kind(body))


def tell_if_awaited(body: dict[str, Any], dependencies: Dependencies) -> None:
    """Tells a person whose click or shortcut means nothing here. A link, whose button has no value, opened all the
    same.
    """
    person = actor(body, dependencies.identity)
    kind = text_at(body, "type")
    is_link = kind == "block_actions" and not text_at(first_item_at(body, "actions"), "value")
    if not person.id or is_link or kind not in _AWAITED_BY_A_PERSON:
        return
    channel_id = text_at(body, "channel", "id")
    dependencies.ephemeral_sender.remember(person.id, channel_id, text_at(body, "response_url"))
    dependencies.recorder.tell_in_background(person, channel_id, unknown_interaction(dependencies.message_context))
