"""The code hosts whose pull requests are followed, with a token for each."""

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field

from bot.jobapi.settings import ApiKey, BaseUrl
from bot.runtime.rotating_secrets import RotatingSecret
from bot.runtime.settings import Settings, listed

GITHUB = "https://github.com"
Patterns = Annotated[tuple[str, ...], BeforeValidator(listed)]


@dataclass(frozen=True)
class CodeHostSettings:
    """A code host: the address that its links begin with, a token that may read pull requests there, and patterns for
    the names of what leads to a preview.
    """

    url: str
    token: RotatingSecret
    previews: tuple[str, ...] = ()

    @property
    def api_url(self) -> str:
        """The REST API's address at github.com, at Enterprise Cloud (ghe.com) or Enterprise Server."""
        host = urlsplit(self.url).hostname or ""
        if self.url == GITHUB:
            return "https://api.github.com"
        return f"https://api.{host}" if host.endswith(".ghe.com") else f"{self.url}/api/v3"


class CodeHostVariables(Settings):
    """The one code host that needs no projects file."""

    code_host_url: BaseUrl = Field(
        default=GITHUB, alias="CODE_HOST_URL", description="the address that the links of pull requests begin with"
    )
    code_host_token: ApiKey | None = Field(
        default=None,
        alias="CODE_HOST_TOKEN",
        description="a token that may read pull requests there; not needed with JOB_API_PULL_REQUEST",
    )

    code_host_webhook_secret: ApiKey | None = Field(
        default=None,
        alias="CODE_HOST_WEBHOOK_SECRET",
        description="with HTTP: the secret of the code host's webhook, which brings news of pull requests at once",
    )
    code_host_previews: Patterns = Field(
        default=(),
        alias="CODE_HOST_PREVIEWS",
        description="comma-separated names of deployments, check runs and statuses that lead to a preview, such as "
        "Deploy Preview*,netlify/*; without any, all deployments do",
    )
