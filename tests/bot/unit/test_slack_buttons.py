"""Clicks and reactions behind a real Bolt app: how each calls the service."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from support.fakes.slack_payloads import click
from support.worlds.listening_world import BOT, ListeningWorld, listening

from bot.domain.requests.new_jobs import Written
from bot.domain.requests.request import Action, Person, RequestKind, WayIn
from bot.errors import StoreUnavailable
from bot.notices.said import ButtonId
from bot.slack.rendering import blocks
from bot.slack.rendering.blocks import MenuItem, menu_value

ANA = Person("U0ANA", "T1")
KEY = "click/T1/1.2.abc"
CARD = "1700000001.000100"


@pytest.fixture
async def world() -> AsyncIterator[ListeningWorld]:
    async with listening(recording_timeout=0.05) as made:
        yield made


def chosen(action_id: str, value: str, **changes: Any) -> dict[str, Any]:
    """A choice from a menu or a list, as Slack reports it (docs.slack.dev, "Overflow menu element")."""
    option = {"text": {"type": "plain_text", "text": "A label"}, "value": value}
    action = {
        "type": "overflow",
        "action_id": action_id,
        "block_id": "b",
        "selected_option": option,
        "action_ts": "1.1",
    }
    return click(action_id) | {"actions": [action]} | changes


@pytest.mark.parametrize(
    ("action_id", "kind"),
    [
        (ButtonId.SEND_AGAIN, RequestKind.SEND_AGAIN),
        (ButtonId.SEND_NEW_WORDS, RequestKind.SEND_NEW_WORDS),
        (ButtonId.SEND_HELD, RequestKind.SEND_HELD),
        (ButtonId.SEND_ALL_HELD, RequestKind.SEND_ALL_HELD),
        (ButtonId.DISCARD_HELD, RequestKind.DISCARD_HELD),
    ],
)
async def test_buttons_about_a_request_are_recorded(world: ListeningWorld, action_id: str, kind: RequestKind) -> None:
    assert (await world.take(click(action_id, "r1"))).status == 200
    assert world.service.calls == [("act", Action(ANA, kind, KEY, argument="r1"))]


@pytest.mark.parametrize(
    ("payload", "kind", "argument"),
    [
        (click(ButtonId.STOP_JOB, "th1"), RequestKind.STOP, ""),
        (click(blocks.RETRY_JOB, "th1"), RequestKind.RETRY, ""),
        (chosen(blocks.CARD_MENU, menu_value(MenuItem.MUTE, "th1")), RequestKind.MUTE, ""),
        (chosen(blocks.CARD_MENU, menu_value(MenuItem.UNMUTE, "th1")), RequestKind.UNMUTE, ""),
        (chosen(blocks.CHOOSE_PROJECT, "th1/the/guides"), RequestKind.CHOOSE_PROJECT, "the/guides"),
        (click(blocks.CHOOSE_PROJECT_BUTTONS[-1], "th1/guides"), RequestKind.CHOOSE_PROJECT, "guides"),
        (click(blocks.SHOW_PROMPT, "th1"), RequestKind.SHOW_PROMPT, ""),
        (click(blocks.SHOW_ANSWER, "th1/0a1b"), RequestKind.SHOW_ANSWER, "0a1b"),
        (chosen(blocks.CARD_MENU, menu_value(MenuItem.WHOLE_REQUEST, "th1")), RequestKind.SHOW_PROMPT, ""),
        (chosen(blocks.CARD_MENU, menu_value(MenuItem.JOB_ID, "th1")), RequestKind.SHOW_JOB_ID, ""),
    ],
    ids=str,
)
async def test_buttons_about_a_job_are_recorded(
    world: ListeningWorld, payload: dict[str, Any], kind: RequestKind, argument: str
) -> None:
    assert (await world.take(payload)).status == 200
    expected = Action(ANA, kind, KEY, channel_id="C1", thread_id="th1", argument=argument)
    assert world.service.calls == [("act", expected)]


async def test_a_click_about_something_unknown_is_explained(
    world: ListeningWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.service.knows = False
    await world.take(click(ButtonId.SEND_HELD, "r1", channel=None, view={"id": "V1", "type": "home"}))
    await world.app.drain(5)
    assert "could not be told something" not in caplog.text, "a Home has no channel in which to tell it"
    await world.take(click(ButtonId.SEND_HELD, "r1"))
    await world.app.drain(5)
    assert "U0ANA could not be told something" in caplog.text, "there is no Slack here, but it was tried"


async def test_a_click_that_could_not_be_recorded_is_explained(
    world: ListeningWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.service.fault = StoreUnavailable("locked")
    assert (await world.take(click(ButtonId.STOP_JOB, "th1"))).status == 200
    await world.app.drain(5)
    assert "U0ANA could not be told something" in caplog.text, "there is no Slack here, but it was tried"


# -- reactions --------------------------------------------------------------------------------------------------------


def reaction(**changes: Any) -> dict[str, Any]:
    """As documented (docs.slack.dev/reference/events/reaction_added)."""
    fields = {
        "type": "reaction_added",
        "user": "U0ANA",
        "reaction": "x",
        "item_user": BOT,
        "item": {"type": "message", "channel": "C1", "ts": CARD, "channel_type": "channel"},
        "event_ts": "1700000004.000200",
    } | changes
    return {
        "token": "t",
        "team_id": "T1",
        "api_app_id": "A1",
        "event": {name: value for name, value in fields.items() if value is not None},
        "type": "event_callback",
        "authorizations": [{"team_id": "T1", "user_id": BOT, "is_bot": True, "is_enterprise_install": False}],
        "event_id": "Ev1",
        "event_time": 1700000004,
    }


@pytest.mark.parametrize("item_user", [BOT, None])
async def test_a_cross_on_the_bots_message_asks_to_stop(world: ListeningWorld, item_user: str | None) -> None:
    assert (await world.take(reaction(item_user=item_user))).status == 200
    key = f"reaction/C1/{CARD}/U0ANA/1700000004.000200"
    stop = Action(ANA, RequestKind.STOP, key, channel_id="C1", card_ts=CARD, way_in=WayIn.REACTION)
    stop = replace(stop, at="1700000004.000200")
    assert world.service.calls == [("act", stop)]


@pytest.mark.parametrize(
    "changes",
    [
        {"reaction": "thumbsup"},
        {"reaction": "negative_squared_cross_mark"},
        {"reaction": None},
        {"user": BOT},
        {"user": None},
        {"item_user": "U0BEN"},
        {"item": None},
        {"item": {"type": "file", "file": "F1"}},
        {"item": {"type": "message", "channel": "C1", "ts": "now"}},
        {"item": ["C1"]},
        {"event_ts": None},
        {"type": "reaction_removed"},
    ],
    ids=str,
)
async def test_any_other_reaction_is_acknowledged_and_ignored(world: ListeningWorld, changes: dict[str, Any]) -> None:
    assert (await world.take(reaction(**changes))).status == 200
    assert world.service.calls == []


async def test_in_shared_channels_nobody_is_assumed_to_be_ours(world: ListeningWorld) -> None:
    await world.take(reaction() | {"is_ext_shared_channel": True})
    assert [action.person for action in world.service.actions] == [Person("U0ANA", "")]


async def test_a_reaction_that_could_not_be_recorded_is_redelivered(world: ListeningWorld) -> None:
    world.service.fault = StoreUnavailable("locked")
    assert (await world.take(reaction())).status != 200


def pressed(action_id: str, value: str) -> dict[str, Any]:
    """As Slack reports a press of a message's button."""
    return click(action_id, value) | {"container": {"type": "message", "message_ts": CARD, "channel_id": "C1"}}


