"""Finds secrets by the name that they are assigned to: `db_password: …`, `--token …`, `<secret>…</secret>`.

Neither part is enough alone: the name has to denote a secret, as `clientSecret` does and `password_file` and
`primaryKey` do not (some of these words are from gitleaks' list of exceptions), and the value has to look random, or
like a password.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from string import digits

from bot.runtime.secrets import FoundSecret, SecretKind, occurrences, plausibility, words
from bot.runtime.secrets.patterns import compiled

_FOREIGN = words(
    "passwort kennwort passe contraseña contrasena clave senha пароль парол 密码 密碼 口令 パスワード hasło "
    "wachtwoord lösenord şifre parola accesso 비밀번호 heslo salasana adgangskode kodeord jelszó"
)
KEYWORDS = sorted(words("pass pwd pw secret token key cred auth sess") | {word[1:] for word in _FOREIGN})
"""A name that denotes a secret contains one of them, in lower case; a foreign one's capital may not be ASCII."""
_PASSWORDS = words("password passwd passphrase pwd pw pass passcode") | _FOREIGN
_SECRETS = words("auth cred credential credentials creds secrets session sessionid tokens") | _PASSWORDS
_OF_KEYS = words(
    "access account admin api app application auth client deploy encrypt encryption hmac jwt licence license live "
    "management master priv private secret secure service session shared sign signing ssh storage stream subscription "
    "webhook wpa"
)
_ENDINGS = ("password", "passwd", "passphrase", "secret", "token", *(f"{word}key" for word in _OF_KEYS))
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
_NAME = re.compile(r"[\w.\-]+")
_NAME_BACKWARDS = re.compile(r"[\w.\-]{0,50}+(?: [A-Za-z]{2,20})?")
_LONGEST_BEFORE, _LONGEST_NAME = 70, 100

_TYPE = r"(?:[ \t]{0,3}:?[ \t]{1,3}(?:str|string|String|text|&str|char\*?))?"
_CLOSED = rf"(?:\\?[\"'`*_\])]){{0,4}}{_TYPE}[ \t\u00a0]{{0,12}}"
_ASSIGNS = r"(?:=>|[=!]={1,2}|:{0,3}=|[?+.]=|\|\|=|[:=\uff1a\uff1d])"
_OPENED = r"[*_]{0,2}[ \t\u00a0]{0,8}(?:[|>][+\-]?[ \t]{0,4}\r?\n[ \t]{1,20}|(?:\[\]byte\()?[Nbrfu@$]?(?=\\?[\"'`]))?"
_BARE = r"(?:[A-Za-z0-9_.~+/!@#$%^*?\-]|&(?!\w{1,30}=))"
_PARTS = rf"(?=[^\s:=]{{0,5}}[:=]|\S{{6}}){_BARE}{{0,100}}+(?>(?:[:=](?=[\w\-]){_BARE}{{1,100}}+){{1,3}})"
_VALUE = r"(?P<secret>[^\s\"'`\\]{6,400}+)"
_QUOTED = rf"(?P<quote>\\?[\"'`]){_VALUE}(?P=quote)"
_WORD = r"(?P<quote>[\"'`]?)(?P<secret>[^\s\"'`\\|,;()<>\[\]]{8,400}+)(?P=quote)"


@dataclass(frozen=True)
class Shape:
    """A syntax of assignment. `expression` is matched at the end of the name, and its group `secret` is the value."""

    name: str
    expression: str
    loose: bool = False
    """Whether a name and a word can stand like this by chance, so that the value has to look random."""


