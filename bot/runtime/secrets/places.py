"""Finds passwords and keys by their place: in URLs, headers, commands, SQL, and the files in which tools keep them."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from bot.runtime.secrets.kinds import FoundSecret, SecretKind, occurrences
from bot.runtime.secrets.plausibility import (
    decoded_text,
    has_drawn_characters,
    is_code,
    is_hex,
    is_name,
    is_placeholder,
    is_random,
    reads_as_words,
)

_K = SecretKind
_LONGEST_COMMAND = 600
"""Characters before an option that are searched for its command."""
_SHORTEST, _LONG_LETTERS = 4, 20
_SAMPLE_HOST = re.compile(r"(?i)(?:www\.)?example|localhost|127\.0\.0\.1|host|db|server|proxy|user|my|some")
_HTTP_CLIENT = re.compile(r"(?:curl|wget|https?|xh) ")
_PASSWORD_CLIENT = re.compile(
    r"(?:mysql|mariadb|mongo|sshpass|(?:docker|podman|registry|az) login|redis-cli)[^\n|;]*\Z"
)
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
    """Returns whether a value looks generated, and is neither a sample nor, in base64, a placeholder."""
    value = match["secret"]
    if is_placeholder(value) or is_placeholder(decoded_text(value)):
        return False
    if value.isalpha() and len(value) >= _LONG_LETTERS:
        return not reads_as_words(value)
    return has_drawn_characters(value) and not (is_code(value) or is_name(value))


def _random(match: re.Match[str]) -> bool:
    return _drawn(match) and (is_hex(match["secret"]) or is_random(match["secret"], 0.2))


def _password_of_url(match: re.Match[str]) -> bool:
    value = match["secret"]
    if is_placeholder(value) or value == match["user"] or _PORT.match(value):
        return False
    return not (value.isalpha() and _SAMPLE_HOST.match(match["host"]))


def _of(client: re.Pattern[str]) -> Callable[[re.Match[str]], bool]:
    """Returns a check that an option belongs to such a command, which can span several lines."""

    def accepts(match: re.Match[str]) -> bool:
        before = match.string[max(match.start() - _LONGEST_COMMAND, 0) : match.start()]
        return client.search(before) is not None and _chosen(match)

    return accepts


@dataclass(frozen=True)
class SecretPlace:
    """A place of secrets. `expression` is matched where one of the `keywords` (lower case, separated by bars) occurs,
    and its group `secret` is masked if `accept` agrees.
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
_USER = rf"{_OPTION}(?:-u|--(?:proxy-)?user)(?:=|[ \t]{{1,8}}(?:\\\r?\n[ \t]{{0,20}})?)?"
PLACES = (
    SecretPlace("url-password", _K.URL_PASSWORD, "://",
        r"(?<=[A-Za-z0-9])://(?P<user>[^\s/:@\"'<>`]{0,100}+):(?P<secret>[^\s/\"'<>`@]{1,200}+"
        r"(?:@[^\s/\"'<>`@]{0,100}+(?=@))?)@(?P<host>[^\s/\"'<>`:?#]{0,80})", _password_of_url),
    SecretPlace("url-token-as-user", _K.URL_PASSWORD, "://",
        r"(?<=[A-Za-z0-9])://(?P<secret>[A-Za-z0-9_\-]{20,200}+)(?::x-oauth-basic)?@", _drawn),
    SecretPlace("url-parameter", _K.URL_PASSWORD, "key=|code=|sig=|signature=",
        r"(?i)(?:(?<=[?&;#])|(?<=[?&;#]X-Amz-)|(?<=[?&;#]X-Goog-))\w{3,9}=(?P<secret>[\w%+/=\-.~]{16,400})", _random),
    SecretPlace("authorization-scheme", _K.HEADER, "basic |bearer |token ",
        r"(?i)(?<![A-Za-z0-9._~+/=])(?:basic|bearer|(?:api-)?token)[ \t]{1,4}(?P<secret>[A-Za-z0-9._~+/=@\-]{16,4000})",
        _drawn),
    SecretPlace("authorization-header", _K.HEADER, "authorization",
        r"(?i)authorization[\"']?[ \t]{0,4}[:=,][ \t]{0,4}[\"']?(?P<secret>[\w=~@.+/\-]{16,4000})", _drawn),
    SecretPlace("cookie", _K.HEADER, "cookie",
        r"(?i)cookie[ \t]{0,2}[:=][ \t]{0,4}[^\n=]{1,60}=(?P<secret>[\w%+/.:\-]{16,4000}(?:;[ \t]{0,2}[\w.\-]{1,60}"
        r"=[\w%+/.:\-]{16,400})*)", _drawn),
    SecretPlace("curl-user", _K.COMMAND, "-u|--user|--proxy-user",
        rf"{_USER}[\"']?[^\s\"':]{{0,100}}[\"']?:[\"']?(?P<secret>[^\s\"'`]{{3,200}})", _of(_HTTP_CLIENT)),
    SecretPlace("curl-user", _K.COMMAND, "-u|--user",
        rf"{_USER}[\"']?(?P<secret>[^\s\"':]{{8,100}}):[\"']?(?=\s|$)", _of(_HTTP_CLIENT)),
    SecretPlace("password-option", _K.COMMAND, "-p|--pass|-a",
        rf"{_OPTION}(?:-[pPa]|--?pass(?:word|wd)?)(?:=|[ \t]{{1,8}})?(?P<quote>[\"']?)(?P<secret>[^\s\"'`]{{4,200}})"
        r"(?P=quote)",
        _of(_PASSWORD_CLIENT)),
    SecretPlace("pgpass", _K.ASSIGNMENT, ":5432:|:5433:|:6432:|:*:",
        r"(?<=[\w*.\-]):(?:54[0-9]{2}|6432|\*):[^\s:\"'/]{1,64}:[^\s:\"'/]{1,64}:(?P<secret>[^\s:\"']{4,200})"),
    SecretPlace("sql", _K.ASSIGNMENT, "identified by",
        r"(?i)identified by (?:password )?N?(?P<quote>[\"'])(?P<secret>[^\s\"']{4,200})(?P=quote)", _stated),
)  # fmt: skip


def placed_secrets(text: str, lower: str) -> Iterator[FoundSecret]:
    """Yields the secrets at these places. `lower` is the text in lower case."""
    for place in PLACES:
        for keyword in place.keywords.split("|"):
            done = 0
            for at in occurrences(lower, keyword):
                match = place.pattern.match(text, at) if at >= done else None
                if match is not None:
                    done = match.end("secret")
                    if place.accept(match):
                        yield FoundSecret(match.start("secret"), done, place.kind, place.name)
