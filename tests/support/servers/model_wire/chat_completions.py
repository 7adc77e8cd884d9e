"""OpenAI's chat completions, which goose speaks."""

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from support.servers.model_script import ModelRequest, Part, Reply, Say, Speaker
from support.servers.model_wire.sse import event, text_of

_NUMBERS = itertools.count(1)
_USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
_SPEAKERS = {"assistant": Speaker.MODEL, "tool": Speaker.TOOL}


def parse(body: Mapping[str, Any], key: str) -> ModelRequest:
    """Reads a request; the system's message is not part of the conversation."""
    tools = {tool["function"]["name"]: tool["function"].get("parameters") for tool in body.get("tools") or ()}
    parts = [
        Part(_SPEAKERS.get(message["role"], Speaker.USER), text_of(message.get("content") or ""))
        for message in body["messages"]
        if message["role"] != "system"
    ]
    schema = (body.get("response_format") or {}).get("json_schema", {}).get("schema")
    return ModelRequest(parts, tools, schema, bool(body.get("stream")), key)


def whole(reply: Reply) -> Mapping[str, Any]:
    """The answer in one piece."""
    choice = {"index": 0, "message": _message(reply), "finish_reason": _finish_reason(reply)}
    return {**_completion("chat.completion"), "choices": [choice], "usage": _USAGE}


def stream(reply: Reply) -> Iterator[bytes]:
    """The answer as events."""
    completion = _completion("chat.completion.chunk")
    message = {"index": 0, "delta": _message(reply), "finish_reason": None}
    yield event({**completion, "choices": [message]})
    end = {"index": 0, "delta": {}, "finish_reason": _finish_reason(reply)}
    yield event({**completion, "choices": [end], "usage": _USAGE})
    yield b"data: [DONE]\n\n"


def failure(status: int, message: str) -> Mapping[str, Any]:
    """The body of an error."""
    return {"error": {"message": message, "type": "api_error", "code": str(status)}}


def _completion(kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{next(_NUMBERS)}", "object": kind, "created": 1, "model": "scripted"}


def _message(reply: Reply) -> Mapping[str, Any]:
    if isinstance(reply, Say):
        return {"role": "assistant", "content": reply.text}
    function = {"name": reply.name, "arguments": json.dumps(reply.arguments)}
    call = {"index": 0, "id": f"call_{next(_NUMBERS)}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _finish_reason(reply: Reply) -> str:
    return "stop" if isinstance(reply, Say) else "tool_calls"
