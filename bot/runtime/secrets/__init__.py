"""Finds secrets in texts and masks them: keys, tokens and passwords, by rules that are data."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class SecretKind(StrEnum):
    """What was masked, as shown after "masked:"."""

    OWN = "Pagehand's own credential"
    PRIVATE_KEY = "private key"
    AWS = "AWS key"
    AZURE = "Azure key"
    GITHUB = "GitHub token"
    GITLAB = "GitLab token"
    SLACK = "Slack token"
    SLACK_WEBHOOK = "Slack webhook"
    WEBHOOK = "webhook"
    GOOGLE = "Google key"
    STRIPE = "Stripe key"
    MODEL_API = "AI service key"
    NPM = "npm token"
    PYPI = "PyPI token"
    JWT = "JSON Web Token"
    SERVICE = "access token"
    URL_PASSWORD = "password in a URL"  # noqa: S105 - what is masked, not a password
    HEADER = "authorization header"
    COMMAND = "password in a command"
    HASH = "password hash"
    ASSIGNMENT = "password or key"


@dataclass(frozen=True)
class FoundSecret:
    """A secret found in a text: its position, its kind, and the rule that found it."""

    start: int
    end: int
    kind: SecretKind
    rule: str


def words(text: str) -> frozenset[str]:
    """Returns the words of a list, as the rules' tables write them."""
    return frozenset(text.split())


def occurrences(text: str, wanted: str) -> Iterator[int]:
    """Yields the positions of a word in a text."""
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + 1)
