"""The server's own secrets: where they are from, and the forms in which a text can contain one.

Searching takes time linear in the length of the text.
"""

import base64
import html
import re
import time
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from urllib.parse import unquote

from bot.jobserver.settings import PREFIX, JobServerSettings
from bot.runtime.secrets.assignments import secret_word
from bot.runtime.secrets.masking import SecretMasker, find
from bot.runtime.secrets.plausibility import is_code, reads_as_placeholder
from bot.runtime.text import without_misleading

SHORTEST = 8
"""The shortest squeezed form that is searched for: shorter ones occur in many texts by chance."""
MOST_LAYERS = 4
WITHHELD = "[withheld: it contains a key of this job server in another form]"
_RUN = re.compile(rb"[\t\n\r\x20-\x7e]{8,}")
_SEPARATORS = bytes(range(33)) + b"\"'`\\,+\x7f"
"""What can separate the parts of a value: spaces, line breaks, string delimiters and operators in code."""
_LONG_ENTITY = re.compile(r"&#\w{8,}")
"""No character has such a number, and Python reads no number of thousands of digits."""
_HEX = "[0-9a-fA-F]"
_ESCAPE = re.compile(rf"\\(?:u\{{0{{0,3}}({_HEX}{{1,5}})\}}|u({_HEX}{{4}})|U000({_HEX}{{5}})|x({_HEX}{{2}})|([nrt]))")
_TAG = re.compile(r"<!--[^<>]{0,200}-->|<(/?(?:br|div|d[dt]|h[1-6]|hr|li|p|pre|t[dhr])\b)?[^<>]{0,200}>")
_READ_AGAIN_S = 30.0
_MOST_FILES, _LARGEST_FILE = 200, 200_000
_FILE = "_FILE"
_IS_KEY = re.compile(r"(?:KEY|PASSWORD|SECRET|TOKEN)S?$")


class _Compatible(dict[int, str]):
    """Maps characters to the ASCII characters that Unicode holds compatible, and others to themselves.

    Each by itself: normalizing a text takes quadratic time in its accents.
    """

    def __missing__(self, code: int) -> str:
        plain = unicodedata.normalize("NFKD", chr(code)).encode("ascii", errors="ignore").decode()
        return self.setdefault(code, plain or chr(code))


_COMPATIBLE = _Compatible()


def text_in(data: bytes) -> str:
    """Returns the text of a file without invisible characters; of UTF-16 and binary data, the ASCII in it."""
    plain = b"\n".join(_RUN.findall(data.replace(b"\0", b""))) if b"\0" in data else data
    return without_misleading(plain.decode(errors="replace"))


def layers(text: str) -> Iterator[str]:
    """Yields a text, then what remains of it when escapes and tags are taken away, again and again."""
    yield text
    for _ in range(MOST_LAYERS):
        before = text
        for step in (_without_escapes, _without_tags):
            shallower, text = text, step(text)
            if text != shallower:
                yield text
        if text == before:
            return


def _without_escapes(text: str) -> str:
    plain = unquote(html.unescape(_LONG_ENTITY.sub("", text)), errors="replace")
    return _ESCAPE.sub(_character, plain).translate(_COMPATIBLE)


def _character(escape: re.Match[str]) -> str:
    *codes, is_line_end = escape.groups()
    return "\n" if is_line_end else chr(int(next(filter(None, codes)), 16))


def _without_tags(text: str) -> str:
    """Only a tag that ends a line or a cell separates words."""
    return _TAG.sub(lambda tag: "\n" if tag[1] else "", text)


def squeezed(text: str) -> bytes:
    """Returns the ASCII characters of a text in lower case, without those that can separate the parts of a value."""
    return text.translate(_COMPATIBLE).encode("ascii", errors="ignore").lower().translate(None, _SEPARATORS)


