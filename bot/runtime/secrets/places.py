"""Finds passwords and keys by their place: in URLs, headers, commands, SQL, and the files in which tools keep them."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from bot.runtime.secrets.kinds import FoundSecret, SecretKind, occurrences
from bot.runtime.secrets.plausibility import (
    decoded_base64,
    has_drawn_characters,
    is_code,
    is_hex,
    is_name,
    is_placeholder,
    is_random,
    decoded_text,
    reads_as_words,
)

_K = SecretKind
_LONGEST_COMMAND = 600
"""Characters before an option that are searched for its command."""
_SHORTEST, _LONG_LETTERS = 4, 20
_SAMPLE_HOSTS = (
    "example",
    "www.example",
    "localhost",
    "127.0.0.1",
    "host",
    "db",
    "server",
    "proxy",
    "user",
    "my",
    "some",
)
_HTTP_CLIENTS = ("curl ", "wget ", "http ", "https ", "xh ")
_PASSWORD_CLIENTS = (
    "mysql", "mariadb", "mongo", "sshpass", "docker login", "podman login", "registry login", "az login", "redis-cli",
)  # fmt: skip
_PORT = re.compile(r"[0-9]{2,5}(?:,|\Z)")


def _chosen(match: re.Match[str]) -> bool:
    """Returns whether a value can be a chosen password: not a placeholder, and more than a word or a number."""
    plain = match["secret"].strip("\"'`,;<>")
    if len(plain) < _SHORTEST or is_placeholder(plain) or plain.isdigit():
        return False
    letters = plain.replace("-", "").replace("_", "")
    return not (letters.isalpha() and (letters.islower() or letters.isupper() or letters.istitle()))


def _stated(match: re.Match[str]) -> bool:
    """Returns whether a value that can be nothing else than a password is no placeholder."""
    return not is_placeholder(match["secret"])


def _drawn(match: re.Match[str]) -> bool:
    value = match["secret"]
    if is_placeholder(decoded_text(value)):
        return False
    if value.isalpha() and len(value) >= _LONG_LETTERS:
        return not (reads_as_words(value) or is_placeholder(value))
    return has_drawn_characters(value) and not (is_placeholder(value) or is_code(value) or is_name(value))


def _random(match: re.Match[str]) -> bool:
    return _drawn(match) and (is_hex(match["secret"]) or is_random(match["secret"], 0.2))


def _password_of_url(match: re.Match[str]) -> bool:
    value = match["secret"]
    if is_placeholder(value) or value == match["user"] or _PORT.match(value):
        return False
    return not (value.isalpha() and match["host"].lower().startswith(_SAMPLE_HOSTS))


def _of_http_client(match: re.Match[str]) -> bool:
    """Returns whether the option belongs to an HTTP client, whose command can span several lines."""
    before = match.string[max(match.start() - _LONGEST_COMMAND, 0) : match.start()]
    return any(client in before for client in _HTTP_CLIENTS) and _chosen(match)


def _of_password_client(match: re.Match[str]) -> bool:
    """Returns whether the option belongs to a command on the same line that takes a password by it."""
    before = match.string[max(match.start() - _LONGEST_COMMAND, 0) : match.start()]
    command = before[max(map(before.rfind, "\n|;")) + 1 :]
    return any(name in command for name in _PASSWORD_CLIENTS) and _chosen(match)


def _basic(match: re.Match[str]) -> bool:
    """Returns whether the value is a name and a password in base64."""
    pair = decoded_base64(match["secret"])
    return ":" in pair and not (is_placeholder(pair) or is_placeholder(match["secret"]))


@dataclass(frozen=True)
class Place:
    """A place of secrets. `expression` is matched where one of the keywords, in lower case, occurs; its group `secret` is
    masked if `accept` agrees.
    """

    name: str
    kind: SecretKind
    keywords: str
    expression: str
    accept: Callable[[re.Match[str]], bool] = _chosen

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when a keyword first occurs: most never do."""
        return re.compile(self.expression)


