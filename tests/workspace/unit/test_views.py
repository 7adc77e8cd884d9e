"""Views and the values of their elements. Any input is either refused with Slack's errors, or works."""

from copy import deepcopy
from typing import Any

import pytest

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.elements import Element, InputValue, elements, value_of
from bot.workspace.model.entities import SlackError
from bot.workspace.model.sample_data import HOME
from bot.workspace.model.views import OpenViews, View
from bot.workspace.wire.views import checked_view, rendered_view

WORDS = {"type": "plain_text", "text": "Words"}
OPTION = {"text": WORDS, "value": "one"}


def field(element: dict[str, Any], **more: object) -> dict[str, Any]:
    return {
        "type": "input",
        "block_id": element["type"],
        "label": WORDS,
        "element": element | {"action_id": "a"},
        **more,
    }


FULL: dict[str, Any] = {
    "type": "modal",
    "title": WORDS,
    "submit": WORDS,
    "private_metadata": "{}",
    "blocks": [
        field({"type": "plain_text_input", "multiline": True, "initial_value": "x"}),
        field({"type": "static_select", "options": [OPTION]}),
        field({"type": "multi_static_select", "options": [OPTION]}),
        field({"type": "checkboxes", "options": [OPTION]}, optional=True),
        field({"type": "radio_buttons", "options": [OPTION]}),
        field({"type": "number_input", "is_decimal_allowed": True}),
        field({"type": "conversations_select", "filter": {"include": ["public"]}}),
        {"type": "section", "text": WORDS, "accessory": {"type": "button", "action_id": "b", "text": WORDS}},
        {"type": "actions", "elements": [{"type": "static_select", "action_id": "c", "options": [OPTION]}]},
        {"type": "context", "elements": [{"type": "mrkdwn", "text": "x"}]},
        {"type": "divider"},
    ],
}
JUNK: tuple[Any, ...] = (
    *(None, True, 0, 1.5, "", "x" * 4000, [], {}, [{}], [[]]),
    *({"type": "x"}, {"action_id": "a"}, [OPTION], {"type": "button", "action_id": "b"}),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Returns the paths of all values inside a value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, each in inside for found in ((*path, key), *places(each, (*path, key)))]


def spoiled(path: tuple[Any, ...], junk: object) -> dict[str, Any]:
    """Returns the full view with one of its values replaced."""
    view = deepcopy(FULL)
    target: Any = view
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = junk
    return view


def opened(content: dict[str, Any], conversation: str | None = None) -> tuple[OpenViews, View]:
    views = OpenViews()
    return views, views.open("U1", checked_view(content, "modal"), conversation)


def checked(content: dict[str, Any]) -> tuple[View | None, str]:
    """Returns the opened view, or Slack's error code."""
    try:
        return opened(content)[1], ""
    except SlackError as error:
        return None, error.code


def everything_used(view: View) -> set[str]:
    """Enters values of each kind into all elements and returns Slack's error codes."""
    assert rendered_view(view, HOME, AppConfig())["id"] == view.id
    held = [element for element in elements(view.blocks) if element.has_value]
    return {entered(view, element, value) for element in held for value in (None, "one", ["one"])}


def entered(view: View, element: Element, value: InputValue) -> str:
    """Enters a value and returns Slack's error code, if any."""
    try:
        OpenViews().enter(view, element, value)
    except SlackError as error:
        return error.code
    return ""


@pytest.mark.parametrize("place", sorted({path[0] for path in places(FULL)}))
def test_a_malformed_view_is_refused_or_can_be_used(place: str) -> None:
    """Wherever the malformed value is, there are only Slack's own errors."""
    codes = set()
    for path in (path for path in places(FULL) if path[0] == place):
        for junk in JUNK:
            view, code = checked(spoiled(path, junk))
            codes |= {code} if view is None else everything_used(view)
    assert "invalid_arguments" in codes
    assert codes <= {"", "invalid_arguments", "invalid_option"}


def test_the_current_conversation_beats_the_initial_one() -> None:
    select = {"type": "conversations_select", "initial_conversation": "C1", "default_to_current_conversation": True}
    for conversation, expected in (("C2", "C2"), (None, "C1")):
        _, view = opened(FULL | {"blocks": [field(select)]}, conversation)
        assert value_of(view.values["conversations_select"]["a"]) == expected
