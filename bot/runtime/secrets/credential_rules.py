"""Rules for passwords and keys by their context: URLs, headers, commands, and the files in which tools keep them."""

import re

from bot.runtime.secrets.kinds import SecretKind
from bot.runtime.secrets.plausibility import decoded_base64, has_drawn_characters, is_code, is_name, is_placeholder
from bot.runtime.secrets.rules import GITLEAKS, SecretRule, drawn

_K = SecretKind
_LONGEST_COMMAND = 600
"""Characters before an option that are searched for its command."""
_SHORTEST = 4
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
_DATABASE_CLIENTS = (
    "mysql",
    "mariadb",
    "mongo",
    "sshpass",
    "docker login",
    "podman login",
    "registry login",
    "az login",
)


def _chosen(value: str) -> bool:
    """Returns whether a value can be a chosen password: not a placeholder, and more than a word or a number."""
    plain = value.strip("\"'`,;<>")
    if len(plain) < _SHORTEST or is_placeholder(plain) or plain.isdigit():
        return False
    letters = plain.replace("-", "").replace("_", "")
    return not (letters.isalpha() and (letters.islower() or letters.isupper() or letters.istitle()))


def _password(match: re.Match[str]) -> bool:
    return _chosen(match["secret"])


def _password_of_url(match: re.Match[str]) -> bool:
    value = match["secret"]
    if is_placeholder(value) or value == match["user"]:
        return False
    return not (value.isalpha() and match["host"].lower().startswith(_SAMPLE_HOSTS))


def _of_http_client(match: re.Match[str]) -> bool:
    """Returns whether the option belongs to an HTTP client, whose command can span several lines."""
    before = match.string[max(match.start() - _LONGEST_COMMAND, 0) : match.start()]
    return any(client in before for client in _HTTP_CLIENTS) and _chosen(match["secret"])


def _of_database_client(match: re.Match[str]) -> bool:
    return _of_command(match, _DATABASE_CLIENTS) and _chosen(match["secret"])


def _of_redis(match: re.Match[str]) -> bool:
    return _of_command(match, ("redis-cli",)) and _chosen(match["secret"])


def _of_command(match: re.Match[str], names: tuple[str, ...]) -> bool:
    """Returns whether the option belongs to one of these commands on the same line."""
    before = match.string[max(match.start() - _LONGEST_COMMAND, 0) : match.start()]
    command = before[max(map(before.rfind, "\n|;")) + 1 :]
    return any(name in command for name in names)


def _in_header(match: re.Match[str]) -> bool:
    value = match["secret"]
    return has_drawn_characters(value) and not (is_placeholder(value) or is_code(value) or is_name(value))


def _basic(match: re.Match[str]) -> bool:
    """Returns whether the value is a name and a password in base64."""
    return ":" in decoded_base64(match["secret"])


def _private_key(match: re.Match[str]) -> bool:
    return "PRIVATE KEY" in decoded_base64(match["secret"][:80])


_OPTION = r"(?<![\w\-])"
_SPACE = r"[ \t]{1,8}(?:\\\r?\n[ \t]{0,20})?"

