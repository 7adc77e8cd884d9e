"""Anthropic's messages API.

Tools that run at Anthropic (search, fetch, code, remote MCP servers) are refused, as are unknown ones; they can also be
added in the middle of a conversation. Content must be inline: no URLs and no file ids.
"""

import re

from bot.jobserver.egress.model_api import ModelApi, query
from bot.jobserver.egress.request_rules import ANYTHING, Kinds, Values, fields, names, within

_TOOL = fields(
    "cache_control defer_loading description eager_input_streaming input_examples input_schema max_characters name "
    "strict type",
    allowed_callers="caller",
)
ANTHROPIC = ModelApi(
    name="anthropic",
    prefix="/v1",
    address="https://api.anthropic.com/v1",
    header="x-api-key",
    key_variable="ANTHROPIC_API_KEY",
    address_variable="ANTHROPIC_BASE_URL",
    requests={rf"/messages(?:/count_tokens)?{query('beta')}": "request"},
    shapes={
        "request": fields(
            "cache_control context_management max_tokens metadata model output_config output_format service_tier speed "
            "stop_sequences stream temperature thinking tool_choice tools top_k top_p",
            messages="message",
            system="content",
        ),
        "message": fields("cache_control output_config role", content="content"),
        "content": Kinds(
            "content",
            {
                "redacted_thinking|text|thinking|tool_reference|tool_use": ANYTHING,
                "search_result|tool_result": within(content="content"),
                "document|image": within(source="source"),
                "tool_addition|tool_removal": within(tool="changed tool"),
            },
            may_be_text=True,
        ),
        "source": Kinds(
            "source of a content", {"base64|text": ANYTHING, "content": within(content="content")}, is_closed=True
        ),
        "changed tool": Kinds(
            "tool", {"tool_definition": within(definition="tool"), "tool_reference": ANYTHING}, is_closed=True
        ),
        # Those that the agent executes itself.
        "tool": Kinds("tool", {r"custom|(?:bash|text_editor|memory)_\d{8}": _TOOL}, untyped=_TOOL, is_closed=True),
        "caller": Values("caller of a tool", (None, "direct")),  # others are code that runs at Anthropic
    },
    opaque=names("input input_examples input_schema schema"),
    ends=re.compile(rb'"type"\s*:\s*"message_stop"'),
    sent=("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    answered=("output_tokens",),
    companions=re.compile(r"claude-(?:[0-9.-]+-)?haiku(?:-[0-9A-Za-z.-]+)?"),
)
