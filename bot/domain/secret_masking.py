"""Masks keys, tokens and passwords in what others wrote, before it goes to the agent.

Each pattern knows the beginning of one kind of secret, so that ordinary words stay as they are. What looks like a
placeholder (`$TOKEN`, `your-api-key`) is left alone. The formats are those that their issuers document.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from bot.domain.private_keys import mask_private_keys


class SecretKind(StrEnum):
    """What was masked, in words that follow "masked:"."""

    PRIVATE_KEY = "private key"
    AWS = "AWS key"
    GITHUB = "GitHub token"
    GITLAB = "GitLab token"
    SLACK = "Slack token"
    SLACK_WEBHOOK = "Slack webhook"
    GOOGLE = "Google key"
    STRIPE = "Stripe key"
    MODEL_API = "AI service key"
    NPM = "npm token"
    PYPI = "PyPI token"
    JWT = "JSON Web Token"
    SERVICE = "access token"
    URL_PASSWORD = "password in a URL"  # noqa: S105 - what is masked, not a password
    HEADER = "authorization header"
    ASSIGNMENT = "password or key"


@dataclass(frozen=True)
class Masked:
    """A text without its secrets, and which kinds they were of, each once, in the order of SecretKind."""

    text: str
    kinds: tuple[SecretKind, ...] = ()


def _anything(_: str) -> bool:
    return True


def _mixed(value: str) -> bool:
    """Whether letters and digits are mixed, as in what a machine drew; names of things seldom do."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and not is_placeholder(value)


@dataclass(frozen=True)
class Secret:
    """How one kind of secret looks. What is masked is the group called `secret`, where `accept` takes it for one."""

    kind: SecretKind
    pattern: re.Pattern[str]
    accept: Callable[[str], bool] = _anything


_PLACEHOLDER_WORDS = frozenset(
    {"changeme", "false", "nil", "none", "null", "pass", "passphrase", "passwd", "password", "pwd", "secret", "string"}
    | {"token", "true", "undefined", "user"}
)
_PLACEHOLDER = re.compile(
    r"[$%{<\[]|(?:your|my|the|some|example|sample|dummy|fake|test|insert|replace)[_\-]|xxx|\*\*\*|\.\.\.", re.IGNORECASE
)
_CODE_PATH = re.compile(r"[A-Za-z_]\w{0,60}\.[\w.]{1,200}")


def is_placeholder(value: str) -> bool:
    """Returns whether a value stands for one that readers have to put there."""
    return value.lower() in _PLACEHOLDER_WORDS or _PLACEHOLDER.match(value) is not None


def _password(value: str) -> bool:
    return not is_placeholder(value)


def _assigned(value: str) -> bool:
    """Whether an unquoted value is a secret rather than code: names and paths of code have no such mixture."""
    return _mixed(value) and not _CODE_PATH.fullmatch(value)