CREDENTIAL_RULES = (
    SecretRule(
        "jwt",
        _K.JWT,
        ("eyj",),
        r"(?:(?<![\w.\-])|(?<=\\[nrt])|(?<=%[0-9A-F]{2}))(?P<secret>eyJ[\w\-]{10,4000}+\.ey[\w\-]{2,8000}+(?:\.[\w\-]{0,4000})?)",
    ),
    SecretRule(
        "jwt-base64",
        _K.JWT,
        ("zxlk",),
        r"(?<![A-Za-z0-9+/])(?P<secret>ZXlK[A-Za-z0-9+/]{70,8000}={0,2})",
        source=GITLEAKS,
    ),
    SecretRule(
        "base64-private-key",
        _K.PRIVATE_KEY,
        ("ls0tls1crudjti",),
        r"(?<![A-Za-z0-9+/])"
        r"(?P<secret>LS0tLS1CRUdJTi(?:[A-Za-z0-9+/=]|\\[nr]|\r?\n[ \t]{0,20}(?=[A-Za-z0-9+/=]{4})){30,20000}+)",
        accept=_private_key,
    ),
    SecretRule(
        "url-password",
        _K.URL_PASSWORD,
        ("://",),
        r"(?<=[A-Za-z0-9])://(?P<user>[^\s/:@\"'<>`]{0,100}+):(?P<secret>[^\s/\"'<>`@]{1,200}+(?:@[^\s/\"'<>`@]{0,100}+(?=@))?)@(?P<host>[^\s/\"'<>`:?#]{0,80})",
        accept=_password_of_url,
    ),
    SecretRule(
        "url-token-as-user",
        _K.URL_PASSWORD,
        ("://",),
        r"(?<=[A-Za-z0-9])://(?P<secret>[A-Za-z0-9_\-]{20,200}+)(?::x-oauth-basic)?@",
        3.0,
        accept=drawn,
    ),
    SecretRule(
        "signed-url",
        _K.AZURE,
        ("sig=",),
        r"(?<=[?&;])sig=(?P<secret>[A-Za-z0-9%+/=]{40,120})",
        3.0,
        accept=drawn,
    ),
    SecretRule(
        "authorization-basic",
        _K.HEADER,
        ("basic ",),
        r"(?i)(?<![\w\-])basic[ \t]{1,4}(?P<secret>[A-Za-z0-9+/_\-]{8,4000}={0,2})",
        accept=_basic,
    ),
    SecretRule(
        "authorization-scheme",
        _K.HEADER,
        ("basic ", "bearer ", "token "),
        r"(?i)(?<![A-Za-z0-9._~+/=])(?:basic|bearer|(?:api-)?token)[ \t]{1,4}(?P<secret>[A-Za-z0-9._~+/=@\-]{16,4000})",
        accept=_in_header,
        source=GITLEAKS,
    ),
    SecretRule(
        "authorization-header",
        _K.HEADER,
        ("authorization",),
        r"(?i)authorization[\"']?[ \t]{0,4}[:=,][ \t]{0,4}[\"']?(?P<secret>[\w=~@.+/\-]{16,4000})",
        accept=_in_header,
        source=GITLEAKS,
    ),
    SecretRule(
        "curl-user",
        _K.COMMAND,
        ("-u", "--user", "--proxy-user"),
        rf"{_OPTION}(?:-u|--(?:proxy-)?user)(?:=|{_SPACE})?"
        r"(?P<quote>[\"'])[^\"':\n]{0,100}:(?P<secret>[^\"'\n]{3,200})(?P=quote)",
        2.0,
        accept=_of_http_client,
        source=GITLEAKS,
    ),
    SecretRule(
        "curl-key-as-user",
        _K.COMMAND,
        ("-u", "--user"),
        rf"{_OPTION}(?:-u|--user)(?:=|{_SPACE})?(?P<quote>[\"']?)(?P<secret>[^\s\"':]{{8,100}}):(?P=quote)(?=\s|$)",
        2.0,
        accept=_of_http_client,
        source=GITLEAKS,
    ),
    SecretRule(
        "curl-user-unquoted",
        _K.COMMAND,
        ("-u", "--user", "--proxy-user"),
        rf"{_OPTION}(?:-u|--(?:proxy-)?user)(?:=|{_SPACE})?"
        r"(?:\"[^\":\n]{1,100}\"|[^\s\"':]{1,100}):(?P<secret>\"[^\"\n]{3,200}\"|'[^'\n]{3,200}'|[^\s\"'`]{3,200})",
        2.0,
        accept=_of_http_client,
        source=GITLEAKS,
    ),
    SecretRule(
        "password-option",
        _K.COMMAND,
        ("-p", "--pass"),
        rf"{_OPTION}(?:-[pP]|--?pass(?:word|wd)?)(?:=|{_SPACE})?(?P<quote>[\"']?)(?P<secret>[^\s\"'`]{{4,200}})(?P=quote)",
        accept=_of_database_client,
    ),
    SecretRule(
        "redis-password",
        _K.COMMAND,
        ("-a", "--pass"),
        rf"{_OPTION}(?:-a|--pass){_SPACE}(?P<quote>[\"']?)(?P<secret>[^\s\"'`]{{4,200}})(?P=quote)",
        accept=_of_redis,
    ),
    SecretRule(
        "openssl-password",
        _K.COMMAND,
        ("pass:",),
        r"(?<=[ \t\"'=])pass:(?P<secret>[^\s\"'`]{4,200})",
        accept=_password,
    ),
    SecretRule(
        "netrc",
        _K.ASSIGNMENT,
        ("login",),
        r"(?<=\s)login[ \t\n]{1,8}[^\s]{1,100}\s{1,8}(?:account\s{1,8}[^\s]{1,100}\s{1,8})?"
        r"password[ \t\n]{1,8}(?P<secret>[^\s]{4,200})",
        accept=_password,
    ),
    SecretRule(
        "pgpass",
        _K.ASSIGNMENT,
        (":5432:", ":5433:", ":6432:", ":*:"),
        r"(?<=[\w*.\-]):(?:54[0-9]{2}|6432|\*):[^\s:\"'/]{1,64}:[^\s:\"'/]{1,64}:(?P<secret>[^\s:\"']{4,200})",
        accept=_password,
    ),
    SecretRule(
        "nuget-password",
        _K.ASSIGNMENT,
        ("password",),
        r"(?i)password\"\s{1,8}value=\"(?P<secret>[^\"\n]{8,200})\"",
        1.0,
        accept=_password,
        source=GITLEAKS,
    ),
)
