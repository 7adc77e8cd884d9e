"""The state of a GitHub for tests, and what of its answers depends on it (`github_answers` has the rest)."""

import functools
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from support.servers.github_server_git import BareRepository

TOKEN = "planted-secret-github-token"
APP_ID = "424242"
INSTALLATION_ID = 77
REPOSITORY_ID = 1296269
ALL_PERMISSIONS = frozenset({"contents:write", "pull_requests:write", "checks:read", "statuses:read"})


@functools.cache
def app_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def app_key_pem() -> str:
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return app_key().private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


@dataclass
class PullRequestRecord:
    number: int
    title: str
    body: str
    branch: str
    base: str
    draft: bool
    sha: str
    state: str = "open"
    merged_at: str | None = None
    labels: list[str] = field(default_factory=list)
    reviewers: list[str] = field(default_factory=list)


@dataclass
class RepositoryRecord:
    git: BareRepository
    owner: str = "acme"
    name: str = "docs"
    archived: bool = False
    collaborators: set[str] = field(default_factory=lambda: {"ada", "pagehand-bot"})
    pull_requests: list[PullRequestRecord] = field(default_factory=list)
    check_runs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    statuses: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    former_names: set[str] = field(default_factory=set)

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"

    def rename(self, owner: str, name: str) -> None:
        self.former_names.add(self.full_name)
        self.owner, self.name = owner, name

    def refresh(self) -> None:
        """Moves a pull request with its branch while it is open."""
        for record in self.pull_requests:
            if record.state == "open":
                record.sha = self.git.head(record.branch) or record.sha

    def payload(self, url: str) -> dict[str, Any]:
        return {
            "full_name": self.full_name,
            "html_url": f"{url}/{self.full_name}",
            "default_branch": self.git.git("symbolic-ref", "--short", "HEAD"),
            "archived": self.archived,
        }

    def pull_request_payload(self, record: PullRequestRecord, url: str) -> dict[str, Any]:
        return {
            "number": record.number,
            "html_url": f"{url}/{self.full_name}/pull/{record.number}",
            "state": record.state,
            "title": record.title,
            "body": record.body,
            "draft": record.draft,
            "merged_at": record.merged_at,
            "head": {"ref": record.branch, "sha": record.sha},
            "base": {"ref": record.base},
        }


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
