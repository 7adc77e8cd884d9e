"""OpenAI's responses and chat completions, and compatible APIs.

Tools that run at OpenAI (search, files, code, images, remote MCP servers) are refused, as is everything stored there
that another job could read: responses, conversations, prompts and files. Content must be inline.
"""

import re

from bot.jobserver.egress.model_api import BEARER, ModelApi
from bot.jobserver.egress.request_rules import ANYTHING, InlineData, Kinds, Values, fields, names, within

_BOTH = (
    "max_tokens metadata model parallel_tool_calls prompt_cache_key prompt_cache_retention reasoning safety_identifier "
    "service_tier store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity "
)
_TOOL = (
    "allowed_callers cache_control custom defer_loading description format function name output_schema parameters "
    "strict tools type "
)
_ITEM = fields("id internal_chat_message_metadata_passthrough phase role status type", content="content")
_PICTURE = fields("cache_control detail type", image_url="data")
OPENAI = ModelApi(
    name="openai",
    prefix="/v1",
    address="https://api.openai.com/v1",
    header=BEARER,
    key_variable="OPENAI_API_KEY",
    address_variable="OPENAI_BASE_URL",
    suffix="/v1",
    account_headers={"OPENAI_ORGANIZATION": "OpenAI-Organization", "OPENAI_PROJECT": "OpenAI-Project"},
    requests={"/responses(?:/compact)?": "responses request", "/chat/completions": "chat request"},
    shapes={
        "responses request": fields(
            f"{_BOTH} background client_metadata context_management include instructions max_output_tokens "
            "max_tool_calls text truncation",
            input="item of the input",
        ),
        "item of the input": Kinds(
            "item of the input",
            {
                "message": _ITEM,
                "(?:custom_tool|function)_call_output": within(output="content"),
                "additional_tools|compaction(?:_summary|_trigger)?|context_compaction|custom_tool_call|function_call|"
                "reasoning|(?:apply_patch|local_shell|shell)_call(?:_output)?|tool_search_(?:call|output)": ANYTHING,
            },
            untyped=_ITEM,
            may_be_text=True,
        ),
        "chat request": fields(
            f"{_BOTH} frequency_penalty function_call functions logit_bias logprobs max_completion_tokens n prediction "
            "presence_penalty reasoning_effort response_format seed stop usage "
            # OpenRouter's: the choice of provider, and how much the model thinks.
            "include_reasoning provider transforms",
            messages="message",
            modalities="modality",
        ),
        "message": fields(
            "annotations cache_control function_call name reasoning reasoning_content reasoning_details refusal role "
            "tool_call_id tool_calls",
            content="content",
        ),
        "modality": Values("modality", (None, "text")),
        "content": Kinds(
            "content",
            {
                "encrypted_content|input_audio|(?:input_|output_|reasoning_|summary_)?text|refusal": ANYTHING,
                "image_url|input_image": _PICTURE,
                "input_file": fields("filename type", file_data="data"),
                "file": within(file="file"),
            },
            may_be_text=True,
        ),
        "file": fields("filename", file_data="data"),
        "data": InlineData(),
        # Those that the agent executes itself, and lists of these.
        "tool": Kinds(
            "tool",
            {
                "apply_patch|custom|function|local_shell|namespace": fields(f"{_TOOL} execution"),
                "tool_search": fields(_TOOL, execution="place of a tool"),
            },
            is_closed=True,
        ),
        "place of a tool": Values("place of a tool", ("client",)),
    },
    opaque=names("annotations arguments client_metadata env logit_bias metadata output_schema parameters schema"),
    ends=re.compile(rb'"finish_reason"\s*:\s*"|"type"\s*:\s*"response\.(?:completed|incomplete)"|\[DONE\]'),
    sent=("input_tokens", "prompt_tokens"),
    answered=("output_tokens", "completion_tokens"),
)
