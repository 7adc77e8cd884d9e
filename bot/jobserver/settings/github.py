"""Settings for pull requests at GitHub."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationInfo, field_validator

from bot.runtime.http.proxies import is_this_machine
from bot.runtime.settings import Settings, listed

_NAME = re.compile(r"[\w.-]{1,100}", re.ASCII)
_SCP_LIKE = re.compile(r"(?:[\w.-]+@)?([\w.-]+):([^:]+)", re.ASCII)
_PUBLIC_HOSTS = {"github.com", "www.github.com", "ssh.github.com"}
_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,80}")


@dataclass(frozen=True)
class GitHubAddress:
    """A repository at GitHub or GitHub Enterprise. `host` includes a port that is not the default."""

    scheme: str
    host: str
    owner: str
    name: str

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def api_url(self) -> str:
        """The REST API's address for github.com, Enterprise Cloud (ghe.com) or Enterprise Server."""
        if self.host in _PUBLIC_HOSTS:
            return "https://api.github.com"
        if self.host.endswith(".ghe.com"):
            return f"https://api.{self.host}"
        return f"{self.scheme}://{self.host}/api/v3"


def github_address(repository: str) -> GitHubAddress | None:
    """Returns the repository that an https, http or ssh address names; None if it cannot be at GitHub."""
    scp_like = _SCP_LIKE.fullmatch(repository)
    if "://" not in repository and scp_like:
        return _address("https", scp_like[1], scp_like[2])
    try:
        parts = urlsplit(repository)
        host = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
    except ValueError:
        return None
    if parts.scheme in {"http", "https"}:
        return _address(parts.scheme, host, parts.path)
    # The port for ssh says nothing about the API's port.
    return _address("https", parts.hostname, parts.path) if parts.scheme in {"ssh", "git+ssh"} else None


def is_private(url: str) -> bool:
    """Returns whether nobody can read the traffic to the address: https, or http to this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and is_this_machine(parts.hostname or ""))


def _address(scheme: str, host: str | None, path: str) -> GitHubAddress | None:
    names = path.strip("/").removesuffix(".git").split("/")
    if not host or len(names) != 2 or not all(map(_NAME.fullmatch, names)):  # noqa: PLR2004 - owner and name
        return None
    return GitHubAddress(scheme, host.lower(), *names)


def _token(value: SecretStr) -> SecretStr:
    token = value.get_secret_value()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError("must be one word, as GitHub shows it once")
    return value


def _private_key(value: SecretStr) -> SecretStr:
    # Only an App needs them.
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - as said above
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey  # noqa: PLC0415 - as said above
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415 - as said above

    pem = value.get_secret_value().replace("\\n", "\n")  # variables often contain it on one line
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, RSAPrivateKey):
        raise ValueError("must be an RSA key in PEM format without a password")  # noqa: TRY004 - pydantic's own way
    return SecretStr(pem)


def _pairs(value: object) -> object:
    """Reads comma-separated name=login pairs."""
    if not isinstance(value, str):
        return value
    pairs = (part.rpartition("=") for part in value.split(",") if part.strip())
    return {name.strip(): login.strip() for name, _, login in pairs}


def _users(value: Mapping[str, str]) -> Mapping[str, str]:
    if not all(name and _LOGIN.fullmatch(login) for name, login in value.items()):
        raise ValueError("must be pairs of a name or id and a GitHub login, such as Ada Lovelace=ada,U02ABC=grace")
    return value


class GitHubSettings(Settings):
    """Pull requests at GitHub. A validator sees only the fields above its own."""

    github_token: Annotated[SecretStr, AfterValidator(_token)] | None = Field(
        None,
        description="a personal access token that may write the repository's contents and pull requests",
    )
    github_app_id: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9_.-]{1,100}$",  # pydantic would need 10 MB for \w
        description="the App ID or client ID of a GitHub App that is installed for the repository, instead of a token",
    )
    github_app_private_key: Annotated[SecretStr, AfterValidator(_private_key)] | None = Field(
        None, validate_default=True, description="the App's private key: the .pem file that GitHub offers once"
    )
    pull_requests: Literal["local", "github"] | None = Field(
        None,
        validate_default=True,
        description="github opens them at GitHub, local keeps them on this server's own pages; "
        "by default github if a token or an App is set, else local",
    )
    draft: bool = Field(default=False, description="whether pull requests at GitHub are opened as drafts")
    labels: Annotated[tuple[Annotated[str, Field(max_length=50)], ...], BeforeValidator(listed)] = Field(
        (), description="comma-separated labels for pull requests at GitHub"
    )
    previews: Annotated[tuple[str, ...], BeforeValidator(listed)] = Field(
        (),
        description="comma-separated names of what leads to a preview, as in CODE_HOST_PREVIEWS",
    )
    github_users: Annotated[Mapping[str, str], BeforeValidator(_pairs), AfterValidator(_users)] = Field(
        {}, description="GitHub logins of requesters, as name=login or id=login; they are asked for review"
    )

    @field_validator("github_app_id")
    @classmethod
    def _is_no_second_identity(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value and info.data.get("github_token"):
            raise ValueError("and a token cannot both be used: give one of them")
        return value

    @field_validator("github_app_private_key")
    @classmethod
    def _belongs_to_an_app(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        app = info.data.get("github_app_id")
        if app and not value:
            raise ValueError("is missing")
        if value and not app and "github_app_id" in info.data:
            raise ValueError("is of no use without the App's ID")
        return value

    @field_validator("pull_requests")
    @classmethod
    def _can_be_opened(cls, value: str | None, info: ValidationInfo) -> str:
        given = [name for name in ("github_token", "github_app_id") if info.data.get(name)]
        broken = {"github_token", "github_app_id", "github_app_private_key"} - info.data.keys()
        if value == "github" and not given and not broken:
            raise ValueError("is github, which needs a token or an App")
        return value or ("github" if given else "local")

    @field_validator("repository", check_fields=False)
    @classmethod
    def _is_at_github(cls, value: str, info: ValidationInfo) -> str:
        has_credentials = info.data.get("github_token") or info.data.get("github_app_id")
        if info.data.get("pull_requests") == "github" and github_address(value) is None:
            raise ValueError("is not a repository at GitHub, such as https://github.com/acme/docs.git")
        if has_credentials and value.startswith("http:") and not is_private(value):
            raise ValueError("must begin with https: over http, GitHub's token could be read in transit")
        return value
