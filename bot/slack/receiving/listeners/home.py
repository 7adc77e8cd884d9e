"""App Home: somebody opens it, or clicks one of its buttons."""

from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck

from bot.domain.requests.request import Action, RequestKind, home_key
from bot.ports.service import ServicePort
from bot.runtime.text import displayable
from bot.slack.receiving.modal_opener import ModalOpener
from bot.slack.receiving.payloads.actors import user_of
from bot.slack.receiving.payloads.interactions import ClickPayload
from bot.slack.receiving.payloads.payload import HomePayload
from bot.slack.receiving.request_recorder import RequestRecorder
from bot.slack.rendering.home import (
    HOME_DEFAULTS,
    HOME_EXAMPLE,
    HOME_NEWER,
    HOME_OLDER,
    HOME_RETRY,
    HOME_START,
    HOME_STOP,
)
from bot.slack.rendering.modals import ModalPlace
from bot.slack.sending.identity import Identity

_LONGEST_NUMBER = 6
_ASKS_FOR = {HOME_RETRY: RequestKind.RETRY, HOME_STOP: RequestKind.STOP}


def register(
    app: AsyncApp, service: ServicePort, recorder: RequestRecorder, opener: ModalOpener, *, identity: Identity
) -> None:
    """Listens to the Home. Changes appear there as soon as it is published again."""

    async def on_opened(body: dict[str, Any]) -> None:
        event = HomePayload.read(body).event
        if event.user and event.tab == "home":
            await service.open_home(event.user)

    async def on_start(body: dict[str, Any], ack: AsyncAck) -> None:
        click = ClickPayload.read(body)
        opener.new_job(click.trigger_id, user_of(click, identity), ModalPlace())
        await ack()

    async def on_example(body: dict[str, Any], ack: AsyncAck) -> None:
        click = ClickPayload.read(body)
        prompt = displayable(click.element.value)
        opener.new_job(click.trigger_id, user_of(click, identity), ModalPlace(), prompt=prompt)
        await ack()

    async def on_defaults(body: dict[str, Any], ack: AsyncAck) -> None:
        click = ClickPayload.read(body)
        opener.settings(click.trigger_id, user_of(click, identity))
        await ack()

    async def on_page(body: dict[str, Any], ack: AsyncAck) -> None:
        click = ClickPayload.read(body)
        person = user_of(click, identity)
        await recorder.record_interaction(service.open_home(person.id, page=_page(click.element.value)), person, "")
        await ack()

    async def on_action(body: dict[str, Any], ack: AsyncAck) -> None:
        action = about_job(ClickPayload.read(body), identity)
        await recorder.record_interaction(service.act(action), action.person, "")
        await ack()

    app.event("app_home_opened")(on_opened)
    app.action(HOME_START)(on_start)
    app.action(HOME_EXAMPLE)(on_example)
    app.action(HOME_DEFAULTS)(on_defaults)
    app.action(HOME_NEWER)(on_page)
    app.action(HOME_OLDER)(on_page)
    for action_id in _ASKS_FOR:
        app.action(action_id)(on_action)


def about_job(click: ClickPayload, identity: Identity) -> Action:
    """Returns what the button beside a job asks for."""
    source_key = home_key(f"{click.workspace_id}/{click.trigger_id}")
    kind = _ASKS_FOR[click.element.action_id]
    return Action(user_of(click, identity), kind, source_key, thread_id=click.element.value)


def _page(value: str) -> int:
    return int(value) if value.isascii() and value.isdigit() and len(value) <= _LONGEST_NUMBER else 0