SHAPES = (
    Shape("assignment-quoted", rf"{_CLOSED}{_ASSIGNS}{_OPENED}{_QUOTED}"),
    Shape("assignment",
        rf"{_CLOSED}{_ASSIGNS}{_OPENED}(?:\\?[\"'`])?(?P<secret>(?:{_BARE}{{6,2000}}+|{_PARTS})={{0,2}})(?![:=][\w\-]|[(\[\w=])"),
    Shape("argument", rf"(?:[\"'`][ \t]{{0,4}},[ \t]{{0,4}}|[ \t]{{0,2}}\(|[ \t]{{1,2}}(?=')){_QUOTED}"),
    Shape("element", r"[\"']?>\s{0,20}(?P<secret>[^\s<>\"'`]{6,400}+)\s{0,20}<"),
    Shape("value",
        rf"[\"']?,?\s{{1,40}}[\"']?value[\"']?\s{{0,3}}[:=]\s{{0,3}}(?P<quote>[\"']?){_VALUE}(?P=quote)"),
    Shape("cell", rf"[*_`]{{0,2}}[ \t]{{0,20}}\|[ \t]{{0,20}}{_WORD}[ \t]{{0,20}}\|", loose=True),
    Shape("next-line",
        rf"{_CLOSED}[:\uff1a]?[*_]{{0,2}}[ \t]{{0,8}}(?:\r?\n[ \t>]{{0,8}}){{1,2}}{_WORD}[ \t]{{0,8}}(?=\r?\n|\Z)",
        loose=True),
    Shape("statement", rf"(?: for \w{{2,20}})?(?:[ \t]{{1,2}}(?:is|ist|est|es|é):?)?[ \t]{{1,4}}{_WORD}(?=[\s,;]|\Z)",
        loose=True),
)  # fmt: skip
"""A value in `statement` can also be an option's: `--password …`."""


def assigned_secrets(text: str, lower: str) -> Iterator[FoundSecret]:
    """Yields the secrets assigned to names that denote one. `lower` is the text in lower case."""
    seen: set[int] = set()
    for keyword in KEYWORDS:
        end = 0
        for at in occurrences(lower, keyword):
            if at >= end:
                match = _NAME.match(text, at)
                end = match.end() if match else at + 1
                if end not in seen:
                    seen.add(end)
                    found = _assigned(text, at, end)
                    if found is not None:
                        end = found.end
                        yield found


def _assigned(text: str, at: int, end: int) -> FoundSecret | None:
    matches = [(shape, match) for shape in SHAPES if (match := compiled(shape.expression).match(text, end))]
    if not matches or end - at > _LONGEST_NAME:
        return None
    before = _NAME_BACKWARDS.match(text[max(at - _LONGEST_BEFORE, 0) : at][::-1])
    name = (before[0][::-1] if before else "") + text[at:end]
    word = secret_word(name)
    is_option = name.rpartition(" ")[2].startswith("-")
    for shape, match in matches if word else ():
        if _is_secret(match["secret"], word, loose=shape.loose and not is_option):
            return FoundSecret(match.start("secret"), match.end("secret"), SecretKind.ASSIGNMENT, shape.name)
    return None


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
        if parts[at] in _SECRETS or parts[at].endswith(_ENDINGS) or (parts[at] in {"key", "keys"} and telling):
            return parts[at]
    return ""


_SHORTEST_KEY, _LONG_LETTERS, _LONG_NUMBER, _MOST_DIGITS, _MANY_CLASSES, _LOOSE_CHANGES = 8, 10, 14, 2, 3, 0.2
_CLASSES = (str.islower, str.isupper, str.isdigit, lambda character: not (character.isalnum() or character in "_-./"))


def _is_secret(given: str, word: str, *, loose: bool) -> bool:
    """Returns whether a value, or what it is in base64, can be a secret behind such a word. People choose passwords."""
    value = plausibility.decoded_text(given) or given
    if _is_word(given) or _is_word(value) or plausibility.is_placeholder(value) or plausibility.is_code(value):
        return False
    if loose and (not value.isascii() or "=" in value.rstrip("=")):  # "pass `escaping=allow-utf-8`"
        return False
    if value.isalpha() or value.isdigit():
        return not loose and (value.isalpha() or len(value) >= _LONG_NUMBER)
    if word.endswith(tuple(_PASSWORDS)):
        classes = sum(any(map(belongs, value)) for belongs in _CLASSES)
        mixed = classes >= _MANY_CLASSES and not ("/" in value and plausibility.is_name(value))
        return (mixed or plausibility.is_drawn(value)) and (not loose or any(map(str.isdigit, value)))
    if len(value) < _SHORTEST_KEY or not plausibility.is_drawn(value):
        return False
    return not loose or plausibility.is_hex(value) or plausibility.is_random(value, _LOOSE_CHANGES)


def _is_word(value: str) -> bool:
    """Returns whether a value is an ordinary word, or itself the name of a secret in code: `confirmPassword2`."""
    bare = value.strip("&*=")
    if _NAME.fullmatch(bare) and sum(map(str.isdigit, bare)) <= _MOST_DIGITS and secret_word(bare):
        return True
    return bare.isalpha() and (len(bare) < _LONG_LETTERS or plausibility.reads_as_words(bare) or not bare.isascii())
