"""Everything else that Slack sends: without an answer, people would see an error, or Slack would send it again."""

import logging
import re
from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck

from bot.runtime.recent import RecentSet
from bot.slack.receiving.dependencies import Dependencies
from bot.slack.receiving.payloads.interactions import ClickPayload, user_of
from bot.slack.receiving.payloads.payload import SlackPayload
from bot.slack.rendering.ephemeral_texts import UNKNOWN_COMMAND, UNKNOWN_INTERACTION

logger = logging.getLogger(__name__)

ANYTHING = re.compile("")
_AWAITED_BY_A_PERSON = frozenset({"block_actions", "interactive_message", "message_action", "shortcut"})
"""Types of payloads after which a person waits for something to happen."""


def register(app: AsyncApp, dependencies: Dependencies) -> None:
    """Listens for what no other listener handles. Must come last."""
    logged = dependencies.logged

    async def on_command(ack: AsyncAck) -> None:
        await ack(dependencies.message_context(UNKNOWN_COMMAND))

    async def on_interaction(body: dict[str, Any], ack: AsyncAck) -> None:
        payload = ClickPayload.read(body)
        log_unused(payload, logged)
        tell_if_awaited(payload, dependencies)
        await ack()

    async def on_options(body: dict[str, Any], ack: AsyncAck) -> None:
        log_unused(SlackPayload.read(body), logged)
        await ack(options=[])

    async def on_event(body: dict[str, Any]) -> None:
        """Bolt acknowledges an event itself."""
        log_unused(SlackPayload.read(body), logged)

    app.command(ANYTHING)(on_command)
    app.action(ANYTHING)(on_interaction)
    app.shortcut(ANYTHING)(on_interaction)
    app.view_submission(ANYTHING)(on_interaction)
    app.view_closed(ANYTHING)(on_interaction)
    app.options(ANYTHING)(on_options)
    app.event(ANYTHING)(on_event)


def log_unused(payload: SlackPayload, first_occurrences: RecentSet) -> None:
    """Logs a kind of payload the first time it comes."""
    if first_occurrences.add(payload.kind):
        logger.info("Slack sends what Pagehand has no use for; it is acknowledged: %s", payload.kind)


def tell_if_awaited(payload: ClickPayload, dependencies: Dependencies) -> None:
    """Tells a person that their click or shortcut is unknown here. A link, whose button has no value, opened in any
    case.
    """
    person = user_of(payload, dependencies.identity)
    is_link = payload.type == "block_actions" and not payload.element.value
    if not person.id or is_link or payload.type not in _AWAITED_BY_A_PERSON:
        return
    told = dependencies.message_context(UNKNOWN_INTERACTION)
    dependencies.recorder.tell_in_background(person, payload.channel.id, told)
