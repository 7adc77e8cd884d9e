"""Checks requests to Gemini's `generateContent` and related methods.

Its parser accepts each name in two spellings (`google_search`, `googleSearch`), so both are known together. A tool is a
name without a type, even if its object is empty. Content must be inline: no URLs, no files, nothing cached for other
jobs.
"""

from collections.abc import Mapping
from typing import Any

from bot.jobserver.egress.refused_requests import (
    Refusals,
    anywhere,
    as_list,
    fields,
    malformed,
    only_fields,
    spellings,
)

_CONTENT_FIELDS = frozenset({"parts", "role"})


_FIELDS = spellings(
    "contents", "generationConfig", "model", "safetySettings", "serviceTier", "systemInstruction", "toolConfig", "tools"
)
_TOOL_FIELDS = spellings("functionDeclarations")
_PART_FIELDS = spellings(
    "functionCall", "functionResponse", "inlineData", "mediaResolution", "partMetadata", "text", "thought",
    "thoughtSignature", "videoMetadata",
)  # fmt: skip
_OPAQUE = spellings("args", "parameters", "parametersJsonSchema", "response", "responseJsonSchema", "responseSchema")
"""Content that Gemini does not interpret: a tool's input and output, and schemas."""
_RESPONSE = spellings("functionResponse")
_RESPONSE_PARTS = spellings("inlineData")


def check_generation(body: Mapping[str, Any]) -> Refusals:
    """Yields the refusals of a body for `generateContent` and `streamGenerateContent`."""
    yield from fields(body, _FIELDS)
    instruction = (body.get(name) for name in spellings("systemInstruction"))
    for content in [*as_list(body.get("contents")), *filter(None, instruction)]:
        yield from _content(content)
    yield from anywhere(body, _OPAQUE, _tool)


def check_count(body: Mapping[str, Any]) -> Refusals:
    """Yields the refusals of a body for `countTokens`, which can contain a whole generation request."""
    names = spellings("generateContentRequest")
    for name in names & body.keys():
        whole = body[name]
        yield from check_generation(whole) if isinstance(whole, dict) else [malformed("the request to count")]
    yield from check_generation({name: value for name, value in body.items() if name not in names})


def _tool(tool: object) -> Refusals:
    yield from only_fields(tool, _TOOL_FIELDS) if isinstance(tool, dict) else [malformed("a tool")]


def _content(content: object) -> Refusals:
    if isinstance(content, str):
        return
    if not isinstance(content, dict):
        yield malformed("a content")
        return
    yield from fields(content, _CONTENT_FIELDS)
    for part in as_list(content.get("parts")):
        yield from _part(part)


def _part(part: object) -> Refusals:
    if isinstance(part, str):
        return
    if not isinstance(part, dict):
        yield malformed("a part")
        return
    yield from fields(part, _PART_FIELDS)
    for name in _RESPONSE & part.keys():
        inner = part[name].get("parts") if isinstance(part[name], dict) else None
        for each in as_list(inner):
            yield from fields(each, _RESPONSE_PARTS) if isinstance(each, dict) else [malformed("a part")]
