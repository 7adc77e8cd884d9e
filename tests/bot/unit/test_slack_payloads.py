"""Models of Slack's payloads: a bad field reads as absent, and affects no other field."""

import json
import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.any_json import any_json
from support.fakes.slack_payloads import click, command, deletion, edit, event
from support.hypothesis_settings import examples
from support.worlds.listening_world import FORM, JSON, listening

from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import Action, Person, Reply
from bot.notices.said import ButtonId
from bot.runtime.untrusted_json import LenientModel
from bot.slack.message_parts.slack_message import MAX_PARTS, SlackMessage
from bot.slack.receiving.payloads.interactions import (
    ClickPayload,
    MessageShortcutPayload,
    ViewClickPayload,
    ViewPayload,
)
from bot.slack.receiving.payloads.payload import (
    CommandPayload,
    EventPayload,
    MessagePayload,
    RevisionPayload,
    SlackPayload,
)
from bot.slack.rendering.blocks import CARD_MENU, CHOOSE_PROJECT

TS = "1700000002.000100"
FILE = {"id": "F1", "name": "a.md", "mimetype": "text/markdown", "size": 5, "url_private": "https://files.slack.com/a"}
SECTION = {"type": "rich_text_section", "elements": [{"type": "text", "text": "Fix it", "style": {"bold": True}}]}
MESSAGE: dict[str, Any] = {
    "blocks": [
        {"type": "rich_text", "elements": [{"type": "rich_text_list", "indent": 1, "elements": [SECTION]}]},
        {"type": "section", "text": {"type": "mrkdwn", "text": "a"}, "fields": [{"type": "plain_text", "text": "b"}]},
        {"type": "table", "rows": [[{"type": "raw_text", "text": "c"}, {"type": "rich_text", "elements": [SECTION]}]]},
    ],
    "files": [FILE],
    "attachments": [{"is_share": True, "author_id": "U2", "text": "Look", "files": [FILE], "blocks": [SECTION]}],
    "bot_profile": {"name": "CI"},
}
VIEW = {
    "id": "V1",
    "hash": "h",
    "private_metadata": "{}",
    "blocks": [{"block_id": "prompt", "label": {"text": "Task"}}, {"block_id": "scope"}],
    "state": {
        "values": {
            "prompt": {"prompt": {"value": "Fix it"}},
            "scope": {"scope": {"selected_option": {"value": "x"}, "selected_options": [{"value": "y"}]}},
        }
    },
}
REACTION = {"type": "reaction_added", "reaction": "x", "item": {"channel": "C1", "ts": TS}, "item_user": "U0BOT"}
CHANGED_ID = {"type": "channel_id_changed", "old_channel_id": "G1", "new_channel_id": "C1"}
DOCUMENTED: list[tuple[type[LenientModel], dict[str, Any]]] = [
    (SlackPayload, event() | {"team": {"id": "T1"}, "enterprise": {"id": "E1"}, "view": VIEW}),
    (MessagePayload, event(**MESSAGE) | {"is_ext_shared_channel": False}),
    (RevisionPayload, edit(**MESSAGE)),
    (EventPayload, event(**REACTION, event_ts=TS)),
    (EventPayload, event(type="app_home_opened", tab="home")),
    (EventPayload, event(**CHANGED_ID, event_ts=TS)),
    (EventPayload, event(type="member_joined_channel", channel="C1", inviter="U1")),
    (CommandPayload, command()),
    (ClickPayload, click("a", container={"message_ts": TS, "channel_id": "C1"}, message={"ts": TS})),
    (MessageShortcutPayload, click("a", message=event(**MESSAGE)["event"], message_ts=TS)),
    (ViewPayload, click("a", view=VIEW)),
    (ViewClickPayload, click("a", view=VIEW)),
]
ANYTHING = any_json(odd=st.just("\ud800"))
Path = tuple[str | int, ...]


