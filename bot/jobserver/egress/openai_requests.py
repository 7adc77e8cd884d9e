"""Checks requests to OpenAI's responses and chat completions, and to compatible APIs.

Tools that run at OpenAI (search, files, code, images, remote MCP servers) are refused, as is everything stored there
that another job could read: responses, conversations, prompts and files. Content must be inline.
"""

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

_BOTH = frozenset({
    "max_tokens", "metadata", "model", "parallel_tool_calls", "prompt_cache_key", "prompt_cache_retention",
    "safety_identifier", "service_tier", "store", "stream", "stream_options", "temperature", "tool_choice", "tools",
    "top_logprobs", "top_p", "user", "verbosity", "reasoning",
})  # fmt: skip
_RESPONSES = _BOTH | {
    "background", "client_metadata", "context_management", "include", "input", "instructions", "max_output_tokens",
    "max_tool_calls", "text", "truncation",
}  # fmt: skip
_CHAT = _BOTH | {
    "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "max_completion_tokens", "messages",
    "modalities", "n", "prediction", "presence_penalty", "reasoning_effort", "response_format", "seed", "stop", "usage",
    # OpenRouter's: the choice of provider, and how much the model thinks.
    "include_reasoning", "provider", "transforms",
}  # fmt: skip
_MESSAGE = frozenset({
    "annotations", "cache_control", "content", "function_call", "name", "reasoning", "reasoning_content",
    "reasoning_details", "refusal", "role", "tool_call_id", "tool_calls",
})  # fmt: skip
_OPAQUE = frozenset({
    "annotations", "arguments", "client_metadata", "env", "logit_bias", "metadata", "output_schema", "parameters",
    "schema",
})  # fmt: skip
_MESSAGE_ITEM = frozenset({
    "content", "id", "internal_chat_message_metadata_passthrough", "phase", "role", "status", "type",
})  # fmt: skip
_TOOLS = frozenset({"apply_patch", "custom", "function", "local_shell", "namespace"})
"""Tools that the agent executes itself, and lists of these."""
_TOOL_FIELDS = frozenset({
    "allowed_callers", "cache_control", "custom", "defer_loading", "description", "execution", "format", "function",
    "name", "output_schema", "parameters", "strict", "tools", "type",
})  # fmt: skip
_ITEMS = frozenset({
    "additional_tools", "apply_patch_call", "apply_patch_call_output", "compaction", "compaction_summary",
    "compaction_trigger", "context_compaction", "custom_tool_call", "function_call", "local_shell_call",
    "local_shell_call_output", "reasoning", "shell_call", "shell_call_output", "tool_search_call", "tool_search_output",
})  # fmt: skip
_OUTPUTS = frozenset({"custom_tool_call_output", "function_call_output"})
_PLAIN = frozenset({
    "encrypted_content", "input_audio", "input_text", "output_text", "reasoning_text", "refusal", "summary_text",
    "text",
})  # fmt: skip


def check_responses(body: Mapping[str, Any]) -> Refusals:
    """Yields the refusals of a body for `/v1/responses`."""
    yield from fields(body, _RESPONSES)
    if body.get("prompt") is not None:
        yield refused("field", "prompt")  # one that is stored
    items = body.get("input")
    for item in [] if isinstance(items, str) else as_list(items):
        yield from _item(item) if isinstance(item, dict) else [malformed("an item of the input")]
    yield from anywhere(body, _OPAQUE, _tool)


def check_chat(body: Mapping[str, Any]) -> Refusals:
    """Yields the refusals of a body for `/v1/chat/completions`."""
    yield from fields(body, _CHAT)
    yield from (refused("modality", kind) for kind in as_list(body.get("modalities")) if kind != "text")
    for message in as_list(body.get("messages")):
        if not isinstance(message, dict):
            yield malformed("a message")
            continue
        yield from fields(message, _MESSAGE)
        yield from _content(message.get("content"))
    yield from anywhere(body, _OPAQUE, _tool)


def _tool(tool: object) -> Refusals:
    if not isinstance(tool, dict):
        yield malformed("a tool")
        return
    kind = kind_of(tool)
    if kind not in _TOOLS and not (kind == "tool_search" and tool.get("execution") == "client"):
        yield refused("tool", kind)
    yield from fields(tool, _TOOL_FIELDS)


def _item(item: Mapping[str, Any]) -> Refusals:
    kind = kind_of(item) if "type" in item else "message"
    if kind == "message":
        yield from fields(item, _MESSAGE_ITEM)
        yield from _content(item.get("content"))
    elif kind in _OUTPUTS:
        yield from _content(item.get("output"))
    elif kind not in _ITEMS:
        yield unfamiliar("item of the input", kind, item)


def _content(content: object) -> Refusals:
    return check_blocks(content, _part)


def _part(part: Mapping[str, Any]) -> Refusals:
    kind = kind_of(part)
    if kind in _PLAIN:
        return
    if kind in {"image_url", "input_image"}:
        yield from fields(part, {"cache_control", "detail", "image_url", "type"})
        yield from _inline(part.get("image_url"))
    elif kind == "input_file":
        yield from fields(part, {"file_data", "filename", "type"})
        yield from _inline(part.get("file_data"))
    elif kind == "file":
        file = part.get("file")
        yield from fields(file, {"file_data", "filename"}) if isinstance(file, dict) else [malformed("a file")]
        yield from _inline(file.get("file_data") if isinstance(file, dict) else None)
    else:
        yield unfamiliar("content", kind, part)


def _inline(value: object) -> Refusals:
    """Refuses a URL that OpenAI would fetch; a `data:` URL contains the data itself."""
    address = value.get("url") if isinstance(value, dict) else value
    if not isinstance(address, str) or not address.startswith("data:"):
        yield refused("content", "url")
