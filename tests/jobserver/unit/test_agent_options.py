"""What is chosen from an agent's own list, and how missing values are reported."""

from typing import Any

import pytest
from acp.schema import NewSessionResponse

from bot.jobserver.agents.connection import (
    Category,
    Options,
    in_words,
    option_to_set,
    options_of,
)
from bot.jobserver.errors import NotOfferedError

pytestmark = pytest.mark.promise("agent options")


def listed(category: str, current: str, *values: str, **more: Any) -> dict[str, Any]:
    options = [{"value": value, "name": value.title()} for value in values]
    return {
        "id": f"the-{category}", "name": "X", "category": category, "type": "select", "currentValue": current,
        "options": options, **more,
    }  # fmt: skip


def options(*told: dict[str, Any]) -> Options:
    response = NewSessionResponse.model_validate({"sessionId": "s", "configOptions": list(told)})
    return options_of(response.config_options)


MODEL = listed("model", "opus", "opus", "haiku")
EFFORT = listed("thought_level", "low", "low", "high")
MODE = listed("mode", "plan", "plan", "yolo")


def test_an_unlisted_effort_or_mode_is_refused_but_an_unlistable_model_is_not() -> None:
    assert option_to_set("gemini", Category.MODEL, "gemini-pro", options()) is None
    with pytest.raises(NotOfferedError, match=r"leave it out \(PAGEHAND_JOBSERVER_EFFORT\)"):
        option_to_set("gemini", Category.EFFORT, "low", options(MODEL))
    with pytest.raises(NotOfferedError, match=r"has no mode “ask”: .* it has none that it lists"):
        option_to_set("gemini", Category.MODE, "ask", options(MODEL))


def test_option_groups_are_flattened_and_malformed_options_ignored() -> None:
    groups = [{"group": "a", "name": "A", "options": [{"value": "m1", "name": "1"}]},
              {"group": "b", "name": "B", "options": [{"value": "m2", "name": "2"}]}]  # fmt: skip
    odd = {"id": "fast", "name": "Fast", "category": "mode", "type": "boolean", "currentValue": True}
    have = options(
        listed("_of_their_own", "x"), odd, {"id": 1}, listed("model", "m1", options=groups), listed("model", "other")
    )
    assert {category: option.values for category, option in have.items()} == {Category.MODEL: ("m1", "m2")}
    assert options_of(None) == {}


def test_option_lists_are_bounded_and_on_one_line() -> None:
    have = options(listed("model", "m0\n", *(f"m{n}\n" + "x" * 500 for n in range(500))))
    words = in_words(have)
    assert words.startswith("model m0 (of m0 x")
    assert words.endswith(" and 490 more)")
    assert len(words) < 1000
    assert "\n" not in words
