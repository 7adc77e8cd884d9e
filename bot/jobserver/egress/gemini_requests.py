"""Checks requests to Gemini's `generateContent` and related methods.

Its parser accepts each name in two spellings (`google_search`, `googleSearch`), so both are allowed together; unknown
names are refused. Content must be inline: no URLs, no files, nothing cached for other jobs.
"""

from collections.abc import Mapping
from typing import Any

from bot.jobserver.egress.refused_requests import Refusals, as_list, fields, malformed

_CONTENT_FIELDS = frozenset({"parts", "role"})


def _spellings(*names: str) -> frozenset[str]:
    """Returns the names in camel case and in snake case."""
    return frozenset({*names, *("".join(f"_{c.lower()}" if c.isupper() else c for c in name) for name in names)})


_FIELDS = _spellings(
    "contents", "generationConfig", "model", "safetySettings", "serviceTier", "systemInstruction", "toolConfig", "tools"
)
_TOOL_FIELDS = _spellings("functionDeclarations")
_PART_FIELDS = _spellings(
    "functionCall", "functionResponse", "inlineData", "mediaResolution", "partMetadata", "text", "thought",
    "thoughtSignature", "videoMetadata",
)  # fmt: skip
_RESPONSE = _spellings("functionResponse")
_RESPONSE_PARTS = _spellings("inlineData")


def check_generation(body: Mapping[str, Any]) -> Refusals:
    """Yields the refusals of a body for `generateContent` and `streamGenerateContent`."""
    yield from fields(body, _FIELDS)
    for tool in as_list(body.get("tools")):
        yield from fields(tool, _TOOL_FIELDS) if isinstance(tool, dict) else [malformed("a tool")]
    instruction = (body.get(name) for name in _spellings("systemInstruction"))
    for content in [*as_list(body.get("contents")), *filter(None, instruction)]:
        yield from _content(content)


def check_count(body: Mapping[str, Any]) -> Refusals:
    """Yields the refusals of a body for `countTokens`, which can contain a whole generation request."""
    names = _spellings("generateContentRequest")
    for name in names & body.keys():
        whole = body[name]
        yield from check_generation(whole) if isinstance(whole, dict) else [malformed("the request to count")]
    yield from check_generation({name: value for name, value in body.items() if name not in names})


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
