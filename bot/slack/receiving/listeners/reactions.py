"""Reactions: a `:x:` on a job's card stops the job."""

from typing import Any

from slack_bolt.app.async_app import AsyncApp

from bot.domain.requests.request import Action, RequestKind, WayIn
from bot.runtime.json_fields import object_at, text_at
from bot.slack.receiving.dependencies import Dependencies
from bot.slack.receiving.payloads.actors import actor
from bot.slack.receiving.payloads.fields import ts_at
from bot.slack.sending.identity import Identity

EVENT = "reaction_added"
STOP = "x"
"""Slack's name of the one reaction that means something here."""


def register(app: AsyncApp, dependencies: Dependencies) -> None:
    """Listens for reactions."""

    async def on_reaction(body: dict[str, Any]) -> None:
        action = stop_of(body, dependencies.identity)
        if action is not None:
            await dependencies.recorder.record_event(dependencies.service.act(action))

    app.event(EVENT)(on_reaction)


def stop_of(body: dict[str, Any], identity: Identity) -> Action | None:
    """Returns the stop that a reaction asks for; None for any other. Whether it is on a card, and whether this person
    may stop that job, is found out later.
    """
    event = object_at(body, "event")
    item, user_id = object_at(event, "item"), text_at(event, "user")
    channel_id, ts, at = text_at(item, "channel"), ts_at(item, "ts"), ts_at(event, "event_ts")
    if text_at(event, "reaction") != STOP or not (user_id and channel_id and ts and at):
        return None
    # Most reactions are on other people's messages; Slack can leave the author out.
    if user_id == identity.bot_user_id or text_at(event, "item_user") not in {"", identity.bot_user_id}:
        return None
    key = f"reaction/{channel_id}/{ts}/{user_id}/{at}"
    person = actor(body, identity)
    return Action(person, RequestKind.STOP, key, channel_id=channel_id, card_ts=ts, way_in=WayIn.REACTION)
