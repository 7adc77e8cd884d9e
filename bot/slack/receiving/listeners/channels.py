"""Channels that Pagehand is invited to, and channels whose id Slack changes, such as a private one that somebody shares
with another organization.
"""

import logging
from typing import Any

from slack_bolt.app.async_app import AsyncApp

from bot.slack.receiving.dependencies import Dependencies
from bot.slack.receiving.payloads.payload import ChannelIdPayload, MemberJoinedPayload

logger = logging.getLogger(__name__)

ID_CHANGED, JOINED = "channel_id_changed", "member_joined_channel"


def register(app: AsyncApp, dependencies: Dependencies) -> None:
    """Listens for such events."""
    service, identity = dependencies.service, dependencies.identity

    async def on_changed(body: dict[str, Any]) -> None:
        event = ChannelIdPayload.read(body).event
        old, new, at = event.old_channel_id, event.new_channel_id, event.event_ts
        if not (old and new and at) or old == new:
            logger.warning("a change of a channel's id that does not name both is left alone")
            return
        await service.follow_channel(old, new, float(at))

    async def on_joined(body: dict[str, Any]) -> None:
        """A channel that Pagehand joined by itself, to start a job there, hears of it by the job's card."""
        event = MemberJoinedPayload.read(body).event
        if event.user == identity.bot_user_id and event.inviter and event.channel:
            await service.introduce(identity.team_id, event.channel)

    app.event(ID_CHANGED)(on_changed)
    app.event(JOINED)(on_joined)
