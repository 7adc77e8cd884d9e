"""The code hosts whose pull requests are followed, with a token for each."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from pydantic import Field

from bot.jobapi.settings import ApiKey, BaseUrl
from bot.runtime.rotating_secrets import RotatingSecret
from bot.runtime.settings import Settings

GITHUB = "https://github.com"


@dataclass(frozen=True)
class CodeHostSettings:
    """A code host: the address that its links begin with, and a token that may read pull requests there."""

    url: str
    token: RotatingSecret

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
        description="a token that may read pull requests there, with their checks, statuses and deployments; without "
        "one, and with a job API that does not tell them (JOB_API_PULL_REQUEST), their news is not told",
    )

    code_host_webhook_secret: ApiKey | None = Field(
        default=None,
        alias="CODE_HOST_WEBHOOK_SECRET",
        description="with HTTP: the secret of the code host's webhook, which makes news of pull requests come at once; "
        "without one, POST /webhooks/github is not served",
    )
