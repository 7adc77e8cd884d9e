"""The kinds of secrets, as people are told of them."""

from enum import StrEnum


class SecretKind(StrEnum):
    """What was masked, in words that follow "masked:"."""

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
    ASSIGNMENT = "password or key"
