"""Decides which names denote a secret: `db_password` and `clientSecret` do, `password_file` and `primaryKey` do not.

The words that indicate the opposite are from gitleaks' list of exceptions, and our own.
"""

import re
from string import digits

_FOREIGN = (
    "passwort kennwort passe contraseña contrasena clave senha пароль парол 密码 密碼 口令 パスワード hasło wachtwoord "
    "lösenord şifre parola accesso 비밀번호 heslo salasana adgangskode kodeord jelszó"
).split()
KEYWORDS = ("pass", "pwd", "pw", "secret", "token", "key", "cred", "auth", "sess", *(word[1:] for word in _FOREIGN[1:]))
"""A name that denotes a secret contains one of them, in lower case; a foreign one's capital may not be ASCII."""
_PASSWORDS = frozenset({"password", "passwd", "passphrase", "pwd", "pw", "pass", "passcode", *_FOREIGN})
_SECRETS = frozenset(
    {
        "secret",
        "secrets",
        "token",
        "tokens",
        "credential",
        "credentials",
        "cred",
        "creds",
        "apikey",
        "auth",
        "session",
        "sessionid",
    }
)
_COMPOUND = re.compile(
    r"\w{0,40}?(?:password|passwd|passphrase|secret|token|apikey|accesskey|authkey|secretkey|privatekey|accountkey)"
)
_PASSWORD_ENDINGS = ("password", "passwd", "passphrase")
_OF_KEYS = frozenset(
    {"access", "account", "admin", "api", "app", "application", "auth", "client", "deploy", "encryption", "encrypt"}
    | {"hmac", "jwt", "license", "licence", "live", "management", "master", "private", "priv", "secret", "secure"}
    | {"service", "session", "shared", "signing", "sign", "ssh", "storage", "stream", "subscription", "webhook", "wpa"}
)
_NO_SECRET = frozenset(
    {
        "id",
        "ids",
        "name",
        "names",
        "user",
        "username",
        "email",
        "file",
        "filename",
        "path",
        "dir",
        "url",
        "uri",
        "endpoint",
        "host",
        "length",
        "len",
    }
    | {
        "size",
        "count",
        "limit",
        "max",
        "min",
        "type",
        "types",
        "version",
        "ref",
        "field",
        "header",
        "headers",
        "policy",
    }
    | {
        "expires",
        "expiry",
        "expiration",
        "ttl",
        "lifetime",
        "duration",
        "format",
        "prefix",
        "pattern",
        "regex",
        "alias",
    }
    | {"code", "down", "frame", "hash", "mesh", "meshing", "pair", "press", "pressed", "ring", "selector", "signature"}
    | {"stone", "storetype", "store", "word", "words", "up", "left", "right", "chars", "str", "vault", "tab", "source"}
    | {"label", "placeholder", "hint", "help", "text", "title", "message", "description", "error", "provider", "method"}
    | {"arn", "algorithm", "alg", "mode", "class", "index", "column", "table", "schema", "kid", "fingerprint", "digest"}
)
_PUBLIC = frozenset({"public", "pub", "publishable", "csrf", "xsrf", "example", "sample"})
_NO_KEYS = frozenset(
    {
        "primary",
        "foreign",
        "bucket",
        "cache",
        "sort",
        "partition",
        "natural",
        "idx",
        "hot",
        "schema",
        "sequence",
        "hash",
    }
    | {"translation", "i18n", "blind", "issuer", "object"}
)
_KEYS = frozenset({"key", "keys"})
_SPLIT = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def secret_word(name: str) -> str:
    """Returns the word of a name that shows that its value is secret; empty if there is none."""
    words = [word.lower() for each in _SPLIT.split(name) if (word := each.rstrip(digits))]
    if _NO_SECRET.intersection(words[-1:]) or _PUBLIC.intersection(words):
        return ""
    for at in reversed(range(len(words))):
        before, after = words[at - 1] if at else "", words[at + 1 : at + 2]
        if not (before in _NO_KEYS or _NO_SECRET.intersection(after)) and _denotes_secret(
            words[at], before, name_is_constant=bool(before) and name.isupper()
        ):
            return words[at]
    return ""


def _denotes_secret(word: str, before: str, *, name_is_constant: bool) -> bool:
    known = word in _PASSWORDS or word in _SECRETS or _COMPOUND.fullmatch(word) is not None
    return known or (word in _KEYS and (before in _OF_KEYS or name_is_constant))


def names_password(word: str) -> bool:
    """Returns whether a word of `secret_word` means a password, which people choose, rather than a generated key."""
    return word in _PASSWORDS or word.endswith(_PASSWORD_ENDINGS)