SECRETS = (
    Secret(
        SecretKind.AWS, re.compile(r"(?<![A-Za-z0-9])(?P<secret>(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16})(?![A-Za-z0-9])")
    ),
    Secret(SecretKind.GITHUB, re.compile(r"(?<![A-Za-z0-9])(?P<secret>gh[opsur]_[A-Za-z0-9]{30,255})")),
    Secret(SecretKind.GITHUB, re.compile(r"(?<![A-Za-z0-9_])(?P<secret>github_pat_[A-Za-z0-9_]{22,255})")),
    Secret(
        SecretKind.GITLAB, re.compile(r"(?<![A-Za-z0-9_.\-])(?P<secret>gl[a-z]{2,5}-[A-Za-z0-9_.\-]{20,300})"), _mixed
    ),
    Secret(SecretKind.SLACK, re.compile(r"(?<![A-Za-z0-9%\-])(?P<secret>xox[a-z]-[A-Za-z0-9%\-]{10,400})"), _mixed),
    Secret(SecretKind.SLACK, re.compile(r"(?<![A-Za-z0-9\-])(?P<secret>xapp-[0-9]-[A-Za-z0-9\-]{10,400})")),
    Secret(
        SecretKind.SLACK_WEBHOOK,
        re.compile(
            r"(?<![A-Za-z0-9])(?P<secret>hooks\.slack(?:-gov)?\.com/(?:services|triggers|workflows)/[\w/\-]{20,300})"
        ),
    ),
    Secret(SecretKind.GOOGLE, re.compile(r"(?<![A-Za-z0-9_\-])(?P<secret>AIza[A-Za-z0-9_\-]{35})(?![A-Za-z0-9_\-])")),
    Secret(SecretKind.GOOGLE, re.compile(r"(?<![A-Za-z0-9_\-])(?P<secret>GOCSPX-[A-Za-z0-9_\-]{20,60})")),
    Secret(SecretKind.GOOGLE, re.compile(r"(?<![A-Za-z0-9_.\-])(?P<secret>ya29\.[A-Za-z0-9_.\-]{20,2000})")),
    Secret(SecretKind.STRIPE, re.compile(r"(?<![A-Za-z0-9])(?P<secret>[rs]k_(?:live|test)_[A-Za-z0-9]{10,250})")),
    Secret(SecretKind.STRIPE, re.compile(r"(?<![A-Za-z0-9])(?P<secret>whsec_[A-Za-z0-9+/=]{20,100})"), _mixed),
    Secret(SecretKind.MODEL_API, re.compile(r"(?<![A-Za-z0-9_\-])(?P<secret>sk-[A-Za-z0-9_\-]{20,300})"), _mixed),
    Secret(SecretKind.NPM, re.compile(r"(?<![A-Za-z0-9])(?P<secret>npm_[A-Za-z0-9]{36})(?![A-Za-z0-9])")),
    Secret(SecretKind.PYPI, re.compile(r"(?<![A-Za-z0-9_\-])(?P<secret>pypi-[A-Za-z0-9_\-]{50,1000})")),
    Secret(
        SecretKind.JWT,
        re.compile(
            r"(?<![A-Za-z0-9_.\-])(?P<secret>eyJ[A-Za-z0-9_\-]{10,4000}+\.eyJ[A-Za-z0-9_\-]{2,8000}+(?:\.[A-Za-z0-9_\-]{0,4000})?)"
        ),
    ),
    Secret(
        SecretKind.SERVICE,
        re.compile(
            r"(?<![A-Za-z0-9_.\-])(?P<secret>(?:hf_|dop_v1_|shpat_|shpss_|lin_api_|glsa_|sntrys_|SG\.|AGE-SECRET-KEY-1)"
            r"[A-Za-z0-9_.\-]{30,300})"
        ),
        _mixed,
    ),
    Secret(
        SecretKind.URL_PASSWORD,
        re.compile(
            r"(?<![A-Za-z0-9+.\-])[A-Za-z][A-Za-z0-9+.\-]{1,20}+://[^\s/:\"'<>`]{0,100}+:(?P<secret>[^\s/\"'<>`]{1,200})@"
        ),
        _password,
    ),
    Secret(
        SecretKind.HEADER,
        re.compile(
            r"(?<![A-Za-z0-9._~+/=\-])(?:basic|bearer|token)[ \t]{1,4}(?P<secret>[A-Za-z0-9._~+/=\-]{16,4000})",
            re.IGNORECASE,
        ),
        _assigned,
    ),
    Secret(
        SecretKind.ASSIGNMENT,
        re.compile(
            r"(?:password|passwd|passphrase|pwd)[\"']?[ \t]{0,4}(?:=>|:=|[=:])[ \t]{0,4}"
            r"(?P<quote>[\"'`])(?P<secret>[^\s\"'`]{6,200})(?P=quote)",
            re.IGNORECASE,
        ),
        _password,
    ),
    Secret(
        SecretKind.ASSIGNMENT,
        re.compile(
            r"(?:password|passwd|passphrase|pwd|secret|token|credential|"
            r"(?:access|account|api|auth|encryption|secret|signing)[_\- ]?key)"
            r"[\"']?[ \t]{0,4}(?:=>|:=|[=:])[ \t]{0,4}[\"'`]?(?P<secret>[A-Za-z0-9_.~+/=!@#$%^&*?\-]{6,400}+)(?![(\[])",
            re.IGNORECASE,
        ),
        _assigned,
    ),
)


def mask_secrets(text: str) -> Masked:
    """Returns the text with `[masked: AWS key]` and the like in the place of secrets."""
    masked, found = mask_private_keys(text, _mask(SecretKind.PRIVATE_KEY)), set[SecretKind]()
    if masked != text:
        found.add(SecretKind.PRIVATE_KEY)
    for secret in SECRETS:
        masked, hits = _mask_all(secret, masked)
        if hits:
            found.add(secret.kind)
    return Masked(masked, tuple(kind for kind in SecretKind if kind in found))


def _mask_all(secret: Secret, text: str) -> tuple[str, int]:
    parts, end = [], 0
    for match in secret.pattern.finditer(text):
        if secret.accept(match["secret"]):
            parts += [text[end : match.start("secret")], _mask(secret.kind)]
            end = match.end("secret")
    return "".join((*parts, text[end:])), len(parts)


def _mask(kind: SecretKind) -> str:
    return f"[masked: {kind}]"
