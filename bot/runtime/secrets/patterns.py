"""Finds secrets by their syntax: private keys, tokens and hashes of a known format, and passwords in URLs, headers,
commands, SQL and the files in which tools keep them.

Formats are from gitleaks 8 (github.com/gitleaks/gitleaks, MIT; none of its code is used) and issuers' documentation.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from bot.runtime.secrets import FoundSecret, SecretKind, occurrences
from bot.runtime.secrets.plausibility import decoded_text, is_drawn, is_placeholder, reads_as_words

_K = SecretKind
_GROUP = "(?P<secret>"
_LONGEST_COMMAND = 600
"""Characters before an option that are searched for its command."""
_SHORTEST, _LONG_LETTERS = 4, 20
_HTTP_CLIENT = re.compile(r"(?:curl|wget|https?|xh) ")
_PASSWORD_CLIENT = re.compile(
    r"(?:mysql|mariadb|mongo|sshpass|(?:docker|podman|registry|az) login|redis-cli)[^\n|;]*\Z"
)
_PORT = re.compile(r"[0-9]{2,5}(?:,|\Z)")


def _stated(match: re.Match[str]) -> bool:
    """Returns whether a value that can be nothing else than a secret is no placeholder."""
    return not is_placeholder(match["secret"])


def _chosen(match: re.Match[str]) -> bool:
    """Returns whether a value can be a chosen password: not a placeholder, and more than a word or a number."""
    plain = match["secret"].strip("\"'`,;<>")
    letters = re.sub("[-_]", "", plain)
    is_word = letters.isalpha() and (letters.islower() or letters.isupper() or letters.istitle())
    return not (len(plain) < _SHORTEST or plain.isdigit() or is_word or is_placeholder(plain))


def _drawn(match: re.Match[str]) -> bool:
    """Returns whether a value looks generated, and is neither a sample nor, in base64, a placeholder."""
    value = match["secret"]
    if is_placeholder(value) or is_placeholder(decoded_text(value)):
        return False
    return is_drawn(value) or (value.isalpha() and len(value) >= _LONG_LETTERS and not reads_as_words(value))


def _password_of_url(match: re.Match[str]) -> bool:
    return match["secret"] != match["user"] and not _PORT.match(match["secret"]) and _stated(match)


def _of(client: re.Pattern[str]) -> Callable[[re.Match[str]], bool]:
    """Returns a check that an option belongs to such a command, which can span several lines."""
    return lambda match: bool(
        client.search(match.string, match.start() - _LONGEST_COMMAND, match.start()) and _chosen(match)
    )


@dataclass(frozen=True)
class Rule:
    """`expression` is matched `ahead` characters before one of the `keywords` (in lower case). Its group `secret`, or
    else the whole of it, is masked if `accept` agrees.
    """

    name: str
    kind: SecretKind
    keywords: tuple[str, ...]
    expression: str
    accept: Callable[[re.Match[str]], bool] = _stated
    ahead: int = 0

    @property
    def pattern(self) -> re.Pattern[str]:
        return compiled(self.expression if _GROUP in self.expression else f"{_GROUP}{self.expression})")


@cache
def compiled(expression: str) -> re.Pattern[str]:
    """Compiles a rule when it is first needed: most never are."""
    return re.compile(expression)


START = r"(?:(?<![A-Za-z0-9+\\%])|(?<=\\[nrt])|(?<=%[0-9A-F]{2}))"
"""Not inside a word or an escaped character."""
_OPTION = r"(?<![\w\-])"
_USER = rf"{_OPTION}(?:-u|--(?:proxy-)?user)(?:=|[ \t]{{1,8}}(?:\\\r?\n[ \t]{{0,20}})?)?[\"']?"
PRIVATE_KEY = "private-key"
_DASHES = "[-\u2013\u2014]{2,5}"
_BEGINNING = rf"{_DASHES} ?BEGIN [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)? ?{_DASHES}|PuTTY-User-Key-File-[0-9]"
_END = rf"{_DASHES} ?END [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)? ?{_DASHES}|Private-MAC: [0-9a-f]{{40,64}}"
_BETWEEN = r"[\s\"'`,;>|#+]"
"""Characters around a key's lines in code and in quotations."""
_REST = (
    rf"(?>(?:{_BETWEEN}*+[A-Za-z\-]{{1,30}}: [^\n]{{1,200}}+)*)(?>(?:{_BETWEEN}*+[A-Za-z0-9+/=\\]{{16,}}+(?!\w))*)"
    rf"(?:(?<=\w){_BETWEEN}++(?=[A-Za-z]*+[0-9+/\\])[A-Za-z0-9+/\\]{{1,75}}+={{0,2}}(?=[\"'`,;]*+(?:\s|\Z)))?"
)
"""Of a key without its last line: headers, lines, and the beginning of one more."""
_PRIVATE_KEY = re.compile(rf"(?:{_BEGINNING})(?:(?:(?!{_BEGINNING})[\s\S]){{0,40000}}?(?:{_END})|{_REST})")
_PART_OF_KEY = re.compile(r"[A-Za-z0-9+/]{24,}")
"""Without one, the two lines enclose a placeholder for a key (RFC 7468; for OpenPGP, RFC 9580)."""