def forms_of(value: str) -> frozenset[bytes]:
    """Returns the squeezed forms of a value: as it is, in hexadecimal digits, and what base64 of more contains."""
    forms = {squeezed(value)}
    for data in (value.encode(), value.encode("utf-16-le"), value.encode("utf-16-be")):
        forms.add(data.hex().encode())
        for shift in range(3):
            encoded = base64.b64encode(b"\0" * shift + data)[(8 * shift + 5) // 6 : 8 * (shift + len(data)) // 6]
            forms |= {squeezed(form.decode()) for form in (encoded, encoded.translate(bytes.maketrans(b"+/", b"-_")))}
    return frozenset(form for form in forms if len(form) >= SHORTEST)


@dataclass(frozen=True)
class OwnSecrets:
    """Secrets by their values. Removes them from texts that leave the server, or withholds a text in which one is
    disguised. Blocks; meant for prompts and answers, not for whole files.
    """

    values: tuple[str, ...]

    @cached_property
    def _forms(self) -> tuple[tuple[str, frozenset[bytes]], ...]:
        return tuple((value, forms_of(value)) for value in self.values)

    def revealed(self, text: str) -> list[str]:
        """Returns the values that a text contains in any form."""
        contents = [squeezed(layer) for layer in layers(text)] if self.values else []
        return [value for value, forms in self._forms if any(form in each for each in contents for form in forms)]

    def known(self, text: str) -> str:
        """Returns the text without these secrets."""
        return self._checked(SecretMasker(self.values).mask_own(text))

    def all(self, text: str) -> str:
        """Returns the text without these and without anything that looks like a secret."""
        return self._checked(SecretMasker(self.values).mask(text).text)

    def _checked(self, masked: str) -> str:
        return WITHHELD if self.revealed(masked) else masked


class KnownValues:
    """Returns the server's own secrets. Rereads key files every 30 s, since keys may be rotated meanwhile.

    `environment` is the environment before secrets were removed from it; `others` are other projects' secrets, of which
    there may be more later.
    """

    def __init__(
        self, settings: JobServerSettings, environment: Mapping[str, str], others: Collection[str] = ()
    ) -> None:
        self._environment = {**settings.agent_environment, **environment}
        self._named = {*settings.pass_environment, *settings.checks_pass_environment}
        self._rotating = settings.rotating_secrets
        self._others = others
        self._fixed = frozenset(settings.fixed_secrets) | frozenset(_of_home(settings.agent_home))
        self._secrets = OwnSecrets(())
        self._read_at = -_READ_AGAIN_S

    def __call__(self) -> OwnSecrets:
        if time.monotonic() - self._read_at >= _READ_AGAIN_S:
            rotating = (each.ever_held for each in self._rotating)
            found = self._fixed.union(self._others, self._of_environment(), *rotating)
            self._secrets = OwnSecrets(tuple(sorted(filter(_counts, found), key=len, reverse=True)))
            self._read_at = time.monotonic()
        return self._secrets

    def _of_environment(self) -> Iterator[str]:
        for name, value in self._environment.items():
            if name.endswith(_FILE) and _IS_KEY.search(name.removesuffix(_FILE)):
                yield from _key_of_file(Path(value))
            elif name.startswith(PREFIX):
                continue  # the settings have the secret ones
            elif (_IS_KEY.search(name) or (name in self._named and secret_word(name))) and not is_code(value):
                yield value.strip()
            else:
                yield from (value[finding.start : finding.end] for finding in find(value))


def _counts(value: str) -> bool:
    return len(value) >= SHORTEST and not reads_as_placeholder(value)


def _of_home(home: Path | None) -> Iterator[str]:
    """Returns what the rules find in files of an agent's home, since its login can be one."""
    if home is None:
        return
    for file in islice((path for path in sorted(home.rglob("*")) if path.is_file()), _MOST_FILES):
        text = _text(file)
        yield from (text[finding.start : finding.end] for finding in find(text))


def _key_of_file(file: Path) -> Iterator[str]:
    """A key file contains only the key, which spans several lines only if it is a private key."""
    text = _text(file).strip()
    if text.count("\n") == 0 or "PRIVATE KEY" in text:
        yield text


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8") if file.stat().st_size <= _LARGEST_FILE else ""
    except (OSError, ValueError):
        return ""
