"""What opens a modal: shortcuts, buttons, and the slash command without a prompt. Nothing is recorded before the modal
is submitted.
"""

from collections.abc import Callable
from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck

from bot.domain.commands import Options
from bot.domain.requests.request import Person
from bot.notices.said import EXAMPLE, ButtonId
from bot.slack.message_parts.contents import files_of
from bot.slack.receiving.modal_opener import ModalOpener
from bot.slack.receiving.payloads.interactions import ClickPayload, MessageShortcutPayload, user_of
from bot.slack.receiving.payloads.payload import CommandPayload, is_direct_message, sender_of
from bot.slack.rendering import blocks
from bot.slack.rendering.home import HOME_DEFAULTS, HOME_EXAMPLE, HOME_START
from bot.slack.rendering.modals import ContextScope, ModalPlace, decoded_fields
from bot.slack.sending.identity import Identity

HAND_TO_PAGEHAND = "hand_to_pagehand"
NEW_TASK = "new_task"
"""Shortcuts, as the manifest names them."""


def register(app: AsyncApp, opener: ModalOpener, identity: Identity) -> None:
    """Listens for what opens modals."""

    def on_click(opening: Callable[[ModalOpener, ClickPayload, Person], None]) -> Any:
        async def on_click(body: dict[str, Any], ack: AsyncAck) -> None:
            click = ClickPayload.read(body)
            opening(opener, click, user_of(click, identity))
            await ack()

        return on_click

    async def on_message_shortcut(body: dict[str, Any], ack: AsyncAck) -> None:
        payload = MessageShortcutPayload.read(body)
        place = place_of_message(payload)
        if place.channel_id and place.message_ts:
            opener.hand_over(payload.trigger_id, user_of(payload, identity), place, payload.message)
        await ack()

    app.shortcut({"callback_id": HAND_TO_PAGEHAND, "type": "message_action"})(on_message_shortcut)
    app.shortcut({"callback_id": NEW_TASK, "type": "shortcut"})(on_click(_new_job))
    app.action(ButtonId.OPEN_FORM)(on_click(_example))
    app.action(HOME_START)(on_click(_new_job))
    app.action(HOME_EXAMPLE)(on_click(_example))
    app.action(HOME_DEFAULTS)(on_click(_defaults))
    app.action(blocks.FOLLOW_UP)(on_click(_follow_up))
    app.action(blocks.FILL_IN_ANSWER)(on_click(_answer))
    app.action(blocks.HAND_OVER)(on_click(_hand_over_forwarded))


def _new_job(opener: ModalOpener, click: ClickPayload, person: Person) -> None:
    opener.new_job(click.trigger_id, person, ModalPlace(channel_id=click.channel_id))


def _example(opener: ModalOpener, click: ClickPayload, person: Person) -> None:
    opener.new_job(click.trigger_id, person, ModalPlace(channel_id=click.channel_id), prompt=EXAMPLE)


def _defaults(opener: ModalOpener, click: ClickPayload, person: Person) -> None:
    opener.settings(click.trigger_id, person)


def _follow_up(opener: ModalOpener, click: ClickPayload, person: Person) -> None:
    opener.follow_up(click.trigger_id, person, ModalPlace(click.channel_id, thread_id=click.element.value))


def _answer(opener: ModalOpener, click: ClickPayload, person: Person) -> None:
    thread_id, _, encoded = click.element.value.partition("/")
    if fields := decoded_fields(encoded):
        opener.answer(click.trigger_id, person, ModalPlace(click.channel_id, thread_id=thread_id), fields)


def _hand_over_forwarded(opener: ModalOpener, click: ClickPayload, person: Person) -> None:
    message_ts, _, thread_ts = click.element.value.partition("/")
    if click.channel_id and message_ts:
        place = ModalPlace(click.channel_id, thread_ts, message_ts, scope=ContextScope.MESSAGE)
        opener.hand_over(click.trigger_id, person, place)


def open_job_modal(opener: ModalOpener, payload: CommandPayload, identity: Identity, options: Options) -> None:
    """Opens the modal for a job in answer to a slash command without a prompt, in the background. In a direct message,
    which may be between people, it asks for the channel.
    """
    place = ModalPlace(channel_id="" if is_direct_message(payload.channel_id) else payload.channel_id)
    opener.new_job(payload.trigger_id, sender_of(payload, identity), place, options)


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
