"""The shortcuts: a message that is handed over, and a job from anywhere."""

from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck

from bot.runtime.json_fields import object_at, text_at
from bot.slack.message_parts.attachments import files_of
from bot.slack.receiving.modals.opener import ModalOpener
from bot.slack.receiving.payloads.actors import actor
from bot.slack.receiving.payloads.fields import ts_at
from bot.slack.rendering.modals import ContextScope, ModalPlace
from bot.slack.sending.identity import Identity

HAND_TO_PAGEHAND = "hand_to_pagehand"
NEW_TASK = "new_task"
"""As the manifest names them."""


def register(app: AsyncApp, opener: ModalOpener, *, identity: Identity) -> None:
    """Listens for them. Each opens a modal, and nothing is recorded before that is submitted."""

    async def on_message_shortcut(body: dict[str, Any], ack: AsyncAck) -> None:
        place = place_of_message(body)
        if place.channel_id and place.message_ts:
            opener.hand_over(text_at(body, "trigger_id"), actor(body, identity), place, body.get("message"))
        await ack()

    async def on_global_shortcut(body: dict[str, Any], ack: AsyncAck) -> None:
        opener.new_job(text_at(body, "trigger_id"), actor(body, identity), ModalPlace())
        await ack()

    app.shortcut({"callback_id": HAND_TO_PAGEHAND, "type": "message_action"})(on_message_shortcut)
    app.shortcut({"callback_id": NEW_TASK, "type": "shortcut"})(on_global_shortcut)


def place_of_message(body: dict[str, Any]) -> ModalPlace:
    """Returns where the message is, with the files that it holds; of the message alone at first."""
    message = object_at(body, "message")
    files = [file for file in files_of(message) if file.id]
    return ModalPlace(
        channel_id=text_at(body, "channel", "id"),
        thread_ts=ts_at(message, "thread_ts"),
        message_ts=ts_at(message, "ts") or ts_at(body, "message_ts"),
        scope=ContextScope.MESSAGE,
        files=tuple(file.id for file in files),
        file_names=tuple(file.name for file in files),
    )
