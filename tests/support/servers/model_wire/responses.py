"""OpenAI's responses, which Codex speaks."""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from support.servers.model_script import ModelRequest, Part, Reply, Say, Speaker
from support.servers.model_wire.sse import text_of, typed_event

_NUMBERS = itertools.count(1)
_USAGE = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None}


def parse(body: Mapping[str, Any], key: str) -> ModelRequest:
    """Reads a request; the instructions are not part of the conversation."""
    given = body.get("input", ())
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    tools = dict(_tools([body, *items]))
    schema = body.get("text", {}).get("format", {}).get("schema")
    effort = (body.get("reasoning") or {}).get("effort", "")
    return ModelRequest([_part(item) for item in items], tools, schema, bool(body.get("stream")), key, effort)


def _tools(holders: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yields the names of tools and their parameters; some come in items of the input, some in namespaces."""
    for tool in itertools.chain.from_iterable(holder.get("tools", ()) for holder in holders):
        if tool["type"] == "namespace":
            yield from _tools([tool])
        elif "name" in tool:
            yield tool["name"], tool.get("parameters")


def _part(item: Mapping[str, Any]) -> Part:
    if str(item.get("type", "")).endswith("_output"):
        return Part(Speaker.TOOL, text_of(item.get("output")))
    from_user = item.get("role") in {"user", "developer", "system"}
    return Part(Speaker.USER if from_user else Speaker.MODEL, text_of(item.get("content", item)))


def whole(reply: Reply) -> Mapping[str, Any]:
    """The answer in one piece."""
    return {**_response(), "status": "completed", "output": [_item(reply)], "usage": {**_USAGE, "total_tokens": 2}}


def stream(reply: Reply) -> Iterator[bytes]:
    """The answer as events."""
    response, item = _response(), _item(reply)
    yield typed_event({"type": "response.created", "response": response})
    yield typed_event({"type": "response.output_item.added", "output_index": 0, "item": _begun(item)})
    if isinstance(reply, Say):
        where = {"item_id": item["id"], "output_index": 0, "content_index": 0}
        yield typed_event({"type": "response.output_text.delta", **where, "delta": reply.text})
    yield typed_event({"type": "response.output_item.done", "output_index": 0, "item": item})
    completed = {**response, "status": "completed", "usage": {**_USAGE, "total_tokens": 2}}
    yield typed_event({"type": "response.completed", "response": completed})


def _response() -> dict[str, Any]:
    return {"id": f"resp_{next(_NUMBERS)}", "object": "response", "model": "scripted", "output": []}


def _begun(item: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**item, "content": []} if item["type"] == "message" else item


def _item(reply: Reply) -> dict[str, Any]:
    number = next(_NUMBERS)
    if isinstance(reply, Say):
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        return {"type": "message", "role": "assistant", "id": f"msg_{number}", "content": content}
    call = {"id": f"item_{number}", "call_id": f"call_{number}", "name": reply.name}
    if reply.takes_text:
        return {"type": "custom_tool_call", **call, "input": reply.arguments["input"]}
    return {"type": "function_call", **call, "arguments": json.dumps(reply.arguments)}