async def test_a_prompt_button_is_recorded_once_per_person(world: ListeningWorld) -> None:
    """The key consists of the message, the button and the person; any prompt is allowed."""
    prompt = 'Replace "a/b" with "c"'
    assert (await world.take(pressed(blocks.SEND_EXAMPLES[1], f"th1/{prompt}"))).status == 200
    ((name, written),) = world.service.calls
    key = f"/{CARD}/send_example_2/U0ANA"
    assert isinstance(written, Written)
    assert (name, written.thread_id, written.text, written.way_in) == ("follow_up", "th1", prompt, WayIn.BUTTON)
    assert (written.person, written.source_key.startswith("said/T1/"), written.source_key.endswith(key)) == (
        ANA, True, True,
    )  # fmt: skip


async def test_a_chosen_answer_is_recorded_once_per_choice(world: ListeningWorld) -> None:
    """The list remains, so that somebody can choose again; the same choice counts once."""
    for label in ("Install", "Set up", "Install"):
        chosen = pressed(blocks.CHOOSE_ANSWER, "")
        chosen["actions"][0] |= {"type": "static_select", "selected_option": {"value": f"th1/{label}"}}
        assert (await world.take(chosen)).status == 200
    written = [call[1] for call in world.service.calls]
    assert [each.text for each in written if isinstance(each, Written)] == ["Install", "Set up", "Install"]
    keys = [each.source_key for each in written if isinstance(each, Written)]
    assert (keys[0], keys[0] == keys[1]) == (keys[2], False)


@pytest.mark.parametrize("value", ["th1", "th1/", "/x", ""])
async def test_a_prompt_button_without_its_prompt_is_ignored(world: ListeningWorld, value: str) -> None:
    assert (await world.take(pressed(blocks.SEND_EXAMPLES[0], value))).status == 200
    assert world.service.calls == []
