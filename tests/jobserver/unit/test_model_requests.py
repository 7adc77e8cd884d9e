"""Which requests pass the model relay, by method, target, headers and body."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy

from bot.jobserver.egress.model_api import (
    MOST_VALUES,
    ModelApi,
    RequestPolicy,
    Route,
    holds_token,
    request_headers,
    response_headers,
)
from bot.jobserver.egress.providers import ANTHROPIC, GEMINI, OPENAI
from bot.jobserver.egress.request_rules import RefusedRequest

pytestmark = pytest.mark.promise("model keys")

TARGETS = {
    "messages": (ANTHROPIC, "/v1/messages"),
    "responses": (OPENAI, "/v1/responses"),
    "chat": (OPENAI, "/v1/chat/completions"),
    "gemini": (GEMINI, "/v1beta/models/gemini-x:streamGenerateContent?alt=sse"),
    "count": (GEMINI, "/v1beta/models/gemini-x:countTokens"),
}
FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "mcp", "properties": {"file_id": {}}}}
IMAGE = {"type": "base64", "media_type": "image/png", "data": "eA=="}
DATA = "data:image/png;base64,eA=="


def headers(**more: str) -> CIMultiDictProxy[str]:
    return CIMultiDictProxy(CIMultiDict({"Content-Type": "application/json", **more}))


def looked_at(target: str, body: Any, model: str | None = None) -> RefusedRequest | None:
    api, path = TARGETS[target]
    policy = RequestPolicy(api, model)
    route = policy.route("POST", path, headers())
    assert isinstance(route, Route)
    whole = body if isinstance(body, bytes) else json.dumps({"model": "m", **body}).encode()
    return policy.body_refusal(route, whole)


def of_anthropic(*content: object, **more: object) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(content)}], **more}


ALLOWED: list[tuple[str, dict[str, Any]]] = [
    ("messages", of_anthropic({"type": "text", "text": "https://example.com"}, {"type": "image", "source": IMAGE})),
    ("messages", {"messages": [{"role": "user", "content": "mcp_servers"}], "system": "web_search", "stream": True}),
    ("messages", {"messages": [], "mcp_servers": None, "container": None}),
    ("messages", of_anthropic({"type": "tool_use", "id": "1", "name": "x", "input": {"type": "url", "url": "u"}})),
    ("messages", of_anthropic({"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": ""}]})),
    ("messages", of_anthropic(tools=[{"name": "web_search", "input_schema": {}}, {"type": "custom", "name": "x"}])),
    ("messages", of_anthropic(tools=[{"type": "bash_20250124", "name": "bash"}])),
    ("messages", of_anthropic({"type": "tool_addition", "tool": {"type": "tool_reference", "name": "x"}})),
    ("messages", of_anthropic({"type": "document", "source": {"type": "text", "data": "x"}})),
    ("responses", {"input": "Hi", "tools": [FUNCTION, {"type": "custom", "name": "p"}], "store": False}),
    ("responses", {"input": [{"role": "user", "content": "Hi"}, {"type": "reasoning", "encrypted_content": "x"}]}),
    ("responses", {"input": [], "tools": [{"type": "tool_search", "execution": "client"}]}),
    ("responses", {"input": [], "tools": [{"type": "namespace", "name": "n", "tools": [FUNCTION]}]}),
    ("responses", {"input": [{"type": "custom_tool_call_output", "output": [{"type": "input_text", "text": ""}]}]}),
    ("responses", {"input": [{"content": [{"type": "input_image", "image_url": DATA}]}]}),
    ("chat", {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": DATA}}]}]}),
    ("chat", {"messages": [{"role": "assistant", "content": None, "tool_calls": []}], "tools": [FUNCTION]}),
    ("gemini", {"contents": [{"role": "user", "parts": [{"text": "x"}, {"inlineData": {"data": "eA=="}}]}]}),
    ("gemini", {"contents": [], "tools": [{"functionDeclarations": [{"name": "google_search"}]}]}),
    ("gemini", {"contents": {"parts": {"functionResponse": {"name": "f", "response": {"fileUri": "x"}}}}}),
    ("count", {"generateContentRequest": {"contents": []}}),
]  # fmt: skip


@pytest.mark.parametrize(("target", "body"), ALLOWED)
def test_ordinary_model_requests_pass(target: str, body: dict[str, Any]) -> None:
    assert looked_at(target, body) is None


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    *(
        ("messages", of_anthropic(tools=[{"type": kind, "name": "x"}]), kind)
        for kind in (
            "web_search_20250305", "web_fetch_20250910", "code_execution_20250825", "computer_20250124", "mcp_toolset",
            "tool_search_tool_regex_20251119", "advisor_20260301", "of_tomorrow", "bash_20250124x", "",
        )
    ),
    ("messages", of_anthropic(Tools=[{"name": "x"}]), "Tools"),
    ("messages", of_anthropic({"type": "image", "source": {"type": "url", "url": "https://x"}}), "url"),
    ("messages", of_anthropic({"type": "document", "source": {"type": "file", "file_id": "f"}}), "file"),
    ("messages", of_anthropic({"type": "container_upload", "file_id": "f"}), "container_upload"),
    ("messages", of_anthropic({"type": "server_tool_use", "name": "web_search"}), "server_tool_use"),
    (
        "messages",
        of_anthropic({"type": "tool_result", "content": [{"type": "image", "source": {"type": "url", "url": "u"}}]}),
        "url",
    ),
    (
        "messages",
        of_anthropic({"type": "document", "source": {"type": "content", "content": [{"type": "image", "source": {}}]}}),
        "a source of a content",
    ),
    (
        "messages",
        of_anthropic({
            "type": "tool_addition",
            "tool": {"type": "tool_definition", "definition": {"type": "web_fetch_20250910", "name": "f"}},
        }),
        "web_fetch_20250910",
    ),
    ("messages", {"system": [{"type": "image", "source": {"type": "url"}}]}, "url"),
    ("messages", of_anthropic(tools=[{"name": "x", "allowed_callers": ["code_execution_1"]}]), "code_execution_1"),
    ("messages", of_anthropic(tools=[{"name": "x", "url": "https://x"}]), "url"),
    ("messages", of_anthropic(tools=["x"]), "malformed"),
    ("messages", {"messages": ["x"]}, "malformed"),
    ("messages", {"messages": [{"role": "user", "content": 5}]}, "malformed"),
    *(
        ("responses", {"input": [], "tools": [{"type": kind}]}, kind)
        for kind in (
            "web_search", "web_search_preview", "file_search", "code_interpreter", "computer_use_preview", "computer",
            "image_generation", "mcp", "shell", "of_tomorrow",
        )
    ),
    ("responses", {"input": [], "tools": [{"type": "tool_search"}]}, "a place of a tool"),
    ("responses", {"input": [], "tools": [{"type": "tool_search", "execution": "server"}]}, "server"),
    ("responses", {"input": [], "tools": [{"type": "namespace", "tools": [{"type": "mcp"}]}]}, "mcp"),
    ("responses", {"input": [], "prompt": {"id": "p"}}, "prompt"),
    ("responses", {"input": [{"type": "item_reference", "id": "i"}]}, "item_reference"),
    ("responses", {"input": [{"type": "mcp_approval_response"}]}, "mcp_approval_response"),
    ("responses", {"input": [{"type": "additional_tools", "tools": [{"type": "mcp"}]}]}, "mcp"),
    ("responses", {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]}, "file_id"),
    ("responses", {"input": [{"role": "user", "content": [{"type": "input_file", "file_url": "u"}]}]}, "file_url"),
    (
        "responses",
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "https://x"}]}]},
        "url",
    ),
    ("chat", {"messages": [], "models": ["a"]}, "models"),
    ("chat", {"messages": [], "modalities": ["text", "audio"]}, "audio"),
    ("chat", {"messages": [{"role": "assistant", "audio": {"id": "a"}}]}, "audio"),
    ("chat", {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]}, "file_id"),
    *(
        ("gemini", {"contents": [], "tools": [{name: {}}]}, name)
        for name in (
            "googleSearch", "google_search", "googleSearchRetrieval", "urlContext", "url_context", "codeExecution",
            "code_execution", "fileSearch", "computerUse", "googleMaps", "mcpServers", "retrieval",
        )
    ),
    ("gemini", {"contents": [{"parts": [{"fileData": {"fileUri": "https://x"}}]}]}, "fileData"),
    ("gemini", {"contents": [{"parts": [{"file_data": {}}]}]}, "file_data"),
    ("gemini", {"system_instruction": {"parts": [{"fileData": {}}]}}, "fileData"),
    ("gemini", {"contents": [{"parts": [{"function_response": {"parts": [{"fileData": {}}]}}]}]}, "fileData"),
    ("count", {"generate_content_request": {"contents": [], "tools": [{"googleSearch": {}}]}}, "googleSearch"),
]  # fmt: skip


@pytest.mark.parametrize(("target", "body", "what"), REFUSED)
def test_features_that_lead_elsewhere_are_refused_by_name(target: str, body: dict[str, Any], what: str) -> None:
    refused = looked_at(target, body)
    assert refused is not None
    assert refused.what == what or (what == "" and refused.what == "a tool")
    assert refused.message.startswith("Pagehand's model relay refuses this")


REACHING = (
    "mcp_servers", "container", "background", "store", "previous_response_id", "conversation", "web_search_options",
    "plugins", "file_id", "file_ids", "file_url", "batch_id", "mcpServers", "fileUri", "cachedContent",
    "cached_content",
)  # fmt: skip
"""Fields that reach out, store something at a provider, or address what is stored there."""
PLACES: dict[str, Callable[[dict[str, Any]], tuple[str, dict[str, Any]]]] = {
    "a messages request": lambda field: ("messages", {"messages": [], **field}),
    "a message": lambda field: ("messages", {"messages": [{"role": "user", "content": "x", **field}]}),
    "a block": lambda field: ("messages", of_anthropic({"type": "text", "text": "x", **field})),
    "a tool's result": lambda field: ("messages", of_anthropic({"type": "tool_result", "content": [
        {"type": "text", "text": "x", **field}]})),
    "an option": lambda field: ("messages", {"messages": [], "context_management": {"edits": [{"a": field}]}}),
    "a field of tomorrow": lambda field: ("messages", {"messages": [], "of_tomorrow": {"a": [field]}}),
    "a block of tomorrow": lambda field: ("messages", of_anthropic({"type": "of_tomorrow", **field})),
    "a responses request": lambda field: ("responses", {"input": [], **field}),
    "its text": lambda field: ("responses", {"input": [], "text": {"format": field}}),
    "an item": lambda field: ("responses", {"input": [{"type": "function_call", "arguments": "{}", **field}]}),
    "an item of tomorrow": lambda field: ("responses", {"input": [{"type": "of_tomorrow", "a": [field]}]}),
    "a chat": lambda field: ("chat", {"messages": [], **field}),
    "a choice of provider": lambda field: ("chat", {"messages": [], "provider": {"a": field}}),
    "a tool call": lambda field: ("chat", {"messages": [{"role": "assistant", "tool_calls": [{"id": "1", **field}]}]}),
    "a generation": lambda field: ("gemini", {"contents": [], **field}),
    "its configuration": lambda field: ("gemini", {"contents": [], "generationConfig": {"a": field}}),
    "a part": lambda field: ("gemini", {"contents": [{"parts": [{"text": "x", **field}]}]}),
    "a request to count": lambda field: ("count", {"generateContentRequest": {"contents": [], **field}}),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", REACHING)
def test_a_field_that_reaches_out_is_refused_wherever_it_stands(name: str, place: str) -> None:
    """With any value that can turn it on, such as an empty object; null, false and nothing cannot."""
    values: list[Any] = ["x", True, 0, {}, {"a": 1}, ["x"]]
    for value in values:
        target, body = PLACES[place]({name: value})
        refused = looked_at(target, body)
        assert refused is not None, value
        assert refused.what in {name, "of_tomorrow"}
    nothing: list[Any] = [None, False, "", []]
    for off in nothing:
        target, body = PLACES[place]({name: off})
        assert looked_at(target, body) is None, off


SEARCH = {"type": "web_search_20250305", "name": "web_search"}
INSIDE = dict.fromkeys(REACHING, "https://example.com") | {"tools": [SEARCH], "googleSearch": {}, "url": "https://a.b"}
UNREAD: list[tuple[str, dict[str, Any]]] = [
    ("messages", of_anthropic({"type": "tool_use", "id": "1", "name": "x", "input": INSIDE})),
    ("messages", of_anthropic({"type": "text", "text": json.dumps(INSIDE)})),
    ("messages", of_anthropic({"type": "tool_result", "content": json.dumps(INSIDE)})),
    (
        "messages",
        of_anthropic(tools=[{"name": "x", "input_schema": {"properties": INSIDE}, "input_examples": [INSIDE]}]),
    ),
    ("messages", of_anthropic(output_format={"type": "json_schema", "schema": {"properties": INSIDE}})),
    ("responses", {"input": [{"type": "function_call", "name": "f", "arguments": json.dumps(INSIDE)}]}),
    ("responses", {"input": [{"type": "tool_search_call", "arguments": INSIDE}]}),
    ("responses", {"input": [{"type": "function_call_output", "output": json.dumps(INSIDE)}]}),
    ("responses", {"input": [], "tools": [{"type": "function", "name": "f", "parameters": {"properties": INSIDE}}]}),
    ("responses", {"input": [], "text": {"format": {"type": "json_schema", "schema": {"properties": INSIDE}}}}),
    ("chat", {"messages": [{"role": "tool", "tool_call_id": "1", "content": json.dumps(INSIDE)}]}),
    ("chat", {"messages": [], "tools": [{"type": "function", "function": {"name": "f", "parameters": INSIDE}}]}),
    ("chat", {"messages": [], "response_format": {"type": "json_schema", "json_schema": {"schema": INSIDE}}}),
    ("gemini", {"contents": [{"parts": [{"functionCall": {"name": "f", "args": INSIDE}}]}]}),
    ("gemini", {"contents": [{"parts": [{"function_response": {"name": "f", "response": INSIDE}}]}]}),
    ("gemini", {"contents": [], "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": INSIDE}]}]}),
    ("gemini", {"contents": [], "generationConfig": {"responseJsonSchema": INSIDE}}),
]


@pytest.mark.parametrize(("target", "body"), UNREAD)
def test_what_a_provider_does_not_interpret_passes(target: str, body: dict[str, Any]) -> None:
    """Texts, a tool's input and output, and schemas."""
    assert looked_at(target, body) is None


