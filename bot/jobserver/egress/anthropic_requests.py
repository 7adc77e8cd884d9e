"""Checks requests to Anthropic's messages API.

Tools that run at Anthropic (search, fetch, code, remote MCP servers) are refused, as are unknown ones; they can also be
added in the middle of a conversation. Content must be inline: no URLs and no file ids.
"""

import re
from collections.abc import Mapping
from typing import Any

from bot.jobserver.egress.refused_requests import (
    Refusals,
    anywhere,
    as_list,
    check_blocks,
    fields,
    kind_of,
    malformed,
    refused,
    unfamiliar,
)

_FIELDS = frozenset({
    "cache_control", "context_management", "max_tokens", "messages", "metadata", "model", "output_config",
    "output_format", "service_tier", "speed", "stop_sequences", "stream", "system", "temperature", "thinking",
    "tool_choice", "tools", "top_k", "top_p",
})  # fmt: skip
_MESSAGE_FIELDS = frozenset({"cache_control", "content", "output_config", "role"})
_TOOL = re.compile(r"custom|(?:bash|text_editor|memory)_\d{8}")
"""Tools that the agent executes itself."""
_TOOL_FIELDS = frozenset({
    "allowed_callers", "cache_control", "defer_loading", "description", "eager_input_streaming", "input_examples",
    "input_schema", "max_characters", "name", "strict", "type",
})  # fmt: skip
_PLAIN = frozenset({"redacted_thinking", "text", "thinking", "tool_reference", "tool_use"})
_NESTED = frozenset({"search_result", "tool_result"})
_WITH_SOURCE = frozenset({"document", "image"})
_INLINE = frozenset({"base64", "text"})
_OPAQUE = frozenset({"input", "input_examples", "input_schema", "schema"})


def check_messages(body: Mapping[str, Any]) -> Refusals:
    """Yields the refusals of a body for `/v1/messages` or its token count."""
    yield from fields(body, _FIELDS)
    yield from _content(body.get("system"))
    for message in as_list(body.get("messages")):
        if not isinstance(message, dict):
            yield malformed("a message")
            continue
        yield from fields(message, _MESSAGE_FIELDS)
        yield from _content(message.get("content"))
    yield from anywhere(body, _OPAQUE, _tool)


def _tool(tool: object) -> Refusals:
    if not isinstance(tool, dict):
        yield malformed("a tool")
        return
    if tool.get("type") is not None and not _TOOL.fullmatch(kind_of(tool)):
        yield refused("tool", tool["type"])
        return
    yield from fields(tool, _TOOL_FIELDS)
    for caller in as_list(tool.get("allowed_callers")):
        if caller != "direct":  # code that runs at Anthropic
            yield refused("caller of a tool", caller)


def _content(content: object) -> Refusals:
    return check_blocks(content, _block)


def _block(block: Mapping[str, Any]) -> Refusals:
    kind = kind_of(block)
    if kind in _PLAIN:
        return
    if kind in _NESTED:
        yield from _content(block.get("content"))
    elif kind in _WITH_SOURCE:
        yield from _source(block.get("source"))
    elif kind in {"tool_addition", "tool_removal"}:
        yield from _changed_tool(block.get("tool"))
    else:
        yield unfamiliar("content", kind, block)


def _source(source: object) -> Refusals:
    kind = kind_of(source)
    if isinstance(source, dict) and kind == "content":
        yield from _content(source.get("content"))
    elif kind not in _INLINE:
        yield refused("source of a content", kind)


def _changed_tool(tool: object) -> Refusals:
    kind = kind_of(tool)
    if isinstance(tool, dict) and kind == "tool_definition":
        yield from _tool(tool.get("definition"))
    elif kind != "tool_reference":
        yield refused("tool", kind)
