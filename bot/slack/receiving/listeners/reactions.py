"""Reactions: a `:x:` on a job's card stops the job."""

from typing import Any

from slack_bolt.app.async_app import AsyncApp

from bot.domain.requests.request import Action, RequestKind, WayIn
from bot.slack.receiving.dependencies import Dependencies
from bot.slack.receiving.payloads.actors import author_of
from bot.slack.receiving.payloads.payload import ReactionPayload, known_ts
from bot.slack.sending.identity import Identity

EVENT = "reaction_added"
STOP = "x"
"""Slack's name of the only reaction that means something here."""


def register(app: AsyncApp, dependencies: Dependencies) -> None:
    """Listens for reactions."""

    async def on_reaction(body: dict[str, Any]) -> None:
        action = stop_of(ReactionPayload.read(body), dependencies.identity)
        if action is not None:
            await dependencies.service.act(action)

    app.event(EVENT)(on_reaction)


def stop_of(payload: ReactionPayload, identity: Identity) -> Action | None:
    """Returns the stop that a reaction asks for; None for any other reaction. Whether it is on a card, and whether this
    person may stop that job, is checked later.
    """
    event = payload.event
    item = event.item
    if event.reaction != STOP or not (event.user and item.channel and item.ts and event.event_ts):
        return None
    # Most reactions are on other people's messages; Slack can leave the author out.
    if event.user == identity.bot_user_id or event.item_user not in {"", identity.bot_user_id}:
        return None
    key = f"reaction/{item.channel}/{item.ts}/{event.user}/{event.event_ts}"
    person = author_of(payload, identity)
    place = {"channel_id": item.channel, "card_ts": item.ts}
    return Action(person, RequestKind.STOP, key, **place, at=known_ts(event.event_ts), way_in=WayIn.REACTION)