_OPTION = r"(?<![\w\-])"
_SPACE = r"[ \t]{1,8}(?:\\\r?\n[ \t]{0,20})?"
PLACES = (
    Place(
        "url-password", _K.URL_PASSWORD, "://",
        r"(?<=[A-Za-z0-9])://(?P<user>[^\s/:@\"'<>`]{0,100}+):(?P<secret>[^\s/\"'<>`@]{1,200}+(?:@[^\s/\"'<>`@]{0,100}+(?=@))?)"
        r"@(?P<host>[^\s/\"'<>`:?#]{0,80})",
        _password_of_url,
    ),
    Place(
        "url-token-as-user", _K.URL_PASSWORD, "://",
        r"(?<=[A-Za-z0-9])://(?P<secret>[A-Za-z0-9_\-]{20,200}+)(?::x-oauth-basic)?@", _drawn,
    ),
    Place(
        "url-parameter", _K.URL_PASSWORD, "key= code= sig= signature=",
        r"(?i)(?:(?<=[?&;#])|(?<=[?&;#]X-Amz-)|(?<=[?&;#]X-Goog-))(?:key|code|sig|signature)="
        r"(?P<secret>[\w%+/=\-.~]{16,400})", _random,
    ),
    Place(
        "authorization-basic", _K.HEADER, "basic ",
        r"(?i)(?<![\w\-])basic[ \t]{1,4}(?P<secret>[A-Za-z0-9+/_\-]{8,4000}={0,2})", _basic,
    ),
    Place(
        "authorization-scheme", _K.HEADER, "basic |bearer |token ",
        r"(?i)(?<![A-Za-z0-9._~+/=])(?:basic|bearer|(?:api-)?token)[ \t]{1,4}(?P<secret>[A-Za-z0-9._~+/=@\-]{16,4000})",
        _drawn,
    ),
    Place(
        "authorization-header", _K.HEADER, "authorization",
        r"(?i)authorization[\"']?[ \t]{0,4}[:=,][ \t]{0,4}[\"']?(?:(?:bearer|token|basic)[ \t]{1,4})?"
        r"(?P<secret>[\w=~@.+/\-]{16,4000})",
        _drawn,
    ),
    Place(
        "cookie", _K.HEADER, "cookie",
        r"(?i)cookie[ \t]{0,2}[:=][ \t]{0,4}[^\n=]{1,60}=(?P<secret>[\w%+/.:\-]{16,4000})(?P<more>(?:;[ \t]{0,2}[\w.\-]{1,60}"
        r"=[\w%+/.:\-]{16,400})*)", _drawn,
    ),
    Place(
        "curl-user", _K.COMMAND, "-u --user --proxy-user",
        rf"{_OPTION}(?:-u|--(?:proxy-)?user)(?:=|{_SPACE})?(?:(?P<quote>[\"'])[^\"':\n]{{0,100}}:(?P<secret>[^\"'\n]{{3,200}})"
        r"(?P=quote))", _of_http_client,
    ),
    Place(
        "curl-user", _K.COMMAND, "-u --user",
        rf"{_OPTION}(?:-u|--user)(?:=|{_SPACE})?(?P<quote>[\"']?)(?P<secret>[^\s\"':]{{8,100}}):(?P=quote)(?=\s|$)",
        _of_http_client,
    ),
    Place(
        "curl-user", _K.COMMAND, "-u --user --proxy-user",
        rf"{_OPTION}(?:-u|--(?:proxy-)?user)(?:=|{_SPACE})?(?:\"[^\":\n]{{1,100}}\"|[^\s\"':]{{1,100}}):"
        r"(?P<secret>\"[^\"\n]{3,200}\"|'[^'\n]{3,200}'|[^\s\"'`]{3,200})", _of_http_client,
    ),
    Place(
        "password-option", _K.COMMAND, "-p --pass -a",
        rf"{_OPTION}(?:-[pPa]|--?pass(?:word|wd)?)(?:=|{_SPACE})?(?P<quote>[\"']?)(?P<secret>[^\s\"'`]{{4,200}})(?P=quote)",
        _of_password_client,
    ),
    Place("openssl-password", _K.COMMAND, "pass:", r"(?<=[ \t\"'=])pass:(?P<secret>[^\s\"'`]{4,200})"),
    Place(
        "netrc", _K.ASSIGNMENT, "login",
        r"(?<=\s)login[ \t\n]{1,8}[^\s]{1,100}\s{1,8}(?:account\s{1,8}[^\s]{1,100}\s{1,8})?"
        r"password[ \t\n]{1,8}(?P<secret>[^\s]{4,200})",
    ),
    Place(
        "pgpass", _K.ASSIGNMENT, ":5432: :5433: :6432: :*:",
        r"(?<=[\w*.\-]):(?:54[0-9]{2}|6432|\*):[^\s:\"'/]{1,64}:[^\s:\"'/]{1,64}:(?P<secret>[^\s:\"']{4,200})",
    ),
    Place(
        "sql", _K.ASSIGNMENT, "identified by",
        r"(?i)identified by (?:password )?N?(?P<quote>[\"'])(?P<secret>[^\s\"']{4,200})(?P=quote)", _stated,
    ),
    Place("jwk", _K.PRIVATE_KEY, '"d"', r'"d"\s{0,4}:\s{0,4}"(?P<secret>[\w\-]{40,2000})"', _drawn),
    Place("otp", _K.ASSIGNMENT, "otpauth://", r"otpauth://[^\s]{1,200}?[?&]secret=(?P<secret>[A-Z2-7]{16,200})", _stated),
)  # fmt: skip


def placed_secrets(text: str, lower: str) -> Iterator[FoundSecret]:
    """Yields the secrets at these places. `lower` is the text in lower case."""
    for place in PLACES:
        words = place.keywords.split("|") if "|" in place.keywords else _words(place.keywords)
        for keyword in words:
            done = 0
            for at in occurrences(lower, keyword):
                match = place.pattern.match(text, at) if at >= done else None
                if match is not None:
                    done = match.end("secret")
                    if place.accept(match):
                        end = match.end() if place.name == "cookie" else done
                        yield FoundSecret(match.start("secret"), end, place.kind, place.name)


def _words(keywords: str) -> list[str]:
    return [keywords] if keywords in {"identified by", "basic "} else keywords.split()