NEW: list[tuple[str, Callable[[Any], dict[str, Any]]]] = [
    ("messages", lambda value: {"messages": [], "of_tomorrow": value}),
    ("messages", lambda value: of_anthropic({"type": "of_tomorrow", "text": "See https://example.com", "a": value})),
    ("messages", lambda value: of_anthropic(tools=[{"name": "x", "of_tomorrow": value}])),
    ("responses", lambda value: {"input": [{"type": "of_tomorrow", "a": {"b": [value]}}]}),
    ("responses", lambda value: {"input": [], "of_tomorrow": {"a": value}}),
    ("chat", lambda value: {"messages": [{"role": "user", "content": "x", "of_tomorrow": value}]}),
    ("gemini", lambda value: {"contents": [{"parts": [{"text": "x", "ofTomorrow": value}]}]}),
]


@pytest.mark.parametrize(("target", "body"), NEW)
def test_what_is_new_passes_unless_an_address_a_file_or_a_tool_is_inside(
    target: str, body: Callable[[Any], dict[str, Any]]
) -> None:
    for harmless in ("high", 3, True, {"effort": "low"}, [{"type": "summary"}]):
        assert looked_at(target, body(harmless)) is None, harmless
    reaching_out: list[Any] = [
        "https://example.com", "//example.com", "wss://example.com", "see gs://bucket/x", "www.example.com",
        "file-abc123", "files/abc", {"url": "x"}, {"imageUri": "x"}, {"fileId": "x"}, {"tools": [FUNCTION]},
        {"type": "web_search"}, {"type": "mcp"}, {"googleSearch": {}}, {"code_execution": {}}, [{"server": "x"}],
    ]  # fmt: skip
    for hostile in reaching_out:
        assert looked_at(target, body(hostile)) is not None, hostile