def any_place(draw: st.DrawFn, payload: dict[str, Any]) -> tuple[Any, str | int, Path]:
    """Returns an object or a list in a payload, a key of it, and the path to there."""
    place: Any = payload
    path: Path = ()
    while True:
        key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        path = (*path, key)
        if not (isinstance(place[key], dict | list) and place[key] and draw(st.booleans())):
            return place, key, path
        place = place[key]


@st.composite
def with_one_bad_value(draw: st.DrawFn) -> tuple[type[LenientModel], dict[str, Any], dict[str, Any], Path]:
    """A model, a documented payload, the same with any JSON in one place, and that place."""
    model, documented = draw(st.sampled_from(DOCUMENTED))
    changed = json.loads(json.dumps(documented))
    place, key, path = any_place(draw, changed)
    place[key] = draw(ANYTHING)
    return model, documented, changed, path


def assert_same_elsewhere(before: LenientModel, after: LenientModel, path: Path) -> None:
    """Compares the models field by field, and descends into the one with the bad value."""
    for name, field in type(before).model_fields.items():
        ours, theirs = getattr(before, name), getattr(after, name)
        if (field.validation_alias or name) != path[0]:
            assert ours == theirs, name
        elif isinstance(ours, LenientModel) and isinstance(theirs, LenientModel) and len(path) > 1:
            assert_same_elsewhere(ours, theirs, path[1:])
        elif isinstance(ours, tuple) and isinstance(theirs, tuple) and len(ours) == len(theirs) and len(path) > 2:
            for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
                if index != path[1]:
                    assert mine == other
                elif isinstance(path[2], str):
                    assert_same_elsewhere(mine, other, path[2:])


@given(with_one_bad_value())
def test_any_json_in_a_field_affects_no_other_field(
    case: tuple[type[LenientModel], dict[str, Any], dict[str, Any], Path],
) -> None:
    model, documented, changed, path = case
    assert_same_elsewhere(model.read(documented), model.read(changed), path)


@given(ANYTHING)
def test_a_non_object_reads_as_an_empty_object(value: Any) -> None:
    for model, _ in DOCUMENTED:
        assert isinstance(model.read(value), model)
        assert isinstance(value, dict) or model.read(value) == model.read({})


def models_of(model: type[LenientModel]) -> list[type[LenientModel]]:
    return [model, *(each for inner in model.__subclasses__() for each in models_of(inner))]


def test_every_field_has_a_default() -> None:
    """Without one, a bad value would affect the whole object."""
    required = [
        f"{model.__name__}.{name}"
        for model in models_of(LenientModel)
        for name, field in model.model_fields.items()
        if field.is_required()
    ]
    assert required == []


@pytest.mark.parametrize("key", ["elements", "text", "rows", "blocks"])
def test_an_oversized_message_is_read_without_its_blocks(key: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    deep: dict[str, Any] = {"type": "text", "text": "found"}
    for _ in range(5_000):
        deep = {key: [deep]}
    many = {"type": "section", "text": {key: [{"type": "text", "text": "x"}] * MAX_PARTS}}
    for blocks in ([deep], [many]):
        read = SlackMessage.read({"text": "flat", "ts": TS, "blocks": blocks})
        assert (read.text, read.ts) == ("flat", TS)
        assert [block.parts for block in read.blocks] == [()]
    assert caplog.text == ""


AS_USUAL = settings(deadline=None, suppress_health_check=list(HealthCheck))
json_values = any_json()
KEYS = ["type", "event", "command", "payload", "actions", "user", "channel", "view", "token", "team", "authorizations"]
OURS = st.sampled_from([{"team_id": "T1"}, {"team_id": "T1"}, {}])
"""Most name our workspace: others are refused at once."""
payloads = st.builds(
    dict.__or__, st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=8), json_values, max_size=6), OURS
)
forms = st.builds(
    dict.__or__,
    st.dictionaries(st.sampled_from(KEYS), st.text(max_size=30) | json_values.map(json.dumps), max_size=4),
    OURS,
)
bodies = st.one_of(
    st.text(max_size=200),
    json_values.map(json.dumps),
    payloads.map(json.dumps),
    payloads.map(lambda payload: urlencode({"payload": json.dumps(payload)})),
    forms.map(urlencode),
    st.just("payload=" + "%7B" * 5_000),
)
kinds = st.sampled_from([FORM, JSON, "", "text/plain", "multipart/form-data", "application/json; charset=utf-8"])


