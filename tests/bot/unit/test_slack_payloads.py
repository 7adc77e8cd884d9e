"""Models of Slack's payloads: a bad field reads as absent, and affects no other field."""

import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.slack_payloads import click, command, edit, event

from bot.runtime.lenient_model import LenientModel
from bot.slack.message_parts.slack_message import MAX_PARTS, SlackMessage
from bot.slack.receiving.payloads.events import (
    ChannelIdPayload,
    HomePayload,
    MemberJoinedPayload,
    MessagePayload,
    ReactionPayload,
    RevisionPayload,
)
from bot.slack.receiving.payloads.interactions import (
    ClickPayload,
    MessageShortcutPayload,
    ViewClickPayload,
    ViewPayload,
)
from bot.slack.receiving.payloads.payload import CommandPayload, SlackPayload

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
    (ReactionPayload, event(**REACTION, event_ts=TS)),
    (HomePayload, event(type="app_home_opened", tab="home")),
    (ChannelIdPayload, event(**CHANGED_ID, event_ts=TS)),
    (MemberJoinedPayload, event(type="member_joined_channel", channel="C1", inviter="U1")),
    (CommandPayload, command()),
    (ClickPayload, click("a", container={"message_ts": TS, "channel_id": "C1"}, message={"ts": TS})),
    (MessageShortcutPayload, click("a", message=event(**MESSAGE)["event"], message_ts=TS)),
    (ViewPayload, click("a", view=VIEW)),
    (ViewClickPayload, click("a", view=VIEW)),
]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
Path = tuple[str | int, ...]


@st.composite
def with_one_bad_value(draw: st.DrawFn) -> tuple[type[LenientModel], dict[str, Any], dict[str, Any], Path]:
    """A model, a documented payload, the same with any JSON in one place, and that place."""
    model, documented = draw(st.sampled_from(DOCUMENTED))
    changed = json.loads(json.dumps(documented))
    place: Any = changed
    path: Path = ()
    while True:
        key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        path = (*path, key)
        if not (isinstance(place[key], dict | list) and place[key] and draw(st.booleans())):
            break
        place = place[key]
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


@pytest.mark.parametrize(("model", "documented"), DOCUMENTED, ids=lambda value: getattr(value, "__name__", ""))
def test_a_documented_payload_is_read_completely(model: type[LenientModel], documented: dict[str, Any]) -> None:
    """Otherwise the test above could not fail."""
    read, empty = model.read(documented), model.read({})
    assert sum(getattr(read, name) != getattr(empty, name) for name in model.model_fields) >= 3


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