PATTERNS = (
    Rule("jwt", _K.JWT, ("eyj",), r"eyJ[\w\-]{10,2000}+\.ey[\w\-]{2,8000}+(?:\.[\w\-]{0,8000}+)?"),
    Rule("slack-webhook", _K.SLACK_WEBHOOK, ("hooks.slack",), r"hooks\.slack(?:-gov)?\.com/[a-z]{8,9}/[\w/+\-]{20,}+"),
    Rule("teams-webhook", _K.WEBHOOK, ("webhookb2/",), r"webhookb2/[\w@\-]{30,100}/IncomingWebhook/[\w/\-]{30,120}"),
    Rule("discord-webhook", _K.WEBHOOK, ("webhooks/",), r"webhooks/[0-9]{15,20}/[\w\-]{50,90}"),
    Rule("zapier-webhook", _K.WEBHOOK, ("hooks.zapier.com/",), r"hooks\.zapier\.com/hooks/catch/[\w/]{10,60}"),
    Rule("azure-client-secret", _K.AZURE, ("q~",), rf"{START}[\w.~]{{3}}[0-9]Q~[\w.~\-]{{31,34}}", ahead=4),
    Rule("telegram-bot-token", _K.SERVICE, (":a",), rf"{START}[0-9]{{9,10}}:A[\w\-]{{34}}", ahead=10),
    Rule("facebook-app-token", _K.SERVICE, ("|",), rf"{START}[0-9]{{15}}\|[\w\-]{{27,40}}", ahead=15),
    Rule("terraform-token", _K.SERVICE, (".atlasv1.",), rf"{START}\w{{14}}\.atlasv1\.[\w\-=]{{50,70}}", ahead=14),
    Rule("asana-token", _K.SERVICE, ("1/",), rf"{START}1/[0-9]{{16}}:[0-9a-f]{{32}}"),
    Rule("mailchimp-key", _K.SERVICE, ("-us",), rf"{START}[0-9a-f]{{32}}-us[0-9]{{1,2}}", ahead=32),
    Rule("origin-ca-key", _K.SERVICE, ("v1.0-",), rf"{START}v1\.0-[0-9a-f]{{24}}-[0-9a-f]{{100,146}}"),
    Rule("password-hash", _K.HASH, ("$",), r"\$(?:\d[abxy]?|[a-z][\w\-]{2,15})\$(?:[\w./+=\-$]|,(?=\w=)){20,}", bool),
    Rule("password-hash", _K.HASH, ("pbkdf2", "scrypt:", "scram-sha-"),
        rf"{START}(?:pbkdf2[_:]|scrypt:|SCRAM-SHA-)[\w:]{{2,20}}\$[^\s\"'<>]{{20,400}}", bool),
    Rule("password-hash", _K.HASH, ("{sha", "{ssha"), r"\{S?SHA(?:256|384|512)?\}[\w+/]{26,140}={0,2}", bool),
    Rule("password-hash", _K.HASH, (":::",), r":[0-9a-fA-F]{32}:[0-9a-fA-F]{32}", bool, ahead=66),
    Rule("url-password", _K.URL_PASSWORD, ("://",),
        r"(?<=[A-Za-z0-9])://(?P<user>[^\s/:@\"'<>`]{0,100}+):(?P<secret>[^\s/\"'<>`@]{1,200}+"
        r"(?:@[^\s/\"'<>`@]{0,100}+(?=@))?)@", _password_of_url),
    Rule("url-token-as-user", _K.URL_PASSWORD, ("://",),
        r"(?<=[A-Za-z0-9])://(?P<secret>[A-Za-z0-9_\-]{20,200}+)(?::x-oauth-basic)?@", _drawn),
    Rule("url-parameter", _K.URL_PASSWORD, ("key=", "code=", "sig=", "signature="),
        r"(?i)(?:(?<=[?&;#])|(?<=[?&;#]X-Amz-)|(?<=[?&;#]X-Goog-))\w{3,9}=(?P<secret>[\w%+/=\-.~]{16,400})", _drawn),
    Rule("authorization", _K.HEADER, ("authorization", "basic ", "bearer ", "token "),
        r"(?i)(?:authorization[\"']?[ \t]{0,4}[:=,][ \t]{0,4}[\"']?|(?<![\w.~+/=])(?:basic|bearer|(?:api-)?token)[ \t]"
        r"{1,4})(?P<secret>[\w.~+/=@\-]{16,4000})", _drawn),
    Rule("cookie", _K.HEADER, ("cookie",),
        r"(?i)cookie[ \t]{0,2}[:=][ \t]{0,4}[^\n=]{1,60}=(?P<secret>[\w%+/.:\-]{16,4000}(?:;[ \t]{0,2}[\w.\-]{1,60}"
        r"=[\w%+/.:\-]{16,400})*)", _drawn),
    Rule("curl-user", _K.COMMAND, ("-u", "--user", "--proxy-user"),
        rf"{_USER}[^\s\"':]{{0,100}}[\"']?:[\"']?(?P<secret>[^\s\"'`]{{3,200}})", _of(_HTTP_CLIENT)),
    Rule("curl-user", _K.COMMAND, ("-u", "--user"), rf"{_USER}(?P<secret>[^\s\"':]{{8,100}}):[\"']?(?=\s|$)",
        _of(_HTTP_CLIENT)),
    Rule("password-option", _K.COMMAND, ("-p", "--pass", "-a"),
        rf"{_OPTION}(?:-[pPa]|--?pass(?:word|wd)?)(?:=|[ \t]{{1,8}})?(?P<quote>[\"']?)(?P<secret>[^\s\"'`]{{4,200}})"
        r"(?P=quote)",
        _of(_PASSWORD_CLIENT)),
    Rule("pgpass", _K.ASSIGNMENT, (":5432:", ":5433:", ":6432:", ":*:"),
        r"(?<=[\w*.\-]):(?:54[0-9]{2}|6432|\*)(?::[^\s:\"'/]{1,64}){2}:(?P<secret>[^\s:\"']{4,200})", _chosen),
    Rule("sql", _K.ASSIGNMENT, ("identified by",),
        r"(?i)identified by (?:password )?N?(?P<quote>[\"'])(?P<secret>[^\s\"']{4,200})(?P=quote)"),
)  # fmt: skip


def secrets_by_pattern(text: str, lower: str) -> Iterator[FoundSecret]:
    """Yields the secrets that these patterns find. `lower` is the text in lower case."""
    for key in _PRIVATE_KEY.finditer(text):
        if _PART_OF_KEY.search(key[0]):
            yield FoundSecret(*key.span(), _K.PRIVATE_KEY, PRIVATE_KEY)
    for rule in PATTERNS:
        for keyword in rule.keywords:
            done = 0
            for at in occurrences(lower, keyword):
                start = at - rule.ahead
                match = rule.pattern.match(text, start) if start >= done else None
                if match is not None:
                    done = match.end("secret")
                    if rule.accept(match):
                        yield FoundSecret(match.start("secret"), done, rule.kind, rule.name)