HOSTILE = {
    "a name that stands twice": b'{"model": "m", "tools": [], "tools": [{"type": "mcp"}]}',
    "a name that stands twice, once escaped": b'{"model": "m", "tools": [], "t\\u006fols": []}',
    "deep": b'{"model": "m", "messages": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "many values": b'{"model": "m", "messages": [' + b"[]," * MOST_VALUES + b"[]]}",
    "not utf-8": b'{"model": "m\xff"}',
    "utf-16": '{"model": "m"}'.encode("utf-16"),
    "a mark of order": b'\xef\xbb\xbf{"model": "m"}',
    "no object": b"[]",
    "nothing": b"",
    "cut off": b'{"model": "m"',
    "two objects": b'{"model": "m"}{"tools": []}',
    "infinite": b'{"model": "m", "temperature": Infinity}',
    "a long number": b'{"model": "m", "max_tokens": ' + b"9" * 5000 + b"}",
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_ambiguous_json_is_refused(target: str, body: bytes) -> None:
    refused = looked_at(target, body)
    assert refused is not None
    assert refused.what == "malformed"


def test_content_however_deeply_nested_is_either_passed_or_refused() -> None:
    """What JSON's parser can still read is too deep for the rules."""
    for depth in range(100, 700, 50):
        document = b'[{"type": "document", "source": {"type": "content", "content": '
        content = document * depth + b"[]" + b"}}]" * depth
        body = b'{"model": "m", "messages": [{"content": ' + content + b"}]}"
        assert getattr(looked_at("messages", body), "what", "malformed") == "malformed"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5)
    | st.sampled_from(["text", "image", "tool_result", "base64", "url", "message", "function", "tool_addition"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["type", "content", "source", "tool", "parts", "tools", "definition", "image_url", "input"]),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip
FIELDS = st.sampled_from(["messages", "system", "tools", "input", "contents", "store", "model", "modalities"])


@given(st.sampled_from(sorted(TARGETS)), st.dictionaries(FIELDS, JSON, max_size=4))
def test_any_body_is_either_passed_or_refused(target: str, body: dict[str, Any]) -> None:
    refused = looked_at(target, json.dumps(body).encode())
    assert refused is None or refused.message


@given(st.sampled_from(["messages", "responses"]), JSON)
def test_a_tool_passes_only_with_a_known_type(target: str, tool: object) -> None:
    if looked_at(target, {"tools": [tool]}) is None:
        assert isinstance(tool, dict)
        assert tool.get("type", "custom" if target == "messages" else None) in {None, "custom", "function"}


@given(st.text(max_size=60))
def test_only_plain_tool_names_are_reported(name: str) -> None:
    refused = looked_at("messages", {"tools": [{"type": name}]})
    assert refused is None or (len(refused.what) < 50 and refused.what.isprintable() and "\n" not in refused.message)


@pytest.mark.parametrize(
    ("api", "method", "target", "rest"),
    [
        (ANTHROPIC, "POST", "/v1/messages?beta=true", "/messages?beta=true"),
        (ANTHROPIC, "POST", "/v1/messages/count_tokens", "/messages/count_tokens"),
        (ANTHROPIC, "GET", "/v1/models/claude-x?limit=5", "/models/claude-x?limit=5"),
        (OPENAI, "POST", "/v1/responses/compact", "/responses/compact"),
        (GEMINI, "GET", "/v1beta/models", "/models"),
    ],
)
def test_features_a_conversation_needs_are_passed(api: ModelApi, method: str, target: str, rest: str) -> None:
    route = api.route(method, target)
    assert isinstance(route, Route)
    assert route.target == rest


@given(st.sampled_from([ANTHROPIC, OPENAI, GEMINI]), st.text(max_size=40))
def test_other_request_targets_are_refused(api: ModelApi, tail: str) -> None:
    """A known path may be followed only by a name or a listed parameter."""
    for method in ("GET", "POST"):
        route = api.route(method, f"{api.prefix}/models/{tail}")
        if isinstance(route, Route):
            assert not set(route.target.removeprefix("/models")) & set("%\\#@ \r\n\t;")
            assert "//" not in route.target
            assert "/.." not in route.target


@pytest.mark.parametrize(
    ("setting", "asked", "passes"),
    [
        (None, "claude-opus-5", True),
        (None, "gpt-4o-search-preview", False),
        (None, "o3-deep-research", False),
        (None, "openai/gpt-4o:online", False),
        (None, None, False),
        (None, ["m"], False),
        ("claude-opus-5", "claude-opus-5", True),
        ("claude-opus-5", "claude-opus-5-1", False),
        ("claude-opus-5[1m]", "claude-opus-5", True),
        ("claude-opus-5", "claude-haiku-4-5-20251001", True),
        ("claude-opus-5", "claude-3-5-haiku-latest", True),
        ("sonnet", "claude-sonnet-4-5-20250929", True),
        ("sonnet", "claude-opus-5", False),
        ("anthropic/claude-sonnet-4-5", "claude-sonnet-4-5", True),
        ("gpt-4o-search-preview", "gpt-4o-search-preview", True),
        ("m", "M", False),
    ],
)
def test_only_permitted_models_may_be_requested(setting: str | None, asked: object, *, passes: bool) -> None:
    """The configured one and its companions; without a setting any, except those that search by themselves."""
    assert (RequestPolicy(ANTHROPIC, setting).model_refusal(asked) is None) == passes
    assert RequestPolicy(ANTHROPIC, setting, ("grok-4", str(asked))).model_refusal(str(asked)) is None


def test_models_in_target_and_body_are_both_checked() -> None:
    assert looked_at("gemini", {"contents": [], "model": "models/gemini-x"}, "gemini-x") is None
    refused = looked_at("gemini", {"contents": [], "model": "models/other"}, "gemini-x")
    assert refused is not None
    assert refused.what == "other"


def test_connection_and_credential_headers_are_removed() -> None:
    """Neither to the model nor back."""
    given_headers = headers(
        **{"X-Api-Key": "t", "Connection": "x", "Forwarded": "y", "Anthropic-Beta": "b", "X-Goog-User-Project": "p"}
    )
    assert dict(request_headers(given_headers)) == {"Content-Type": "application/json", "Anthropic-Beta": "b"}
    told = {"Set-Cookie": "a", "Location": "l", "Retry-After": "1", "Content-Encoding": "gzip", "x-ratelimit-a": "2"}
    assert dict(response_headers(told)) == {"Retry-After": "1", "x-ratelimit-a": "2"}


def test_every_credential_of_a_request_must_be_the_token() -> None:
    own = "api-key"
    assert holds_token(headers(**{"x-api-key": "tok"}), "tok", own)
    assert holds_token(headers(**{own: "tok"}), "tok", own)
    assert holds_token(headers(Authorization="Bearer tok"), "tok", own)
    for other in ("x-goog-api-key", own):
        assert not holds_token(headers(Authorization="Bearer tok", **{other: "other"}), "tok", own)
    assert not holds_token(headers(), "", own)
    assert not holds_token(headers(Authorization="Bearer ¿"), "tok", own)
