"""Anthropic's messages, which Claude Code and opencode speak."""

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from support.servers.model_script import ModelRequest, Part, Reply, Say, Speaker
from support.servers.model_wire.sse import text_of, typed_event

_NUMBERS = itertools.count(1)
_USAGE = {"input_tokens": 1, "output_tokens": 1}


def parse(body: Mapping[str, Any], key: str) -> ModelRequest:
    """Reads a request; text beside the messages is not part of the conversation."""
    config = body.get("output_config", {})
    schema = config.get("format", {}).get("schema")
    tools = {tool["name"]: tool.get("input_schema") for tool in body.get("tools", ())}
    parts = [part for message in body["messages"] for part in _parts(message)]
    return ModelRequest(parts, tools, schema, bool(body.get("stream")), key, config.get("effort", ""))


def _parts(message: Mapping[str, Any]) -> Iterator[Part]:
    content = message["content"]
    for block in [content] if isinstance(content, str) else content:
        if isinstance(block, dict) and block.get("type") == "tool_result":
            yield Part(Speaker.TOOL, text_of(block.get("content")))
        else:
            speaker = Speaker.MODEL if message["role"] == "assistant" else Speaker.USER
            yield Part(speaker, text_of(block))


def whole(reply: Reply) -> Mapping[str, Any]:
    """The answer in one piece."""
    block = {**_block(reply), **({"text": reply.text} if isinstance(reply, Say) else {"input": reply.arguments})}
    return {**_message(), "content": [block], "stop_reason": _stop_reason(reply)}


def stream(reply: Reply) -> Iterator[bytes]:
    """The answer as events."""
    yield typed_event({"type": "message_start", "message": _message()})
    yield typed_event({"type": "content_block_start", "index": 0, "content_block": _block(reply)})
    yield typed_event({"type": "content_block_delta", "index": 0, "delta": _delta(reply)})
    yield typed_event({"type": "content_block_stop", "index": 0})
    stopped = {"stop_reason": _stop_reason(reply), "stop_sequence": None}
    yield typed_event({"type": "message_delta", "delta": stopped, "usage": {"output_tokens": 1}})
    yield typed_event({"type": "message_stop"})


def failure(status: int, message: str) -> Mapping[str, Any]:
    """The body of an error."""
    kind = "authentication_error" if status == 401 else "api_error"
    return {"type": "error", "error": {"type": kind, "message": message}}


def _message() -> dict[str, Any]:
    made = {"id": f"msg_{next(_NUMBERS)}", "type": "message", "role": "assistant", "model": "scripted"}
    return {**made, "content": [], "stop_reason": None, "stop_sequence": None, "usage": _USAGE}


def _block(reply: Reply) -> dict[str, Any]:
    if isinstance(reply, Say):
        return {"type": "text", "text": ""}
    return {"type": "tool_use", "id": f"toolu_{next(_NUMBERS)}", "name": reply.name, "input": {}}


def _delta(reply: Reply) -> Mapping[str, Any]:
    if isinstance(reply, Say):
        return {"type": "text_delta", "text": reply.text}
    return {"type": "input_json_delta", "partial_json": json.dumps(reply.arguments)}


def _stop_reason(reply: Reply) -> str:
    return "end_turn" if isinstance(reply, Say) else "tool_use"
