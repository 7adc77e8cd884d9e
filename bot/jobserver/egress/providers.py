"""The providers of models, each API as data, and how a program logs in to one, which the relay does on its behalf.

Tools that run at a provider (search, fetch, code, files, remote MCP servers) are refused, as is everything stored there
that another job could read. Content must be inline: no URLs and no file ids.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from bot.errors import ConfigError
from bot.jobserver.egress.model_api import BEARER, MODEL_ID, ModelApi, query
from bot.jobserver.egress.request_rules import ANYTHING, InlineData, Kinds, Values, fields, names, within
from bot.jobserver.egress.upstream_proxy import proxy_for
from bot.jobserver.errors import JobServerError
from bot.jobserver.settings.agent import ModelSettings
from bot.jobserver.settings.values import PREFIX

_ANTHROPIC_TOOL = fields(
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
    # Unknown tools can also be added in the middle of a conversation.
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
        "tool": Kinds(
            "tool",
            {r"custom|(?:bash|text_editor|memory)_\d{8}": _ANTHROPIC_TOOL},
            untyped=_ANTHROPIC_TOOL,
            is_closed=True,
        ),
        "caller": Values("caller of a tool", (None, "direct")),  # others are code that runs at Anthropic
    },
    opaque=names("input input_examples input_schema schema"),
    ends=re.compile(rb'"type"\s*:\s*"message_stop"'),
    sent=("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    answered=("output_tokens",),
    companions=re.compile(r"claude-(?:[0-9.-]+-)?haiku(?:-[0-9A-Za-z.-]+)?"),
)
# Its parser accepts each name in two spellings (`google_search`, `googleSearch`). A tool is a name without a type, even
# if its object is empty.
GEMINI = ModelApi(
    name="gemini",
    prefix="/v1beta",
    address="https://generativelanguage.googleapis.com/v1beta",
    header="x-goog-api-key",
    key_variable="GEMINI_API_KEY",
    address_variable="GOOGLE_GEMINI_BASE_URL",
    requests={
        rf"/models/(?P<model>{MODEL_ID}):(?:generateContent|streamGenerateContent){query('alt')}": "request",
        rf"/models/(?P<model>{MODEL_ID}):countTokens": "request",
    },
    shapes={
        "request": fields(
            "generationConfig model safetySettings serviceTier toolConfig tools",
            contents="content",
            systemInstruction="content",
            generateContentRequest="request",  # of countTokens
        ),
        "content": fields("role", may_be_text=True, parts="part"),
        "part": fields(
            "functionCall inlineData mediaResolution partMetadata text thought thoughtSignature videoMetadata",
            may_be_text=True,
            functionResponse="response",
        ),
        "response": within(parts="part of a response"),
        "part of a response": fields("inlineData"),
        "tool": fields("functionDeclarations", is_closed=True),
    },
    # A tool's input and output, and schemas.
    opaque=names("args parameters parametersJsonSchema response responseJsonSchema responseSchema"),
    ends=re.compile(rb'"finishReason"\s*:\s*"'),
    sent=("promptTokenCount",),
    answered=("candidatesTokenCount", "thoughtsTokenCount"),
    companions=re.compile(r"gemini-[0-9.]+-flash(?:-lite)?(?:-[0-9A-Za-z.-]+)?"),
)
_OPENAI_REQUEST = (
    "max_tokens metadata model parallel_tool_calls prompt_cache_key prompt_cache_retention reasoning safety_identifier "
    "service_tier store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity "
)
_OPENAI_TOOL = (
    "allowed_callers cache_control custom defer_loading description format function name output_schema parameters "
    "strict tools type "
)
_OPENAI_ITEM = fields("id internal_chat_message_metadata_passthrough phase role status type", content="content")
_OPENAI_PICTURE = fields("cache_control detail type", image_url="data")
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
            f"{_OPENAI_REQUEST} background client_metadata context_management include instructions max_output_tokens "
            "max_tool_calls text truncation",
            input="item of the input",
        ),
        "item of the input": Kinds(
            "item of the input",
            {
                "message": _OPENAI_ITEM,
                "(?:custom_tool|function)_call_output": within(output="content"),
                "additional_tools|compaction(?:_summary|_trigger)?|context_compaction|custom_tool_call|function_call|"
                "reasoning|(?:apply_patch|local_shell|shell)_call(?:_output)?|tool_search_(?:call|output)": ANYTHING,
            },
            untyped=_OPENAI_ITEM,
            may_be_text=True,
        ),
        "chat request": fields(
            f"{_OPENAI_REQUEST} frequency_penalty function_call functions logit_bias logprobs max_completion_tokens n "
            "prediction presence_penalty reasoning_effort response_format seed stop usage "
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
                "image_url|input_image": _OPENAI_PICTURE,
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
                "apply_patch|custom|function|local_shell|namespace": fields(f"{_OPENAI_TOOL} execution"),
                "tool_search": fields(_OPENAI_TOOL, execution="place of a tool"),
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
Read = Callable[[str], str]
"""Returns the value of a server variable, or of the file that `<name>_FILE` names; empty if neither is set."""


@dataclass(frozen=True)
class ModelLogin:
    """How to reach a model, which the sandbox does not know.

    `key_variable` contains the real key for the server, read again each time, and a token for the agent. `header` is
    where the API expects it, `address` the API's address for the server, empty for the provider's own. `model` is the
    setting, `choices` those that may take its place. `headers` go with every request. `own` are the variables by which
    the program logs in itself.
    """

    api: ModelApi
    header: str
    key_variable: str
    read: Read = field(repr=False)
    address: str = ""
    model: str | None = None
    choices: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    own: frozenset[str] = frozenset()

    def key(self) -> str:
        """Returns the key. Raises ConfigError if it is missing, or its file cannot be read."""
        if found := self.read(self.key_variable):
            return found
        raise ConfigError([f"{self.key_variable} is missing"])

    @property
    def upstream(self) -> str:
        """The API's address including its version, which some agents add themselves."""
        address, version = self.address.rstrip("/"), self.api.prefix
        if not address:
            return self.api.address
        return address if self.api.suffix or address.endswith(version) else f"{address}{version}"

    @property
    def plain_address(self) -> str:
        """The API's address as its own libraries expect it."""
        return self.upstream if self.api.suffix else self.upstream.removesuffix(self.api.prefix)

    def check_address(self) -> None:
        """Raises JobServerError if the address is invalid or contains a password, or if its proxy cannot be used."""
        try:
            parts = urlsplit(self.upstream)
            is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_address = False
        if not is_address or set("@?# ") & set(self.upstream) or not self.upstream.isascii():
            raise JobServerError(
                f"{PREFIX}MODEL_URL or {self.api.address_variable} must be an address without a password, "
                "such as https://models.example.com"
            )
        try:
            proxy_for(self.upstream)
        except ConfigError as error:
            raise JobServerError(str(error)) from None

    def variables(self, address: str, key: str) -> dict[str, str]:
        """Returns the variables in which the API's own libraries find address and key."""
        return {self.api.address_variable: address, self.key_variable: key}

    def removed_from(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Returns what the program may get of some variables: not those of its login, or with the key in them."""
        key = self.read(self.key_variable)
        return {name: value for name, value in variables.items() if name not in self.own and not (key and key in value)}


APIS = {api.name: api for api in (ANTHROPIC, OPENAI, GEMINI)}


def login_of(settings: ModelSettings, model: str | None = None) -> ModelLogin | None:
    """Returns the login of a program that finds its key and address in the variables of the API's own libraries."""
    if settings.model_api is None:
        return None
    of, key, address = APIS[settings.model_api], settings.model_key, settings.model_url or ""
    header = settings.model_key_header or of.header
    return ModelLogin(of, header, of.key_variable, lambda _: key.newest if key else "", address, model)


def login_with(api: ModelApi, keys: Iterable[str], read: Read) -> ModelLogin | None:
    """Returns the login by the first of some variables that is set, or None; tokens have a header of their own."""
    name = next(filter(read, keys), None)
    if name is None:
        return None
    headers = {header: value for variable, header in api.account_headers.items() if (value := read(variable))}
    header = BEARER if name.endswith("_TOKEN") else api.header
    return ModelLogin(api, header, name, read, read(api.address_variable), headers=headers)
