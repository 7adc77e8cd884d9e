"""The variables with the key and address of each named agent's model."""

import re
from collections.abc import Callable, Mapping

from bot.jobserver.egress.model_apis import ANTHROPIC, GEMINI, OPENAI, OPENROUTER, KeyHeader, ModelApi
from bot.jobserver.egress.model_login import ModelLogin, Read

LoginRule = Callable[[Read, str | None], ModelLogin | None]
"""Finds a login in the server's variables, given the model setting; None if there is none for the relay."""
_HAIKU = re.compile(r"claude-(?:[0-9.-]+-)?haiku(?:-[0-9A-Za-z.-]+)?")
_FLASH = re.compile(r"gemini-[0-9.]+-flash(?:-lite)?(?:-[0-9A-Za-z.-]+)?")
_OPENAI_HEADERS = {"OPENAI_ORGANIZATION": "OpenAI-Organization", "OPENAI_PROJECT": "OpenAI-Project"}
_OPENCODE_PROVIDERS: Mapping[str, tuple[ModelApi, Mapping[str, KeyHeader]]] = {
    "anthropic": (ANTHROPIC, {"ANTHROPIC_API_KEY": KeyHeader.ANTHROPIC}),
    "openai": (OPENAI, {"OPENAI_API_KEY": KeyHeader.BEARER}),
    "google": (GEMINI, dict.fromkeys(("GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"), KeyHeader.GOOGLE)),
    "openrouter": (OPENROUTER, {"OPENROUTER_API_KEY": KeyHeader.BEARER}),
}
_GOOSE_PROVIDERS: Mapping[str, tuple[ModelApi, Mapping[str, KeyHeader], str]] = {
    "anthropic": (ANTHROPIC, {"ANTHROPIC_API_KEY": KeyHeader.ANTHROPIC}, "ANTHROPIC_HOST"),
    "openai": (OPENAI, {"OPENAI_API_KEY": KeyHeader.BEARER}, "OPENAI_HOST"),
    "google": (GEMINI, {"GOOGLE_API_KEY": KeyHeader.GOOGLE}, "GOOGLE_HOST"),
    "openrouter": (OPENROUTER, {"OPENROUTER_API_KEY": KeyHeader.BEARER}, "OPENROUTER_HOST"),
}


def no_login(_: Read, __: str | None) -> None:
    return None


def claude_login(read: Read, _: str | None) -> ModelLogin | None:
    """Uses the first key that is set, in Claude Code's own order."""
    keys = {
        "ANTHROPIC_AUTH_TOKEN": KeyHeader.BEARER,
        "ANTHROPIC_API_KEY": KeyHeader.ANTHROPIC,
        "CLAUDE_CODE_OAUTH_TOKEN": KeyHeader.BEARER,
    }
    return _login(read, ANTHROPIC, keys, "ANTHROPIC_BASE_URL", companions=_HAIKU)


def codex_login(read: Read, _: str | None) -> ModelLogin | None:
    keys = dict.fromkeys(("CODEX_API_KEY", "OPENAI_API_KEY"), KeyHeader.BEARER)
    return _login(read, OPENAI, keys, "OPENAI_BASE_URL", suffix=OPENAI.prefix)


def gemini_login(read: Read, _: str | None) -> ModelLogin | None:
    keys = dict.fromkeys(("GEMINI_API_KEY", "GOOGLE_API_KEY"), KeyHeader.GOOGLE)
    return _login(read, GEMINI, keys, "GOOGLE_GEMINI_BASE_URL", companions=_FLASH)


def opencode_login(read: Read, model: str | None) -> ModelLogin | None:
    """Uses the provider in MODEL; opencode expects all addresses with the version."""
    provider = (model or "").partition("/")[0]
    if provider not in _OPENCODE_PROVIDERS:
        return None
    api, keys = _OPENCODE_PROVIDERS[provider]
    return _login(read, api, keys, f"{provider.upper()}_BASE_URL", suffix=api.prefix)


def goose_login(read: Read, _: str | None) -> ModelLogin | None:
    """Uses the provider in GOOSE_PROVIDER."""
    provider = read("GOOSE_PROVIDER")
    if provider not in _GOOSE_PROVIDERS:
        return None
    api, keys, address_variable = _GOOSE_PROVIDERS[provider]
    return _login(read, api, keys, address_variable)


def _login(
    read: Read,
    api: ModelApi,
    keys: Mapping[str, KeyHeader],
    address_variable: str,
    *,
    suffix: str = "",
    companions: re.Pattern[str] | None = None,
) -> ModelLogin | None:
    name = next((name for name in keys if read(name)), None)
    if name is None:
        return None
    optional = {header: read(variable) for variable, header in _OPENAI_HEADERS.items()} if api is OPENAI else {}
    headers = {header: value for header, value in optional.items() if value}
    return ModelLogin(api, keys[name], name, address_variable, read(address_variable), suffix, companions, headers)
