"""Gemini's generateContent and streamGenerateContent."""

from collections.abc import Iterator, Mapping
from typing import Any

from support.servers.model_script import ModelRequest, Part, Reply, Say, Speaker
from support.servers.model_wire.sse import event, text_of

_USAGE = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}


def parse(body: Mapping[str, Any], key: str, *, stream: bool) -> ModelRequest:
    """Reads a request; its path says whether the answer is streamed."""
    declared = [tool for tools in body.get("tools", ()) for tool in tools.get("functionDeclarations", ())]
    tools = {tool["name"]: tool.get("parametersJsonSchema") or tool.get("parameters") for tool in declared}
    configuration = body.get("generationConfig", {})
    schema = configuration.get("responseJsonSchema") or configuration.get("responseSchema")
    parts = [_part(content, part) for content in body["contents"] for part in content.get("parts", ())]
    return ModelRequest(parts, tools, schema, stream, key)


def _part(content: Mapping[str, Any], part: Mapping[str, Any]) -> Part:
    if "functionResponse" in part:
        return Part(Speaker.TOOL, text_of(part["functionResponse"].get("response")))
    return Part(Speaker.MODEL if content.get("role") == "model" else Speaker.USER, text_of(part))


def whole(reply: Reply) -> Mapping[str, Any]:
    """The answer in one piece."""
    content = {"role": "model", "parts": [_reply_part(reply)]}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": _USAGE, "modelVersion": "scripted"}


def stream(reply: Reply) -> Iterator[bytes]:
    """The answer as events."""
    yield event(whole(reply))


def failure(status: int, message: str) -> Mapping[str, Any]:
    """The body of an error."""
    return {"error": {"code": status, "message": message, "status": "UNAUTHENTICATED" if status == 401 else "INTERNAL"}}


def _reply_part(reply: Reply) -> Mapping[str, Any]:
    if isinstance(reply, Say):
        return {"text": reply.text}
    return {"functionCall": {"name": reply.name, "args": dict(reply.arguments)}}