def nothing_went_wrong(caplog: pytest.LogCaptureFixture) -> None:
    assert "Traceback" not in caplog.text
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR or record.exc_info]


SHAPES = any_json(odd=st.sampled_from(["C1", "U0ANA", "1.000001"]))
RICH_TEXT = [
    {
        "type": "rich_text",
        "elements": [
            {"type": "rich_text_section", "elements": [{"type": "text", "text": "Fix it", "style": {"bold": True}}]},
            {
                "type": "rich_text_list",
                "style": "ordered",
                "indent": 1,
                "elements": [{"type": "rich_text_section", "elements": [{"type": "user", "user_id": "U0BEN"}]}],
            },
        ],
    }
]
BASES: list[Callable[[], dict[str, Any]]] = [
    command,
    event,
    lambda: event(type="app_mention"),
    lambda: event(text="<@U0BOT> Fix it", thread_ts=None, blocks=RICH_TEXT),
    lambda: event(channel="D0ANA", channel_type="im", thread_ts=None),
    lambda: event(text="!stop"),
    lambda: event(type="reaction_added", reaction="x", item={"channel": "C1", "ts": "1.000001"}, event_ts="1.000002"),
    lambda: event(subtype="file_share", files=[{"name": "a.png"}], attachments=[{"is_share": True}]),
    edit,
    deletion,
    lambda: click("send_again"),
    lambda: click("show_prompt"),
    lambda: click("show_answer"),
    lambda: click(ButtonId.STOP_JOB),
    lambda: click(CHOOSE_PROJECT, "th1/guides"),
    lambda: click(CARD_MENU, "mute/th1"),
    lambda: {"type": "view_submission", "view": {"callback_id": "x"}, "user": {"id": "U"}, "team": {"id": "T1"}},
]


@st.composite
def broken(draw: st.DrawFn) -> dict[str, Any]:
    """A documented payload with a few fields removed or replaced by anything."""
    payload = json.loads(json.dumps(draw(st.sampled_from(BASES))()))
    for _ in range(draw(st.integers(1, 4))):
        place, key, _ = any_place(draw, payload)
        if draw(st.booleans()):
            place[key] = draw(SHAPES)
        elif len(place) > 1:
            del place[key]
    return payload  # type: ignore[no-any-return]  # it went through JSON


@pytest.mark.promise("any payload")
@settings(AS_USUAL, max_examples=examples(600))
@given(payload=payloads | broken())
@example(payload={})
async def test_any_payload_is_acknowledged(caplog: pytest.LogCaptureFixture, payload: dict[str, Any]) -> None:
    caplog.clear()
    caplog.set_level(logging.DEBUG)
    async with listening() as world:
        assert (await world.take(payload)).status == 200
        parts = [part for call in world.service.calls for part in call]
    assert all(isinstance(part, str | Person | Reply | NewJob | Action) for part in parts)
    nothing_went_wrong(caplog)


@pytest.mark.promise("any payload")
@AS_USUAL
@given(body=bodies, kind=kinds)
@example(body="[" * 100_000, kind=JSON)
@example(body="payload=" + "[" * 100_000, kind=FORM)
async def test_any_request_is_answered(caplog: pytest.LogCaptureFixture, body: str, kind: str) -> None:
    caplog.clear()
    caplog.set_level(logging.DEBUG)
    async with listening() as world:
        assert (await world.app.handle_http_body(body, kind)).status in {200, 400, 404}
    nothing_went_wrong(caplog)


@pytest.mark.promise("any payload")
@AS_USUAL
@given(text=json_values.filter(lambda value: not isinstance(value, str)))
async def test_a_text_that_is_not_a_string_is_not_a_request(text: object) -> None:
    async with listening() as world:
        for payload in (command(text=text), event(text=text)):
            assert (await world.take(payload)).status == 200
        assert world.service.words == []
