"""How an agent logs in to its model, which the relay does on its behalf."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from bot.errors import ConfigError
from bot.jobserver.egress.anthropic import ANTHROPIC
from bot.jobserver.egress.gemini import GEMINI
from bot.jobserver.egress.model_api import ModelApi
from bot.jobserver.egress.model_relay import ModelAccess
from bot.jobserver.egress.model_requests import ModelNames, RequestPolicy
from bot.jobserver.egress.openai import OPENAI
from bot.jobserver.egress.upstream_proxy import proxy_for
from bot.jobserver.errors import JobServerError

Read = Callable[[str], str]
"""Returns the value of a server variable, or of the file that `<name>_FILE` names; empty if neither is set."""


@dataclass(frozen=True)
class ModelLogin:
    """`key_variable` contains the real key for the server, and a token for the agent.

    `address` is the API's address for the server, empty for the provider's own. The agent gets the relay's address,
    plus `suffix`, in `address_variable`. `headers` go with every request.
    """

    api: ModelApi
    header: str
    key_variable: str
    address_variable: str
    address: str = ""
    suffix: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def upstream(self) -> str:
        """The API's address including its version, which some agents add themselves."""
        address, version = self.address.rstrip("/"), self.api.prefix
        if not address:
            return self.api.address
        return address if self.suffix or address.endswith(version) else f"{address}{version}"

    def check_address(self) -> None:
        """Raises JobServerError if the address is invalid or contains a password, or if its proxy cannot be used."""
        try:
            parts = urlsplit(self.upstream)
            is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_address = False
        if not is_address or set("@?# ") & set(self.upstream) or not self.upstream.isascii():
            raise JobServerError(
                f"{self.address_variable} must be an address without a password, such as https://models.example.com"
            )
        try:
            proxy_for(self.upstream)
        except ConfigError as error:
            raise JobServerError(str(error)) from None

    def access(self, read: Read, model: str | None) -> ModelAccess:
        """Returns what the relay needs; `model` is the setting."""

        def key() -> str:
            if found := read(self.key_variable):
                return found
            raise ConfigError([f"{self.key_variable} is missing"])

        policy = RequestPolicy(self.api, ModelNames(model, self.api.companions))
        return ModelAccess(policy, self.upstream, self.header, key, self.headers)

    def variables(self, relay: str, token: str) -> dict[str, str]:
        """Returns the variables that give the agent the relay's address and its token there."""
        return {self.address_variable: f"{relay}{self.suffix}", self.key_variable: token}


APIS = {api.name: api for api in (ANTHROPIC, OPENAI, GEMINI)}


def login_of(api: Literal["anthropic", "openai", "gemini"], address: str) -> ModelLogin:
    """Returns the login of a program that finds its key and address in the variables of the API's own libraries."""
    of = APIS[api]
    return ModelLogin(of, of.header, of.key_variable, of.address_variable, address, of.suffix)
