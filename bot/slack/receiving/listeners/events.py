"""Events besides messages: a `:x:` on a job's card stops the job; somebody opens Home; Pagehand is invited to a
channel; Slack changes a channel's id, as when a private one is shared with another organization.
"""

import logging
from typing import Any

from slack_bolt.app.async_app import AsyncApp

from bot.domain.requests.request import Action, RequestKind, WayIn
from bot.slack.receiving.dependencies import Dependencies
from bot.slack.receiving.payloads.payload import EventPayload, author_of, known_ts
from bot.slack.sending.identity import Identity

logger = logging.getLogger(__name__)

REACTION, HOME_OPENED = "reaction_added", "app_home_opened"
JOINED, ID_CHANGED = "member_joined_channel", "channel_id_changed"
STOP = "x"
"""Slack's name of the only reaction that means something here."""


def register(app: AsyncApp, dependencies: Dependencies) -> None:
    """Listens for such events."""
    service, identity = dependencies.service, dependencies.identity

    async def on_reaction(body: dict[str, Any]) -> None:
        action = stop_of(EventPayload.read(body), identity)
        if action is not None:
            await service.act(action)

    async def on_home(body: dict[str, Any]) -> None:
        event = EventPayload.read(body).event
        if event.user and event.tab == "home":
            await service.open_home(event.user)

    async def on_joined(body: dict[str, Any]) -> None:
        """A channel that Pagehand joined by itself, to start a job there, hears of it by the job's card."""
        event = EventPayload.read(body).event
        if event.user == identity.bot_user_id and event.inviter and event.channel:
            await service.introduce(identity.team_id, event.channel)

    async def on_id_changed(body: dict[str, Any]) -> None:
        event = EventPayload.read(body).event
        old, new, at = event.old_channel_id, event.new_channel_id, event.event_ts
        if not (old and new and at) or old == new:
            logger.warning("a change of a channel's id that does not name both is left alone")
            return
        await service.follow_channel(old, new, float(at))

    app.event(REACTION)(on_reaction)
    app.event(HOME_OPENED)(on_home)
    app.event(JOINED)(on_joined)
    app.event(ID_CHANGED)(on_id_changed)


def stop_of(payload: EventPayload, identity: Identity) -> Action | None:
    """Returns the stop that a reaction asks for; None for any other reaction. Whether it is on a card, and whether this
    person may stop that job, is checked later.
    """
    event, item = payload.event, payload.event.item
    if event.reaction != STOP or not (event.user and item.channel and item.ts and event.event_ts):
        return None
    # Most reactions are on other people's messages; Slack can leave the author out.
    if event.user == identity.bot_user_id or event.item_user not in {"", identity.bot_user_id}:
        return None
    key = f"reaction/{item.channel}/{item.ts}/{event.user}/{event.event_ts}"
    person = author_of(payload, identity)
    place = {"channel_id": item.channel, "card_ts": item.ts}
    return Action(person, RequestKind.STOP, key, **place, at=known_ts(event.event_ts), way_in=WayIn.REACTION)
