"""Decides which names denote a secret: `db_password` and `clientSecret` do, `password_file` and `primaryKey` do not.

The words that indicate the opposite are from gitleaks' list of exceptions, and our own.
"""

import re
from string import digits

from bot.runtime.secrets.kinds import words

_FOREIGN = words(
    "passwort kennwort passe contraseña contrasena clave senha пароль парол 密码 密碼 口令 パスワード hasło "
    "wachtwoord lösenord şifre parola accesso 비밀번호 heslo salasana adgangskode kodeord jelszó"
)
KEYWORDS = sorted(words("pass pwd pw secret token key cred auth sess") | {word[1:] for word in _FOREIGN})
"""A name that denotes a secret contains one of them, in lower case; a foreign one's capital may not be ASCII."""
_PASSWORDS = words("password passwd passphrase pwd pw pass passcode") | _FOREIGN
_SECRETS = words("apikey auth cred credential credentials creds secret secrets session sessionid token tokens")
_KNOWN = _PASSWORDS | _SECRETS
_COMPOUND = re.compile(
    r"\w{0,40}?(?:password|passwd|passphrase|secret|token|apikey|accesskey|authkey|secretkey|privatekey|accountkey)"
)
_PASSWORD_ENDINGS = ("password", "passwd", "passphrase")
_OF_KEYS = words(
    "access account admin api app application auth client deploy encrypt encryption hmac jwt licence license live "
    "management master priv private secret secure service session shared sign signing ssh storage stream subscription "
    "webhook wpa"
)
_NO_SECRET = words(
    "alg algorithm alias arn chars class code column count description digest dir down duration email endpoint error "
    "expiration expires expiry field file filename fingerprint format frame hash header headers help hint host id ids "
    "index kid label left len length lifetime limit max mesh meshing message method min mode name names pair path "
    "pattern placeholder policy prefix press pressed provider ref regex right ring schema selector signature size "
    "source stone store storetype str tab table text title ttl type types up uri url user username vault version word "
    "words"
)
_PUBLIC = words("csrf example pub public publishable sample xsrf")
_NO_KEYS = words(
    "blind bucket cache foreign hash hot i18n idx issuer natural object partition primary schema sequence sort "
    "translation"
)
_SPLIT = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def secret_word(name: str) -> str:
    """Returns the word of a name that shows that its value is secret; empty if there is none."""
    parts = [word.lower() for each in _SPLIT.split(name) if (word := each.rstrip(digits))]
    if _NO_SECRET.intersection(parts[-1:]) or _PUBLIC.intersection(parts):
        return ""
    for at in reversed(range(len(parts))):
        before, after = parts[at - 1] if at else "", parts[at + 1 : at + 2]
        telling = before in _OF_KEYS or (before and name.isupper())
        if before in _NO_KEYS or _NO_SECRET.intersection(after):
            continue
        if parts[at] in _KNOWN or _COMPOUND.fullmatch(parts[at]) or (parts[at] in {"key", "keys"} and telling):
            return parts[at]
    return ""


def names_password(word: str) -> bool:
    """Returns whether a word of `secret_word` means a password, which people choose, rather than a generated key."""
    return word in _PASSWORDS or word.endswith(_PASSWORD_ENDINGS)
