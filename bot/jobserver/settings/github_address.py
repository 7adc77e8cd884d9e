"""Which repository at GitHub an address names, and where its API is."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from bot.runtime.http.proxies import is_this_machine

_NAME = re.compile(r"[\w.-]{1,100}", re.ASCII)
_SCP_LIKE = re.compile(r"(?:[\w.-]+@)?([\w.-]+):([^:]+)", re.ASCII)
_PUBLIC_HOSTS = {"github.com", "www.github.com", "ssh.github.com"}


@dataclass(frozen=True)
class GitHubAddress:
    """A repository at GitHub or GitHub Enterprise. `host` has its port where it is not the usual one."""

    scheme: str
    host: str
    owner: str
    name: str

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def api_url(self) -> str:
        """Where the REST API is: github.com, Enterprise Cloud at a host of its own (ghe.com), Enterprise Server."""
        if self.host in _PUBLIC_HOSTS:
            return "https://api.github.com"
        if self.host.endswith(".ghe.com"):
            return f"https://api.{self.host}"
        return f"{self.scheme}://{self.host}/api/v3"


def github_address(repository: str) -> GitHubAddress | None:
    """Returns the repository that an https, http or ssh address names; None where it cannot be one at GitHub."""
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
    # A port of ssh says nothing about the API's.
    return _address("https", parts.hostname, parts.path) if parts.scheme in {"ssh", "git+ssh"} else None


def is_private(url: str) -> bool:
    """Whether what is sent there cannot be read on the way: https, or this machine alone."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and is_this_machine(parts.hostname or ""))


def _address(scheme: str, host: str | None, path: str) -> GitHubAddress | None:
    names = path.strip("/").removesuffix(".git").split("/")
    if not host or len(names) != 2 or not all(map(_NAME.fullmatch, names)):  # noqa: PLR2004 - owner and name
        return None
    return GitHubAddress(scheme, host.lower(), *names)
