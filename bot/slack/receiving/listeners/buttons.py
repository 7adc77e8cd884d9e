"""Clicks on the buttons and menus of cards, messages and Home. Those that open modals are in
bot.slack.receiving.listeners.openings.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck

from bot.domain.jobs.job import digest
from bot.domain.requests.new_jobs import MAKE_IT_A_CHANGE, Written
from bot.domain.requests.request import Action, Person, RequestKind, WayIn, home_key
from bot.jobapi.models import Mode
from bot.notices.said import ButtonId
from bot.runtime.text import displayable
from bot.slack.receiving.dependencies import Dependencies
from bot.slack.receiving.payloads.interactions import ClickPayload, user_of
from bot.slack.receiving.payloads.payload import known_ts
from bot.slack.receiving.request_recorder import RecordingOutcome, RequestRecorder
from bot.slack.rendering import blocks
from bot.slack.rendering.blocks import MenuItem, read_menu_value
from bot.slack.rendering.ephemeral_texts import NO_RECORD, NOT_RECORDED
from bot.slack.rendering.home import HOME_NEWER, HOME_OLDER, HOME_RETRY, HOME_STOP

logger = logging.getLogger(__name__)

ABOUT_REQUESTS: dict[str, RequestKind] = {
    ButtonId.SEND_AGAIN: RequestKind.SEND_AGAIN,
    ButtonId.SEND_NEW_WORDS: RequestKind.SEND_NEW_WORDS,
    ButtonId.SEND_HELD: RequestKind.SEND_HELD,
    ButtonId.SEND_ALL_HELD: RequestKind.SEND_ALL_HELD,
    ButtonId.DISCARD_HELD: RequestKind.DISCARD_HELD,
}
"""The value of each is the id of a request."""
ABOUT_JOBS: dict[str, RequestKind] = {
    ButtonId.STOP_JOB: RequestKind.STOP,
    blocks.RETRY_JOB: RequestKind.RETRY,
    ButtonId.DISCARD_WORK: RequestKind.DISCARD,
    blocks.ASK_FOR_PROJECT: RequestKind.CHOOSE_PROJECT,
    blocks.SHOW_PROMPT: RequestKind.SHOW_PROMPT,
    HOME_RETRY: RequestKind.RETRY,
    HOME_STOP: RequestKind.STOP,
}
"""The value of each is the id of a thread."""
WITH_ARGUMENTS = dict.fromkeys((blocks.CHOOSE_PROJECT, *blocks.CHOOSE_PROJECT_BUTTONS), RequestKind.CHOOSE_PROJECT) | {
    blocks.SHOW_ANSWER: RequestKind.SHOW_ANSWER,
    ButtonId.ACCEPT_PROPOSAL: RequestKind.ACCEPT_PROPOSAL,
    ButtonId.DROP_PROPOSAL: RequestKind.DROP_PROPOSAL,
}
"""The value of each is the id of a thread and an argument of the kind."""
FROM_MENU = {
    MenuItem.WHOLE_REQUEST: RequestKind.SHOW_PROMPT,
    MenuItem.MUTE: RequestKind.MUTE,
    MenuItem.UNMUTE: RequestKind.UNMUTE,
    MenuItem.PROJECT: RequestKind.CHOOSE_PROJECT,
    MenuItem.JOB_ID: RequestKind.SHOW_JOB_ID,
}
RECORDED = (*ABOUT_REQUESTS, *ABOUT_JOBS, *WITH_ARGUMENTS, blocks.CARD_MENU)
LINKS = (ButtonId.OPEN_PULL_REQUEST,)
_LONGEST_NUMBER = 6
SAYING_FOLLOW_UPS = (*blocks.SEND_EXAMPLES, *blocks.SEND_ANSWERS, blocks.CHOOSE_ANSWER)


@dataclass(frozen=True)
class Click:
    """A click on a button, or a choice from a menu with its `value`; `at` is its `ts`, if Slack gives it. `channel_id`
    is empty on Home.
    """

    action_id: str
    value: str
    person: Person
    channel_id: str
    source_key: str
    at: str = ""


def register(app: AsyncApp, dependencies: Dependencies) -> None:
    """Listens for clicks."""

    def on(action_ids: Iterable[str], handle: Callable[[ClickPayload, Dependencies], Awaitable[None]]) -> None:
        async def on_click(body: dict[str, Any], ack: AsyncAck) -> None:
            await handle(ClickPayload.read(body), dependencies)
            await ack()

        # One pattern is looked up sooner than a listener for each.
        app.action(re.compile(rf"\A(?:{'|'.join(map(re.escape, action_ids))})\Z"))(on_click)

    on(RECORDED, handle_click)
    on(SAYING_FOLLOW_UPS, handle_follow_up)
    on((ButtonId.MAKE_CHANGE,), handle_change)
    on(LINKS, _leave_alone)
    on((HOME_NEWER, HOME_OLDER), _turn_page)


async def _leave_alone(payload: ClickPayload, dependencies: Dependencies) -> None:
    """Slack reports a click on a link, too; it only needs its acknowledgement."""


async def _turn_page(payload: ClickPayload, dependencies: Dependencies) -> None:
    """Publishes another page of a Home."""
    person, value = user_of(payload, dependencies.identity), payload.element.value
    page = int(value) if value.isascii() and value.isdigit() and len(value) <= _LONGEST_NUMBER else 0
    call = dependencies.service.open_home(person.id, page=page)
    await dependencies.recorder.record_interaction(call, person, "")


async def handle_click(payload: ClickPayload, dependencies: Dependencies) -> None:
    """Records what a button asks for."""
    click = read_click(payload, dependencies)
    action = read_action(click) if click else None
    if click is not None and action is not None:
        await _record(dependencies.service.act(action), click, dependencies.recorder)


async def handle_follow_up(payload: ClickPayload, dependencies: Dependencies) -> None:
    """Records the text of a button or an option as a follow-up, as if the person had written it."""
    click = read_click(payload, dependencies)
    thread_id, _, prompt = click.value.partition("/") if click else ("", "", "")
    if click is not None and thread_id and prompt:
        key = _personal_key(payload, click)
        written = Written(click.person, thread_id, displayable(prompt), key, WayIn.BUTTON)
        await _record(dependencies.service.follow_up(written), click, dependencies.recorder)


async def handle_change(payload: ClickPayload, dependencies: Dependencies) -> None:
    """Records that an answer is to be made a change, as a follow-up that turns the job to that."""
    click = read_click(payload, dependencies)
    if click is not None:
        key = _personal_key(payload, click)
        written = Written(click.person, click.value, MAKE_IT_A_CHANGE, key, WayIn.BUTTON, Mode.EDIT)
        await _record(dependencies.service.follow_up(written), click, dependencies.recorder)


async def _record(call: Awaitable[bool], click: Click, recorder: RequestRecorder) -> None:
    """Awaits a call that returns whether the click's subject is known. Slack shows no text in answer to a click, so a
    failure gets its own message.
    """

    async def recorded() -> None:
        if not await call and click.channel_id:
            recorder.tell_in_background(click.person, click.channel_id, NO_RECORD)

    if await recorder.record_interaction(recorded(), click.person, click.channel_id) is RecordingOutcome.FAILED:
        recorder.tell_in_background(click.person, click.channel_id, NOT_RECORDED)


def _personal_key(payload: ClickPayload, click: Click) -> str:
    """Two clicks of one person on a button count once; each other person's click counts for them."""
    message_ts = payload.container.message_ts
    if not message_ts:
        return click.source_key
    said = click.action_id if click.action_id != blocks.CHOOSE_ANSWER else f"{click.action_id}/{digest(click.value)}"
    return f"said/{payload.workspace_id}/{click.channel_id}/{message_ts}/{said}/{click.person.id}"


