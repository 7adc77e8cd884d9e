"""Forms of agents' questions: what people are shown, and how their replies fill them in."""

from typing import Any

import pytest
from acp.schema import CreateFormSessionElicitationRequest
from hypothesis import given
from hypothesis import strategies as st

from bot.jobapi.models import FieldKind
from bot.jobserver.agents.questions import MOST_FIELDS, MOST_OPTIONS, Form, form_content, read_form

pytestmark = pytest.mark.promise("questions")

PORTS = {
    "type": "string",
    "title": "Port",
    "oneOf": [{"const": "p80", "title": "80"}, {"const": "p443", "title": "443"}],
}
CLAUDE = {
    "question_0": {
        "type": "string",
        "title": "Style",
        "oneOf": [
            {"const": "Short", "title": "Short", "description": "One paragraph"},
            {"const": "Long", "title": "Long"},
        ],
    },
    "question_0_custom": {"type": "string", "title": "Other", "description": "Type your own answer (optional)."},
}
"""The question that claude-agent-acp asks for its AskUserQuestion tool."""
CODEX = {
    "spelling": {
        "type": "string",
        "title": "Which spelling?",
        "description": "Spelling",
        "oneOf": [{"const": "American", "title": "American"}, {"const": "British", "title": "British"}],
        "_meta": {"codex": {"isOther": True, "isSecret": False}},
    },
    "spelling_note": {"type": "string", "title": "Additional answer or note"},
}
"""The question that codex-acp asks for its request_user_input tool."""
TAGS = {"type": "array", "title": "Tags", "items": {"type": "string", "enum": ["red", "green", "blue"]}}


def form(properties: dict[str, Any], message: str = "Which one?", **schema: Any) -> Form | None:
    request = {
        "sessionId": "s1",
        "mode": "form",
        "message": message,
        "requestedSchema": {"type": "object", "properties": properties, **schema},
    }
    return read_form(CreateFormSessionElicitationRequest.model_validate(request))


def shown(properties: dict[str, Any], message: str = "Which one?", **schema: Any) -> Form:
    found = form(properties, message, **schema)
    assert found is not None
    return found


def test_a_choice_is_shown_with_its_options() -> None:
    found = shown(CLAUDE, "How long?")
    (field,) = found.fields
    assert (field.shown.title, field.shown.kind, field.shown.own_words) == ("Style", FieldKind.CHOICE, True)
    assert [(option.label, option.description) for option in field.shown.options] == [
        ("Short", "One paragraph"),
        ("Long", None),
    ]
    assert found.in_words() == "How long?\n- Short: One paragraph\n- Long"


@pytest.mark.parametrize(
    ("properties", "reply", "content"),
    [
        ({"port": PORTS}, "443", {"port": "p443"}),
        ({"port": PORTS}, "p80", {"port": "p80"}),
        ({"port": PORTS}, " 2. ", {"port": "p443"}),
        ({"port": PORTS}, "the usual one", None),
        (CLAUDE, "short", {"question_0": "Short"}),
        (CLAUDE, "Two pages, please", {"question_0_custom": "Two pages, please"}),
        (CODEX, "british", {"spelling": "British"}),
        (CODEX, "Canadian, please", {"spelling_note": "Canadian, please"}),
        ({"tags": TAGS}, "red, Blue", {"tags": ["red", "blue"]}),
        ({"tags": TAGS}, "red and green", {"tags": ["red", "green"]}),
        ({"tags": TAGS}, "pink", None),
        ({"name": {"type": "string"}}, "  Lamp ", {"name": "Lamp"}),
        ({"name": {"type": "string"}}, "  ", None),
        ({"port": PORTS, "name": {"type": "string"}}, "name: a: b\nPort: 80", {"port": "p80", "name": "a: b"}),
        ({"port": PORTS, "name": {"type": "string"}}, "Port: 81", None),
        ({"port": PORTS, "name": {"type": "string"}}, "anything", None),
        (CLAUDE | {"port": PORTS}, "as you like", {"question_0_custom": "as you like"}),
    ],
)  # fmt: skip
def test_a_reply_fills_in_the_form_or_is_no_answer(
    properties: dict[str, Any], reply: str, content: dict[str, Any] | None
) -> None:
    assert form_content(shown(properties), reply) == content


def test_a_message_without_a_question_precedes_the_question() -> None:
    found = shown(CODEX, "Codex needs your input.", required=["spelling"])
    assert found.in_words() == "Codex needs your input.\n**Which spelling?**\n- American\n- British"
    assert form_content(found, "Canadian, please") == {"spelling_note": "Canadian, please"}


def test_unusual_labels_are_matched() -> None:
    """`Straße` has seven letters when compared without case."""
    pages = {"type": "array", "title": "Straße", "items": {"type": "string", "enum": ["One, two", "Three and four"]}}
    found = shown({"pages": pages, "port": PORTS})
    assert form_content(found, "Straße: One, two; Three and four\nport: 80") == {
        "pages": ["One, two", "Three and four"],
        "port": "p80",
    }


def test_required_fields_are_required() -> None:
    found = shown({"port": PORTS, "name": {"type": "string", "title": "Name"}}, required=["name"])
    assert form_content(found, "Port: 80") is None
    assert form_content(found, "Name: x") == {"name": "x"}


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"password": {"type": "string"}},
        {"ok": {"type": "boolean"}},
        {"n": {"type": "integer"}},
        {"x": {"type": "string", "title": "API key"}},
        {"x": {"type": "string", "description": "Your access token"}},
        {"x": {"type": "string", "format": "password"}},
        {"x": {"type": "string", "_meta": {"codex": {"isSecret": True}}}},
        {"x": {"type": "object"}},
        {"port": PORTS, "x": {"type": "array", "items": {"type": "odd"}}},
        {f"f{n}": {"type": "string"} for n in range(MOST_FIELDS + 1)},
        {"x": {"type": "string", "enum": [str(n) for n in range(MOST_OPTIONS + 1)]}},
        {"x": {"type": "string", "enum": ["a", "a"]}},
        {"x": {"type": "string", "enum": ["a" * 5_000]}},
    ],
)
def test_secret_unknown_or_oversized_fields_are_not_shown(properties: dict[str, Any]) -> None:
    try:
        assert form(properties) is None
    except ValueError:
        assert "odd" in str(properties) or "object" in str(properties), "the protocol's own types refuse it"


def test_a_pattern_of_the_agent_is_not_evaluated() -> None:
    """It could take forever."""
    found = shown({"x": {"type": "string", "pattern": "(a+)+$"}})
    assert form_content(found, "a" * 50_000 + "!") is not None


@given(reply=st.text() | st.sampled_from(["Port: 80", "1", "Port:", ":\n:"]))
def test_any_reply_is_a_valid_answer_or_none(reply: str) -> None:
    content = form_content(shown({"port": PORTS, "tags": TAGS}), reply)
    assert content is None or set(content) <= {"port", "tags"}
    assert content is None or content.get("port") in {None, "p80", "p443"}
