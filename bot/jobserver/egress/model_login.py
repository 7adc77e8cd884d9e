"""How a program logs in to its model, which the relay does on its behalf."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from bot.errors import ConfigError
from bot.jobserver.egress.anthropic import ANTHROPIC
from bot.jobserver.egress.gemini import GEMINI
from bot.jobserver.egress.model_api import BEARER, ModelApi
from bot.jobserver.egress.openai import OPENAI
from bot.jobserver.egress.upstream_proxy import proxy_for
from bot.jobserver.errors import JobServerError
from bot.jobserver.settings.agent import ModelSettings

Read = Callable[[str], str]
"""Returns the value of a server variable, or of the file that `<name>_FILE` names; empty if neither is set."""


@dataclass(frozen=True)
class ModelLogin:
    """How to reach a model, which the sandbox does not know.

    `key_variable` contains the real key for the server, read again each time, and a token for the agent. `header` is
    where the API expects it, `address` the API's address for the server, empty for the provider's own. `model` is the
    setting. `headers` go with every request.
    """

    api: ModelApi
    header: str
    key_variable: str
    read: Read = field(repr=False)
    address: str = ""
    model: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

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
                f"{self.api.address_variable} must be an address without a password, such as https://models.example.com"
            )
        try:
            proxy_for(self.upstream)
        except ConfigError as error:
            raise JobServerError(str(error)) from None

    def variables(self, address: str, key: str) -> dict[str, str]:
        """Returns the variables in which the API's own libraries find address and key."""
        return {self.api.address_variable: address, self.key_variable: key}


APIS = {api.name: api for api in (ANTHROPIC, OPENAI, GEMINI)}


def login_of(settings: ModelSettings, model: str | None = None) -> ModelLogin | None:
    """Returns the login of a program that finds its key and address in the variables of the API's own libraries."""
    if settings.model_api is None:
        return None
    of, address = APIS[settings.model_api], settings.model_url or ""
    return ModelLogin(
        of, settings.model_key_header or of.header, of.key_variable, settings.read_model_key, address, model
    )


def login_with(api: ModelApi, keys: Iterable[str], read: Read, model: str | None) -> ModelLogin | None:
    """Returns the login by the first of some variables that is set, or None; tokens have a header of their own."""
    name = next(filter(read, keys), None)
    if name is None:
        return None
    headers = {header: value for variable, header in api.account_headers.items() if (value := read(variable))}
    header = BEARER if name.endswith("_TOKEN") else api.header
    return ModelLogin(api, header, name, read, read(api.address_variable), model, headers)
