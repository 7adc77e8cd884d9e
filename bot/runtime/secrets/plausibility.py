"""Decides whether a value can be a secret, or is a placeholder, a name or code. Each check is linear in its length."""

import base64
import binascii
import itertools
import math
import re
from collections import Counter

_WORDS = frozenset(
    {"abc123", "admin", "changeit", "changeme", "default", "demo", "dummy", "enabled", "disabled", "empty", "example"}
    | {"false", "foo", "foobar", "guest", "hidden", "letmein", "login", "mypass", "mypassword", "mysecret", "mysql"}
    | {"mytoken", "nil", "none", "null", "optional", "pass", "passphrase", "password1", "password123", "passwd"}
    | {"password", "postgres", "pwd", "required", "root", "sample", "secret", "secret123", "string", "test", "test123"}
    | {"testpass", "testing", "testtest", "tiger", "token", "true", "undefined", "user", "username", "value", "yes"}
)
_BEGINNING = re.compile(
    r"[$%{<\[(]|@\w{1,60}@|(?:your|my|the|some|an?|any|insert|replace|put|enter|fake|dummy)[_\- ]"
    r"|your[A-Z]|\.\.\.|\*\*\*|process\.env|os\.environ|env\.|secrets\.|vars\.|var\.|data\.|local\.|module\.|\\\(",
    re.IGNORECASE,
)
_INSIDE = re.compile(
    r"example|placeholder|redacted|changeme|change[_\-]me|your[_\-]|(?:[_\- ]|key|password|secret|string|token)here\b|"
    r"x{4}|(?-i:XXX)|\*{3}|\.{3}|…|<[a-z]|\$\{|\$\(|\{\{",
    re.IGNORECASE,
)
_CODE_PATH = re.compile(r"[A-Za-z_$][\w$]{0,60}(?:(?:\.|::|->|\?\.)[A-Za-z_][\w]{0,60})+[!;?]{0,2}")
_FILE = re.compile(
    r"[\w./\-]{1,200}\.(?:cer|cert|conf|crt|env|go|html?|ini|java|js|json|jks|key|md|p12|pem|pfx|pub|py|rb|sh|toml|ts|txt"
    r"|xml|ya?ml)",
    re.IGNORECASE,
)
_PIECE = re.compile(
    r"[0-9]{1,12}|[A-Za-z]{1,3}[0-9]{1,4}|[A-Za-z][a-z]{1,30}[0-9]{0,4}|[A-Z]{2,30}[0-9]{0,4}|v[0-9]{1,6}"
)
_PIECES = re.compile(r"[_\-./:@+]|(?<=[a-z])(?=[A-Z])")
_LONGEST_NAME = 120


def entropy(value: str) -> float:
    """Returns the Shannon entropy of the value, in bits per character."""
    counts = Counter(value).values()
    return sum(count * math.log2(len(value) / count) for count in counts) / max(len(value), 1)


def is_common_word(value: str) -> bool:
    """Returns whether a value is a word that is common in examples, or as a password."""
    return value.lower() in _WORDS


def is_placeholder(value: str) -> bool:
    """Returns whether a value is a sample, or a placeholder for a value that the reader has to fill in."""
    return reads_as_placeholder(value) or _is_regular(value)


def reads_as_placeholder(value: str) -> bool:
    """Returns whether a value contains words or signs that mark it as a placeholder."""
    bare = value.strip("\"'`")
    return is_common_word(bare) or bool(_BEGINNING.match(bare) or _INSIDE.search(bare))


def _is_regular(value: str) -> bool:
    """Returns whether nearly every character repeats, or directly follows in the alphabet, the one before it."""
    steps = [ord(after) - ord(before) for before, after in itertools.pairwise(value)]
    return max(steps.count(0), steps.count(1)) > _REGULAR * len(value)


_REGULAR = 0.7


def has_drawn_characters(value: str) -> bool:
    """Returns whether a value mixes letters and digits, as random values do and names seldom do."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def is_code(value: str) -> bool:
    """Returns whether a value is an expression of code, a file's path, or a URL rather than a secret."""
    if "://" in value or value.startswith(("/", "./", "../", "~/", "#", "--")) or value.endswith("("):
        return True
    return _CODE_PATH.fullmatch(value) is not None or _FILE.fullmatch(value) is not None


def is_name(value: str) -> bool:
    """Returns whether a value consists of words and short numbers, as names do."""
    if len(value) > _LONGEST_NAME:
        return False
    pieces = [piece for piece in _PIECES.split(value) if piece]
    return all(map(_PIECE.fullmatch, pieces)) and _mean_length(pieces) > _SHORT_PIECE


_SHORT_PIECE = 2.5
"""Characters: a random value is split into pieces as short as this, because upper and lower case alternate."""


def _mean_length(pieces: list[str]) -> float:
    return sum(map(len, pieces)) / max(len(pieces), 1)


_LONGEST = 4_096
"""Characters that are decoded."""


def decoded_base64(value: str) -> str:
    """Returns decoded base64, one character per byte; empty if it is not base64."""
    whole = value[:_LONGEST].rstrip("=")
    whole = whole[: len(whole) - (len(whole) % 4 == 1)]
    try:
        return base64.b64decode(whole + "=" * (-len(whole) % 4), altchars=b"-_", validate=True).decode("latin-1")
    except (binascii.Error, ValueError):
        return ""


def printable_base64(value: str) -> str:
    """Returns decoded base64 if it is printable ASCII text; otherwise an empty text."""
    decoded = decoded_base64(value) if len(value) % 4 == 0 else ""
    text = decoded.strip("\n")
    return text if text.isascii() and text.isprintable() else ""
