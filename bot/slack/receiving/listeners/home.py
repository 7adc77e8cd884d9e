"""App Home: it is opened, and its buttons are pressed."""

from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck

from bot.domain.requests.request import Action, RequestKind
from bot.domain.threads.thread import home_key
from bot.ports.service import ServicePort
from bot.runtime.json_fields import first_item_at, text_at
from bot.slack.receiving.modals.opener import ModalOpener
from bot.slack.receiving.payloads.actors import actor
from bot.slack.receiving.payloads.fields import workspace_id
from bot.slack.receiving.request_recorder import RequestRecorder
from bot.slack.rendering.home import HOME_DEFAULTS, HOME_NEWER, HOME_OLDER, HOME_RETRY, HOME_START
from bot.slack.rendering.modals import ModalPlace
from bot.slack.sending.identity import Identity

_LONGEST_NUMBER = 6


def register(
    app: AsyncApp, service: ServicePort, recorder: RequestRecorder, opener: ModalOpener, *, identity: Identity
) -> None:
    """Listens for it. What is recorded shows on the Home as soon as that is published again."""

    async def on_opened(body: dict[str, Any]) -> None:
        person_id = text_at(body, "event", "user")
        if person_id and text_at(body, "event", "tab") == "home":
            await recorder.record_event(service.open_home(person_id))

    async def on_start(body: dict[str, Any], ack: AsyncAck) -> None:
        opener.new_job(text_at(body, "trigger_id"), actor(body, identity), ModalPlace())
        await ack()

    async def on_defaults(body: dict[str, Any], ack: AsyncAck) -> None:
        opener.settings(text_at(body, "trigger_id"), actor(body, identity))
        await ack()

    async def on_page(body: dict[str, Any], ack: AsyncAck) -> None:
        person, page = actor(body, identity), _page(text_at(first_item_at(body, "actions"), "value"))
        await recorder.record_interaction(service.open_home(person.id, page=page), person, "")
        await ack()

    async def on_retry(body: dict[str, Any], ack: AsyncAck) -> None:
        await recorder.record_interaction(service.act(retry(body, identity)), actor(body, identity), "")
        await ack()

    app.event("app_home_opened")(on_opened)
    app.action(HOME_START)(on_start)
    app.action(HOME_DEFAULTS)(on_defaults)
    app.action(HOME_NEWER)(on_page)
    app.action(HOME_OLDER)(on_page)
    app.action(HOME_RETRY)(on_retry)


def retry(body: dict[str, Any], identity: Identity) -> Action:
    """Returns what the button Retry asks for."""
    thread_id = text_at(first_item_at(body, "actions"), "value")
    source_key = home_key(f"{workspace_id(body)}/{text_at(body, 'trigger_id')}")
    return Action(actor(body, identity), RequestKind.RETRY, source_key, thread_id=thread_id)


def _page(value: str) -> int:
    return int(value) if value.isascii() and value.isdigit() and len(value) <= _LONGEST_NUMBER else 0
