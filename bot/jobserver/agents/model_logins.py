"""The variables with the key and address of each named agent's model."""

from collections.abc import Callable, Iterable, Mapping

from bot.jobserver.egress.anthropic import ANTHROPIC
from bot.jobserver.egress.gemini import GEMINI
from bot.jobserver.egress.model_api import BEARER, ModelApi
from bot.jobserver.egress.model_login import ModelLogin, Read
from bot.jobserver.egress.openai import OPENAI, OPENROUTER

LoginRule = Callable[[Read, str | None], ModelLogin | None]
"""Finds a login in the server's variables, given the model setting; None if there is none for the relay."""
_OPENAI_HEADERS = {"OPENAI_ORGANIZATION": "OpenAI-Organization", "OPENAI_PROJECT": "OpenAI-Project"}
_OPENCODE_PROVIDERS: Mapping[str, tuple[ModelApi, tuple[str, ...]]] = {
    "anthropic": (ANTHROPIC, ("ANTHROPIC_API_KEY",)),
    "openai": (OPENAI, ("OPENAI_API_KEY",)),
    "google": (GEMINI, ("GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY")),
    "openrouter": (OPENROUTER, ("OPENROUTER_API_KEY",)),
}
_GOOSE_PROVIDERS: Mapping[str, tuple[ModelApi, str, str]] = {
    "anthropic": (ANTHROPIC, "ANTHROPIC_API_KEY", "ANTHROPIC_HOST"),
    "openai": (OPENAI, "OPENAI_API_KEY", "OPENAI_HOST"),
    "google": (GEMINI, "GOOGLE_API_KEY", "GOOGLE_HOST"),
    "openrouter": (OPENROUTER, "OPENROUTER_API_KEY", "OPENROUTER_HOST"),
}


def no_login(_: Read, __: str | None) -> None:
    return None


def claude_login(read: Read, _: str | None) -> ModelLogin | None:
    """Uses the first key that is set, in Claude Code's own order."""
    keys = "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"
    return _login(read, ANTHROPIC, keys, "ANTHROPIC_BASE_URL")


def codex_login(read: Read, _: str | None) -> ModelLogin | None:
    return _login(read, OPENAI, ("CODEX_API_KEY", "OPENAI_API_KEY"), "OPENAI_BASE_URL", suffix=OPENAI.prefix)


def gemini_login(read: Read, _: str | None) -> ModelLogin | None:
    return _login(read, GEMINI, ("GEMINI_API_KEY", "GOOGLE_API_KEY"), "GOOGLE_GEMINI_BASE_URL")


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
    api, key, address_variable = _GOOSE_PROVIDERS[provider]
    return _login(read, api, (key,), address_variable)


def _login(
    read: Read,
    api: ModelApi,
    keys: Iterable[str],
    address_variable: str,
    *,
    suffix: str = "",
) -> ModelLogin | None:
    name = next((name for name in keys if read(name)), None)
    if name is None:
        return None
    optional = {header: read(variable) for variable, header in _OPENAI_HEADERS.items()} if api is OPENAI else {}
    headers = {header: value for header, value in optional.items() if value}
    header = BEARER if name.endswith("_TOKEN") else api.header
    return ModelLogin(api, header, name, address_variable, read(address_variable), suffix, headers)
