"""With any JSON, a field is read or counts as missing."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.runtime.json_fields import object_at, objects_at, text_at

anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=10,
)


def test_present_fields_are_read() -> None:
    body = {"a": {"b": "text"}, "list": [{"x": 1}, None, {"y": 2}]}
    assert text_at(body, "a", "b") == "text"
    assert object_at(body, "a") == {"b": "text"}
    assert objects_at(body, "list") == [{"x": 1}, {"y": 2}]


def test_fields_of_the_wrong_type_count_as_missing() -> None:
    body: dict[str, Any] = {"number": 7, "null": None, "list": [], "text": "x"}
    assert text_at(body, "number") == text_at(body, "null") == text_at(body, "text", "deeper") == ""
    assert object_at(body, "text") == {}
    assert objects_at(body, "text") == []


@given(anything)
def test_reading_json_fields_never_raises(body: Any) -> None:
    assert isinstance(text_at(body, "a", "b"), str)
    assert isinstance(object_at(body, "a"), dict)
    assert all(isinstance(item, dict) for item in objects_at(body, "a"))
