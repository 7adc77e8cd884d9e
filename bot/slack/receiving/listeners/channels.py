"""Channels whose id Slack changes, such as a private one that somebody shares with another organization."""

import logging
from typing import Any

from slack_bolt.app.async_app import AsyncApp

from bot.slack.receiving.dependencies import Dependencies
from bot.slack.receiving.payloads.events import ChannelIdPayload

logger = logging.getLogger(__name__)

EVENT = "channel_id_changed"


def register(app: AsyncApp, dependencies: Dependencies) -> None:
    """Listens for such changes."""
    service, recorder = dependencies.service, dependencies.recorder

    async def on_changed(body: dict[str, Any]) -> None:
        event = ChannelIdPayload.read(body).event
        old, new, at = event.old_channel_id, event.new_channel_id, event.event_ts
        if not (old and new and at) or old == new:
            logger.warning("a change of a channel's id that does not name both is left alone")
            return
        await recorder.record_event(service.follow_channel(old, new, float(at)))

    app.event(EVENT)(on_changed)