def read_click(payload: ClickPayload, dependencies: Dependencies) -> Click | None:
    """Returns a click; None if something of it is missing."""
    element, person, channel_id = payload.element, user_of(payload, dependencies.identity), payload.channel_id
    value = element.value or element.selected_option.value
    trigger_id = payload.trigger_id or element.action_ts
    if not (value and person.id and trigger_id and (channel_id or payload.view)):
        logger.warning("a click without its value, sender, channel or trigger is left alone")
        return None
    key = f"click/{payload.workspace_id}/{trigger_id}"
    key = key if channel_id else home_key(key)
    return Click(element.action_id, value, person, channel_id, key, known_ts(element.action_ts))


def read_action(click: Click) -> Action | None:
    """Returns what a click asks for; None if no button of ours has such a value."""
    about = _about(click)
    if about is None:
        return None
    kind, thread_id, argument = about
    return Action(
        click.person, kind, click.source_key, click.channel_id, thread_id=thread_id, argument=argument, at=click.at
    )


def _about(click: Click) -> tuple[RequestKind, str, str] | None:
    """Returns the kind, the id of the thread, which that of a request can stand for, and the argument."""
    if kind := ABOUT_REQUESTS.get(click.action_id):
        return kind, "", click.value
    if kind := ABOUT_JOBS.get(click.action_id):
        return kind, click.value, ""
    if kind := WITH_ARGUMENTS.get(click.action_id):
        thread_id, _, argument = click.value.partition("/")
        return (kind, thread_id, argument) if thread_id and argument else None
    chosen = read_menu_value(click.value)
    return (FROM_MENU[chosen[0]], chosen[1], "") if chosen else None
