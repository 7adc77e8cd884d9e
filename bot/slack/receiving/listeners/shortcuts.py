"""The shortcuts: one hands a message over, one asks for a job from anywhere."""

from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck

from bot.slack.message_parts.contents import files_of
from bot.slack.receiving.modal_opener import ModalOpener
from bot.slack.receiving.payloads.actors import user_of
from bot.slack.receiving.payloads.interactions import InteractionPayload, MessageShortcutPayload
from bot.slack.rendering.modals import ContextScope, ModalPlace
from bot.slack.sending.identity import Identity

HAND_TO_PAGEHAND = "hand_to_pagehand"
NEW_TASK = "new_task"
"""As the manifest names them."""


def register(app: AsyncApp, opener: ModalOpener, *, identity: Identity) -> None:
    """Listens for the shortcuts. Each opens a modal; nothing is recorded before that is submitted."""

    async def on_message_shortcut(body: dict[str, Any], ack: AsyncAck) -> None:
        payload = MessageShortcutPayload.read(body)
        place = place_of_message(payload)
        if place.channel_id and place.message_ts:
            opener.hand_over(payload.trigger_id, user_of(payload, identity), place, payload.message)
        await ack()

    async def on_global_shortcut(body: dict[str, Any], ack: AsyncAck) -> None:
        payload = InteractionPayload.read(body)
        opener.new_job(payload.trigger_id, user_of(payload, identity), ModalPlace())
        await ack()

    app.shortcut({"callback_id": HAND_TO_PAGEHAND, "type": "message_action"})(on_message_shortcut)
    app.shortcut({"callback_id": NEW_TASK, "type": "shortcut"})(on_global_shortcut)


def place_of_message(payload: MessageShortcutPayload) -> ModalPlace:
    """Returns where the message is, and its files. At first, only the message itself is sent along."""
    message = payload.message
    files = [file for file in files_of(message) if file.id]
    return ModalPlace(
        channel_id=payload.channel.id,
        thread_ts=message.thread_ts,
        message_ts=message.ts or payload.message_ts,
        scope=ContextScope.MESSAGE,
        files=tuple(file.id for file in files),
        file_names=tuple(file.name for file in files),
    )
